// Writes one step of a run to a file. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/compiled_step.h"
#include "frontend/state/step_capsule.h"

namespace mpc::internal {

/// What a CapsuleWriter does not know itself: the traced step and the options that compile it.
struct CapsuleSource {
  std::string traced;
  std::map<std::string, std::string> options;
  std::map<std::string, std::string> origin;
};

/// Keeps what a step will have changed, and writes the capsule of the step that is asked for, once. Without a path it
/// does nothing. Of a step that accumulates it keeps each micro-batch, and the state before the first of them.
///
/// Of a step under one loss scaler that skips, a bad step changes only small state: the scaler, counters, the
/// generator, accumulators. So only that is copied before each step. Of other steps all state is copied.
class CapsuleWriter {
 public:
  /// `at`: the step to write, counted as Model::global_step after it; 0: the first bad one.
  CapsuleWriter(std::string path, std::int64_t at) : path_(std::move(path)), at_(at), waits_(!path_.empty()) {}

  /// To be called before each run of step number `step` is started. Errors: those of reading state.
  absl::Status Before(const CompiledStep& program, std::int64_t step);
  /// To be called when a run of step number `step` has ended that is not its last one, before anything writes to its
  /// state.
  void Between(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns);

  /// To be called when step number `step` has ended, before anything writes to its state. `overflow`: the scaler has
  /// seen a gradient that is not finite. `source` is called where a capsule is written. Returns whether one is to be
  /// written.
  bool Wants(const StepResults& results, std::int64_t step, bool overflow) const;
  /// Writes the capsule and says so on `say` with its size, first. An error is said, too, and nothing else happens: the
  /// run goes on without a capsule.
  void Write(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns,
             const std::function<absl::StatusOr<CapsuleSource>()>& source,
             const std::function<void(const std::string&)>& say);

 private:
  /// The step that is under way.
  struct Pending {
    StepCapsule::NamedTensors before;       ///< state before its first run
    StepCapsule earlier = {.runs = 0};      ///< batch, record and number of the runs that have ended
    const CompiledStep* program = nullptr;  ///< the Program of those runs; null: there are none
    std::vector<std::uint64_t> versions;    ///< versions of its state behind the last of them
    bool is_bad = false;                    ///< a loss of theirs is not finite
    std::string problem;                    ///< why it can have no capsule; empty: it can
  };

  /// Whether step number `step` may be the one to write.
  bool Watches(std::int64_t step) const { return waits_ && (at_ == 0 || step == at_); }
  /// Copies the state before the first run. `begins`: it is the first one of the step.
  absl::Status CopyState(const CompiledStep& program, bool begins);
  absl::StatusOr<StepCapsule> Make(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns,
                                   CapsuleSource source) const;

  std::string path_;
  std::int64_t at_;
  bool waits_;  ///< nothing was written yet
  Pending pending_;
};

}  // namespace mpc::internal
