// A step that is recorded as a graph with branches: calls that do not need each other may run at once.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/branch_plan.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/device_step.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/stream_queue.h"

namespace mpc::runtime {

class StepBranches {
 public:
  /// At most `branches` branches, each with a stream; 1: the calls stay in their order. Errors: CUDA's.
  static absl::StatusOr<StepBranches> Create(CudaApi& api, const DeviceStep& step, std::size_t branches);

  /// Enqueues the calls of the step behind the work of `main`, whose stream captures a graph. What is enqueued on
  /// `main` afterwards comes behind all of them. Errors: the kernel's, with the instruction and its Cell; CUDA's.
  absl::Status Enqueue(const DeviceStep& step, StreamQueue& main) const;

 private:
  absl::Status CreateEvents(CudaApi& api);

  CudaApi* api_ = nullptr;
  std::vector<BranchPlace> places_;   ///< one a call
  std::vector<OwnedStream> streams_;  ///< one a branch behind the first, which has that of `main`
  OwnedEvent begin_;
  std::vector<OwnedEvent> done_;  ///< one a call; empty where no other branch awaits it
};

}  // namespace mpc::runtime
