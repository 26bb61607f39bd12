// The way of inputs to the device. The host writes them into pinned memory. A stream of their own uploads them into
// device memory while the previous step runs. The step then copies them to where its kernels read them. There are two
// buffers of each kind, used in turn.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/copies.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/device_step.h"
#include "runtime/executable.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// The number of launches that may be under way at once: one runs, one waits.
inline constexpr std::size_t kLaunchesInFlight = 2;

class InputStaging {
 public:
  /// Allocates room for the inputs of `steps` steps in each buffer. Errors: no memory.
  absl::Status Create(CudaApi& api, const Program& program, const DeviceAddresses& addresses, std::size_t steps);

  /// Copies the inputs of step `step` of a launch into the pinned memory of `buffer`, which no upload reads any more.
  void Write(std::size_t buffer, std::size_t step, StepInputs inputs);

  /// Uploads the inputs that were written for `steps` steps. The upload waits for `buffer_free`, which was recorded
  /// when the previous launch with this buffer no longer needed it. It is null where there was no such launch. The
  /// compute stream waits for the upload.
  absl::Status Upload(CudaContext& context, std::size_t buffer, std::size_t steps, CudaApi::Event buffer_free);

  /// The event that is recorded when the upload of a buffer is complete. Its pinned memory may then be written again.
  CudaApi::Event uploaded(std::size_t buffer) const { return buffers_[buffer].uploaded.get(); }

  /// Enqueues the copies from the buffer into the arena, for step `step` of a launch.
  absl::Status Enqueue(std::size_t buffer, std::size_t step, cuda::LaunchQueue& queue) const {
    return cuda::EnqueueCopies(to_arena_[buffer * steps_ + step], queue);
  }

  bool empty() const { return stride_ == 0; }
  /// Bytes that staging takes on the device, for launches of `steps` steps.
  static std::size_t DeviceBytes(const Program& program, std::size_t steps);

 private:
  struct StagingBuffers {
    PinnedMemory pinned;
    DeviceMemory device;
    OwnedEvent uploaded;
  };

  std::array<StagingBuffers, kLaunchesInFlight> buffers_;
  std::vector<std::vector<CopyRange>> to_arena_;  ///< [buffer * steps + step]
  std::vector<std::size_t> offsets_;              ///< one an input
  std::size_t stride_ = 0;                        ///< bytes of a step's inputs
  std::size_t steps_ = 0;
};

}  // namespace mpc::runtime
