// How much memory this machine has.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace mpc::runtime {

/// Bytes. A system promises more than it has, and ends a process that uses what was promised.
inline std::size_t PhysicalMemory() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace mpc::runtime
