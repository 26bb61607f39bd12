// Memory for measuring what reads it.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "runtime/aligned_buffer.h"

namespace mpc::runtime {

/// Adds a buffer of zeros that were written. Pages that nothing has written are one page to those who read them, which
/// the core's first cache holds.
inline void* AddTouched(std::vector<AlignedBuffer>& memory, std::size_t bytes) {
  return std::memset(memory.emplace_back(bytes).data(), 0, bytes);
}

}  // namespace mpc::runtime
