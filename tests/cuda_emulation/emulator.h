// Runs CUDA kernels on the host: each thread of a block is a fiber, barriers and warp operations are rendezvous, shared
// memory is poisoned when a block begins, and the order in which threads and blocks run is permuted. Bounds and races
// that depend on that order show as wrong results or as sanitizer reports. What it cannot find: errors of memory
// ordering between threads that run truly at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/kernel.h"

namespace mpc::emulation {

/// Orders of threads and blocks. Any order must give the same bits.
struct Options {
  std::uint64_t seed = 1;  ///< 0: ascending, as far as barriers let them
};
void SetOptions(const Options& options);

/// Shared memory that a block may take without asking the device for more, and that a launch may ask for: sm_90's.
inline constexpr std::size_t kSharedBytes = 48 * 1024;
inline constexpr std::size_t kMostDynamicSharedBytes = 227 * 1024;
inline constexpr unsigned kMaxThreads = 1024;

/// Runs every thread of the launch to its end. Errors: a grid, a block or shared memory beyond what sm_90 takes
/// (INVALID_ARGUMENT); threads that wait at different barriers, or for a block or warp whose other threads have left
/// (INTERNAL, with the thread indices); a shuffle from a lane that does not take part, a write to a shared array's
/// guard; a kernel that says it awaits earlier launches and whose threads do not, once each (INTERNAL). After an error
/// the kernel's results are undefined. Launches of several host threads take turns.
absl::Status Run(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                 absl::Span<const cuda::KernelArgument> arguments);

/// A queue that runs each launch at once.
class Queue : public cuda::LaunchQueue {
 public:
  absl::Status Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                      absl::Span<const cuda::KernelArgument> arguments) override {
    return Run(function, shape, arguments);
  }
  /// INVALID_ARGUMENT if the two overlap.
  absl::Status Copy(void* to, const void* from, std::size_t bytes) override;
  absl::Status Fill(void* to, std::uint8_t byte, std::size_t bytes) override;
  void* stream() override { return nullptr; }
};

}  // namespace mpc::emulation
