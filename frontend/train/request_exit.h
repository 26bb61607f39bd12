// Stopping a run that a signal asks to end.
#pragma once

#include <string>

#include "frontend/train/callback.h"

namespace mpc {

struct OnRequestExitOptions {
  /// Where the state of training goes when a signal has stopped the run, as Model::SaveCheckpoint writes it. Empty: it
  /// goes nowhere.
  std::string save_path;
};

/// Stops a run at the end of the step in flight once the process gets SIGINT (Ctrl-C) or SIGTERM:
///
///     OnRequestExit on_exit({.save_path = "run.safetensors"});
///     absl::Status trained = model.Train(10, train_set, {LossMonitor(), on_exit});
///     if (trained.ok() && on_exit.signal() != 0) return 128 + on_exit.signal();
///
/// Train then ends as after RunContext::Interrupt: the hooks OnEpochEnd and OnTrainEnd run and it returns OK, or what
/// saving failed with. A second signal, of either kind, ends the process at once, as it does without this callback.
///
/// The handlers are the process's. They are set when Train begins; when it returns, with an error too, those from
/// before are back. They run on a stack of their own, which the thread of Train keeps. A signal that is ignored stays
/// ignored. Where several such runs overlap one signal stops them all.
/// Wherever it stands in the list of callbacks, it saves what the others have changed (Callback::SavesRun).
class OnRequestExit : public Callback {
 public:
  explicit OnRequestExit(OnRequestExitOptions options = {});

  /// The signal that stopped the last run, SIGINT or SIGTERM; 0: none did. Where several processes train together it
  /// is the same in all of them, whichever has got it.
  int signal() const { return signal_; }

  bool NeedsState(const RunContext& context) const override;
  /// A launcher signals every process, and a user one of them.
  bool RunsOnEveryRank() const override { return true; }
  bool SavesRun() const override { return true; }
  void OnTrainBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;
  void OnTrainEnd(RunContext& context) override;

 private:
  /// Asks for the stop where a signal has come.
  void Check(RunContext& context);

  OnRequestExitOptions options_;
  int signal_ = 0;
};

}  // namespace mpc
