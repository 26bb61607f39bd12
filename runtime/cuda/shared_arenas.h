// The memory of temporaries that the Programs of one GPU share.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/handles.h"

namespace mpc::runtime {

/// Steps of all Programs run one after another on one stream, and no step reads what an earlier one left in its arena.
/// So a Program takes the memory of another one where that is large enough. Memory never grows or moves, since graphs
/// hold its addresses: a Program that needs more gets memory of its own, which later ones may take.
///
/// Calls are made one at a time, under the context's mutex.
class SharedArenas {
 public:
  /// The memory of at least `bytes` bytes, whose owners keep it: the smallest that is large enough, or new memory.
  /// Errors: those of CudaApi::Malloc.
  absl::StatusOr<std::shared_ptr<DeviceMemory>> Take(CudaApi& api, std::size_t bytes);

  /// What Take would allocate: 0 where a Program has memory that is large enough.
  std::size_t BytesToAllocate(std::size_t bytes) const;
  /// The bytes that Programs hold now, each memory counted once.
  std::size_t BytesHeld() const;

 private:
  struct Arena {
    std::size_t bytes;
    std::weak_ptr<DeviceMemory> memory;
  };
  std::shared_ptr<DeviceMemory> SmallestOf(std::size_t bytes) const;

  std::vector<Arena> arenas_;
};

}  // namespace mpc::runtime
