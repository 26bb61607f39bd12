// One copy of bytes within the memory that a step uses.
#pragma once

#include <cstddef>

namespace mpc {

/// On a GPU both addresses are the device's own memory or pinned host memory.
struct CopyRange {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

}  // namespace mpc
