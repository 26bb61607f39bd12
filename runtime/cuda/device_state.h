// The state of one Program on the device: what must be uploaded before a step, and what a step writes.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/device_step.h"
#include "runtime/program.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {

class DeviceState {
 public:
  /// Every entry has its copy on the device of `context`.
  DeviceState(const Program& program, StateEntries entries);

  /// Before a step: uploads what the host wrote and rebuilds derived state that is stale, both on `queue`'s stream.
  /// Errors: CUDA's, and the error of an earlier step that left an entry half-written.
  absl::Status BringUpToDate(const DeviceStep& step, cuda::LaunchQueue& queue);

  /// Begins every step of a launch except the first. Rebuilds derived state whose source the previous step wrote
  /// without writing the derived state.
  absl::Status EnqueueRefreshesBetweenSteps(const DeviceStep& step, cuda::LaunchQueue& queue) const;

  /// Notes that `steps` steps were started.
  void MarkStepsStarted(std::size_t steps);
  /// Notes that a step failed half-way. The state that it writes cannot be read until it is written anew.
  void MarkBroken(const absl::Status& why);

 private:
  struct Refresh {
    StateEntry* derived;
    const StateEntry* source;
    bool written;        ///< the step writes the derived state itself
    bool between_steps;  ///< the step writes the source alone
  };

  StateEntries entries_;
  std::vector<Refresh> refreshes_;  ///< in the order of Program::refreshes
  std::vector<StateEntry*> written_;
};

}  // namespace mpc::runtime
