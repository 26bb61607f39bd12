#include <algorithm>
#include <cstdint>

#include "kernels/cuda/copies.h"
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/storage.h"

namespace mpc::cuda {
namespace {

constexpr int kCopyThreads = 256;
constexpr int kCopiesPerLaunch = 128;

struct CopyList {
  CopyRange copies[kCopiesPerLaunch];
};

/// blockIdx.y chooses the copy.
__global__ void __launch_bounds__(kCopyThreads) CopyKernel(CopyList list) {
  AwaitEarlierLaunches();
  const CopyRange copy = list.copies[blockIdx.y];
  const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::uintptr_t addresses =
      reinterpret_cast<std::uintptr_t>(copy.to) | reinterpret_cast<std::uintptr_t>(copy.from);
  const std::size_t vectors = addresses % sizeof(Bits128) == 0 ? copy.bytes / sizeof(Bits128) : 0;
  for (std::size_t i = thread; i < vectors; i += threads) {
    static_cast<Bits128*>(copy.to)[i] = static_cast<const Bits128*>(copy.from)[i];
  }
  for (std::size_t i = vectors * sizeof(Bits128) + thread; i < copy.bytes; i += threads) {
    static_cast<unsigned char*>(copy.to)[i] = static_cast<const unsigned char*>(copy.from)[i];
  }
}

absl::Status LaunchCopies(const CopyList& list, unsigned count, std::size_t largest, LaunchQueue& queue) {
  if (count == 0) return absl::OkStatus();
  LaunchShape shape;
  shape.threads = kCopyThreads;
  shape.blocks_x = BlocksFor(static_cast<std::int64_t>(largest), kCopyThreads * sizeof(Bits128));
  shape.blocks_y = count;
  return launch(queue, &CopyKernel, shape, list);
}

}  // namespace

absl::Status EnqueueCopies(absl::Span<const CopyRange> copies, LaunchQueue& queue) {
  CopyList list{};
  unsigned count = 0;
  std::size_t largest = 0;
  for (const CopyRange& copy : copies) {
    if (copy.bytes == 0 || copy.to == copy.from) continue;
    if (copy.bytes > kLargeCopy) {
      if (absl::Status status = queue.Copy(copy.to, copy.from, copy.bytes); !status.ok()) return status;
      continue;
    }
    list.copies[count++] = copy;
    largest = std::max(largest, copy.bytes);
    if (count < kCopiesPerLaunch) continue;
    if (absl::Status status = LaunchCopies(list, count, largest, queue); !status.ok()) return status;
    count = 0;
    largest = 0;
  }
  return LaunchCopies(list, count, largest, queue);
}

}  // namespace mpc::cuda
