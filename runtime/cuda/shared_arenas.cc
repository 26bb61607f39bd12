#include "runtime/cuda/shared_arenas.h"

#include <algorithm>
#include <utility>

namespace mpc::runtime {

std::shared_ptr<DeviceMemory> SharedArenas::SmallestOf(std::size_t bytes) const {
  std::shared_ptr<DeviceMemory> smallest;
  std::size_t size = 0;
  for (const Arena& arena : arenas_) {
    if (arena.bytes < bytes || (smallest != nullptr && arena.bytes >= size)) continue;
    if (std::shared_ptr<DeviceMemory> memory = arena.memory.lock(); memory != nullptr) {
      smallest = std::move(memory);
      size = arena.bytes;
    }
  }
  return smallest;
}

std::size_t SharedArenas::BytesToAllocate(std::size_t bytes) const { return SmallestOf(bytes) == nullptr ? bytes : 0; }

std::size_t SharedArenas::BytesHeld() const {
  std::size_t bytes = 0;
  for (const Arena& arena : arenas_) bytes += arena.memory.expired() ? 0 : arena.bytes;
  return bytes;
}

absl::StatusOr<std::shared_ptr<DeviceMemory>> SharedArenas::Take(CudaApi& api, std::size_t bytes) {
  if (std::shared_ptr<DeviceMemory> memory = SmallestOf(bytes); memory != nullptr) return memory;
  auto memory = std::make_shared<DeviceMemory>();
  if (absl::Status status = Allocate(api, bytes, *memory); !status.ok()) return status;
  arenas_.erase(std::remove_if(arenas_.begin(), arenas_.end(), [](const Arena& a) { return a.memory.expired(); }),
                arenas_.end());
  arenas_.push_back({bytes, memory});
  return memory;
}

}  // namespace mpc::runtime
