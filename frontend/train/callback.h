// What a user hooks into training: the base class and the callbacks that print.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "frontend/train/run_context.h"
#include "frontend/train/shared_or_borrowed.h"
#include "frontend/train/step_timing.h"

namespace mpc {

/// Hooks of a run. Each does nothing unless overridden.
///
/// Model::Fit evaluates between the last OnStepEnd of an epoch and its OnEpochEnd, so that OnEpochEnd finds the
/// results.
///
/// The CPU runs a step from OnStepBegin to OnStepEnd. A GPU runs ahead: OnStepEnd of a step comes when the next launch
/// has been started. It comes in order, with that step's own records (loss, overflow, loss scale, taps, batch, step
/// numbers). What a hook writes to the state acts from the next launch on. Before OnEvalBegin, OnEpochEnd and
/// OnTrainEnd every step has ended.
class Callback {
 public:
  virtual ~Callback() = default;

  /// Whether this callback reads or writes the state of training at the end of the step that begins. It does if it
  /// saves, measures or evaluates the network, changes a parameter, or stops the run at this very step. Asked after
  /// OnStepBegin. If true, no further step is started before OnStepEnd of this one. Matters only where a device runs
  /// ahead.
  virtual bool NeedsState(const RunContext& context) const { return false; }
  /// Whether the step that begins is to be run instruction by instruction. It leaves the same bits, and takes longer.
  virtual bool WantsTiming(const RunContext& context) const { return false; }
  /// Called after OnStepEnd of such a step, for each callback that asked.
  virtual void OnStepTimed(const StepTiming& timing) {}

  /// Where several processes train together, whether hooks run in every one of them. By default they run in rank 0
  /// alone: it prints, writes files and decides, and the others follow. A callback that calls Model::Eval must run in
  /// all, since evaluation does.
  virtual bool RunsOnEveryRank() const { return false; }

  /// Whether this callback saves what the others have made of the run. Its OnEpochEnd and OnTrainEnd come behind those
  /// of all callbacks that do not. The order of the list counts among either, and in all other hooks.
  virtual bool SavesRun() const { return false; }

  /// Under which name checkpoints keep what SaveState gives; empty: they keep nothing of this callback. Of several with
  /// one name the n-th of the list is the n-th of the file. Rank 0 writes those of its callbacks. A callback that runs
  /// on every rank gets its state back in the ranks that have loaded the checkpoint.
  virtual std::string StateName() const { return ""; }
  /// What this callback has counted so far in the run, as text.
  virtual std::string SaveState() const { return ""; }
  /// Takes over what SaveState gave for the checkpoint at which a run goes on. Comes behind OnTrainBegin of all
  /// callbacks, and does not come where the file has nothing under the name. An error ends the run.
  virtual absl::Status LoadState(const std::string& state) { return absl::OkStatus(); }

  virtual void OnTrainBegin(RunContext& context) {}
  virtual void OnEpochBegin(RunContext& context) {}
  virtual void OnStepBegin(RunContext& context) {}
  virtual void OnStepEnd(RunContext& context) {}
  /// Before an evaluation of Model::Fit. The context is that of the epoch's last step.
  virtual void OnEvalBegin(RunContext& context) {}
  /// After it: RunContext::eval_results holds what it measured.
  virtual void OnEvalEnd(RunContext& context) {}
  virtual void OnEpochEnd(RunContext& context) {}
  virtual void OnTrainEnd(RunContext& context) {}
};

/// One element of a CallbackList: `LossMonitor()` (moved in), a named callback (borrowed: it must outlive the run), or
/// a shared pointer.
class CallbackRef {
 public:
  template <internal::DerivesFrom<Callback> Object>
  CallbackRef(Object&& callback)  // NOLINT(google-explicit-constructor): an argument list of callbacks
      : callback_(internal::ShareOrBorrow<Callback>(std::forward<Object>(callback))) {}
  template <std::derived_from<Callback> Object>
  CallbackRef(std::shared_ptr<Object> callback) : callback_(std::move(callback)) {}  // NOLINT

  const std::shared_ptr<Callback>& get() const { return callback_; }

 private:
  std::shared_ptr<Callback> callback_;
};

/// The callbacks of a run, in order: `model.Train(10, data, {LossMonitor(), my_callback})`. Null pointers are left out.
/// Epochs and runs end for those that save the run (Callback::SavesRun) behind the others.
class CallbackList {
 public:
  CallbackList() = default;
  CallbackList(std::initializer_list<CallbackRef> callbacks);      // NOLINT(google-explicit-constructor)
  CallbackList(std::vector<std::shared_ptr<Callback>> callbacks);  // NOLINT(google-explicit-constructor)

  bool empty() const { return callbacks_.empty(); }
  std::size_t size() const { return callbacks_.size(); }

