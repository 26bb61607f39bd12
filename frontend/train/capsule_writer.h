// Writes one step of a run to a file. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/compiled_step.h"
#include "frontend/state/step_capsule.h"
#include "kernels/communicator.h"

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
/// Of several processes each has a writer, with the same path and step. Each keeps its own part. They agree on what is
/// written, all parts go to rank 0, and it writes the file. Other ranks say nothing.
///
/// Of a step under one loss scaler that skips, a bad step changes only small state: the scaler, counters, the
/// generator, accumulators. So only that is copied before each step. Of other steps all state is copied.
class CapsuleWriter {
 public:
  /// `at`: the step to write, counted as Model::global_step after it; 0: the first bad one.
  /// `group`: the processes that share each step; null: this one alone.
  CapsuleWriter(std::string path, std::int64_t at, std::shared_ptr<Communicator> group = nullptr)
      : path_(std::move(path)), at_(at), group_(std::move(group)), waits_(!path_.empty()) {}

  /// To be called before each run of step number `step` is started. Errors: those of reading state.
  absl::Status Before(const CompiledStep& program, std::int64_t step);
  /// To be called when a run of step number `step` has ended that is not its last one, before anything writes to its
  /// state.
  void Between(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns);

  /// To be called when step number `step` has ended, before anything writes to its state. `overflow`: the scaler has
  /// seen a gradient that is not finite. Returns whether one is to be written, the same in all ranks. Errors: those of
  /// the group, in which the run cannot go on.
  absl::StatusOr<bool> Wants(const StepResults& results, std::int64_t step, bool overflow) const;
  /// Writes the capsule and says so on `say` with its size, first. `source` is called where it is written. An error of
  /// any rank is said, too, and nothing else happens: the run goes on without a capsule. Errors: those of the group.
  absl::Status Write(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns,
                     const std::function<absl::StatusOr<CapsuleSource>()>& source,
                     const std::function<void(const std::string&)>& say);

 private:
  /// The step that is under way.
  struct Pending {
    StepCapsule::NamedTensors before;       ///< state before its first run
    StepCapsule earlier = {.runs = 0};      ///< batch, record and number of the runs that have ended
    const CompiledStep* program = nullptr;  ///< the Program of those runs; null: there are none
    std::vector<std::uint64_t> versions;    ///< versions of its state behind the last of them
    bool is_whole = false;                  ///< the first run that was seen is the first one of the step
    bool is_bad = false;                    ///< a loss of theirs is not finite
    std::string problem;                    ///< why it can have no capsule; empty: it can
  };

  /// Whether step number `step` may be the one to write.
  bool Watches(std::int64_t step) const { return waits_ && (at_ == 0 || step == at_); }
  /// Whether other ranks take part.
  bool IsShared() const { return group_ != nullptr && group_->size() > 1; }
  bool WantsAlone(const StepResults& results, bool overflow) const;
  /// Copies the state that `program` will have changed and that was not copied yet.
  absl::Status CopyState(const CompiledStep& program);
  /// The capsule of this process, without its source.
  absl::StatusOr<StepCapsule> Make(const StepResults& results, std::int64_t step,
                                   const std::vector<Tensor>& columns) const;
  absl::Status WriteFile(StepCapsule capsule, const std::function<absl::StatusOr<CapsuleSource>()>& source,
                         const std::function<void(const std::string&)>& say) const;

  std::string path_;
  std::int64_t at_;
  std::shared_ptr<Communicator> group_;
  bool waits_;  ///< nothing was written yet
  Pending pending_;
};

}  // namespace mpc::internal
