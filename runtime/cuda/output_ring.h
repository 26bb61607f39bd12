// The outputs of the last steps, in pinned memory. The device writes them there at the end of each step. The host reads
// them while later steps run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/copies.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/device_step.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/input_staging.h"
#include "runtime/program.h"

namespace mpc::runtime {

class OutputRing {
 public:
  /// Allocates room for the outputs of `steps` steps in each buffer, and for what Save keeps. Errors: no memory.
  absl::Status Create(CudaApi& api, const Program& program, const DeviceAddresses& addresses, std::size_t steps);

  /// Enqueues the copies of the outputs of step `step` of a launch, at its end.
  absl::Status Enqueue(CudaApi& api, std::size_t buffer, std::size_t step, CudaApi::Stream stream) const;

  /// Output `index` of step `step` of the launch that used `buffer`. The launch is done.
  absl::Span<const std::uint8_t> Get(std::size_t buffer, std::size_t step, std::size_t index) const {
    return OutputAt(Place(buffer, step), index);
  }

  /// Keeps the outputs of one step of a launch that is done, under its number: the buffer is about to be used again.
  void Save(std::size_t buffer, std::size_t step, std::uint64_t number);
  /// The output that Save kept of step `number`, one of the last kLaunchesInFlight * steps.
  absl::Span<const std::uint8_t> Saved(std::uint64_t number, std::size_t index) const;

 private:
  /// The copies of one step's outputs.
  struct Copies {
    std::vector<CopyRange> small;  ///< copied in one launch
    std::vector<CopyRange> large;  ///< copied one by one
  };

  const std::byte* Place(std::size_t buffer, std::size_t step) const {
    return static_cast<const std::byte*>(pinned_.get()) + (buffer * steps_ + step) * stride_;
  }
  absl::Span<const std::uint8_t> OutputAt(const std::byte* place, std::size_t index) const {
    return {reinterpret_cast<const std::uint8_t*>(place) + offsets_[index], bytes_[index]};
  }

  PinnedMemory pinned_;
  std::vector<Copies> copies_;  ///< [buffer * steps + step]
  std::vector<std::byte> saved_;
  std::vector<std::size_t> offsets_, bytes_;  ///< one an output
  std::size_t stride_ = 0;                    ///< bytes of a step's outputs
  std::size_t steps_ = 0;
};

}  // namespace mpc::runtime