  void OnTrainBegin(RunContext& context) const;
  void OnEpochBegin(RunContext& context) const;
  void OnStepBegin(RunContext& context) const;
  void OnStepEnd(RunContext& context) const;
  void OnEvalBegin(RunContext& context) const;
  void OnEvalEnd(RunContext& context) const;
  void OnEpochEnd(RunContext& context) const;
  void OnTrainEnd(RunContext& context) const;
  bool NeedsState(const RunContext& context) const;
  /// What the callbacks save, by their names. Behind the name of a second one of that name stands " #2", and so on.
  std::map<std::string, std::string> SaveStates() const;
  /// Gives them what SaveStates gave. Errors: those of Callback::LoadState.
  absl::Status LoadStates(const std::map<std::string, std::string>& states) const;
  /// Those whose hooks run in rank `rank`.
  CallbackList OnRank(int rank) const;
  /// Those that want the step's timing; few steps have any.
  std::vector<Callback*> WantingTiming(const RunContext& context) const;

 private:
  /// Calls `hook` with each callback, with those that save the run behind the others.
  void VisitSaversLast(const std::function<void(Callback& callback)>& hook) const;
  /// Calls `visit` with the callbacks that have a state, and the names that it is kept under.
  void VisitStates(const std::function<void(const std::string& name, Callback& callback)>& visit) const;

  std::vector<std::shared_ptr<Callback>> callbacks_;
};

/// A loss as monitors print it: with four decimals, and with four significant digits below 0.001.
std::string FormatLoss(double loss);

struct LossMonitorOptions {
  /// Print after every step whose global number is a multiple of this. 0: once an epoch, after its last step. Of an
  /// update over several batches the last one makes the step.
  std::int64_t per_print_times = 0;
  std::ostream* stream = nullptr;  ///< std::cout if null
};

/// Prints "epoch: 1 step: 32, loss is 2.3012": epoch and step number from 1, the loss as FormatLoss writes it. After an
/// evaluation of Model::Fit also "Eval result: epoch 1, metrics: {'eval_accuracy': 0.9306, 'eval_loss': 0.2140}".
class LossMonitor : public Callback {
 public:
  /// Once an epoch, what MindSpore prints when a whole epoch runs on the device.
  explicit LossMonitor(LossMonitorOptions options = {});
  /// Every `per_print_times` steps.
  explicit LossMonitor(std::int64_t per_print_times);

  void OnEpochBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;

 private:
  void Print(const RunContext& context) const;

  LossMonitorOptions options_;
  std::int64_t last_step_ = 0;
};

/// Prints "Train epoch time: 123.456 ms, per step time: 3.858 ms" after every epoch. Evaluation is left out of both,
/// and so are steps of the epoch that were done before a resume.
class TimeMonitor : public Callback {
 public:
  /// Writes to std::cout if `stream` is null.
  explicit TimeMonitor(std::ostream* stream = nullptr);

  void OnEpochBegin(RunContext& context) override;
  void OnEvalBegin(RunContext& context) override;
  void OnEvalEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;

 private:
  std::ostream* stream_;
  std::int64_t steps_before_ = 0;  ///< steps of the epoch that another run has done
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point eval_begin_;
};

struct ProgressBarOptions {
  std::ostream* stream = nullptr;  ///< std::cout if null
  /// Whether the stream is a terminal. Not given: std::cout and std::cerr are asked, other streams are not.
  std::optional<bool> terminal;
  std::chrono::milliseconds refresh = std::chrono::milliseconds(100);  ///< shortest time between two drawings
  /// Width of the terminal, >= 1. Not given: std::cout and std::cerr are asked before each drawing.
  std::optional<int> columns;
};

/// On a terminal one line that is drawn again, with the time that the whole run has left:
///
///     epoch 1/10 [=====>    ] 23/45 loss 0.4321, scale 65536, 812 steps/s, 0:23 left
///
/// The bar shrinks and the line is cut where the terminal is narrow. Elsewhere one line after every epoch: "epoch 1/10:
/// 45 steps, loss 0.4321, 812 steps/s". The loss scale is left out where it is 1. Results of Model::Fit stand at the
/// end of an epoch's line, by name. Steps a second leave evaluation out, the time left has it in.
class ProgressBar : public Callback {
 public:
  explicit ProgressBar(ProgressBarOptions options = {});

  void OnTrainBegin(RunContext& context) override;
  void OnEpochBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;
  void OnEvalBegin(RunContext& context) override;
  void OnEvalEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;

 private:
  using Clock = std::chrono::steady_clock;

  void Draw(const RunContext& context, const std::string& ending = {});
  /// Ends a line that has been drawn.
  void EndLine();
  /// "loss 0.4321, scale 65536, 812 steps/s" as of now.
  std::string Numbers(const RunContext& context) const;
  /// ", 0:23 left"; empty where that is not known or nothing is left.
  std::string TimeLeft(const RunContext& context) const;
  /// Columns that the line may take; 0: any number.
  std::size_t Columns() const;

  ProgressBarOptions options_;
  bool terminal_;
  Clock::time_point epoch_begin_;           ///< moved on by evaluation
  std::int64_t steps_before_ = 0;           ///< steps of the epoch that another run has done
  Clock::time_point eval_begin_;            ///< when the evaluation began
  std::optional<Clock::time_point> timed_;  ///< when the first step of the run ended
  std::int64_t steps_timed_ = 0;            ///< steps after that one
  Clock::time_point last_drawn_;
  std::size_t drawn_width_ = 0;  ///< 0: no line stands open
};

}  // namespace mpc
