// How much memory this machine has, and what may need more.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <new>

#include "absl/status/status.h"

namespace mpc::runtime {

/// Bytes. A system promises more than it has, and ends a process that uses what was promised.
inline std::size_t PhysicalMemory() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// make(), which allocates about `bytes`. Its result is an absl::Status or StatusOr. Errors: those of `make`.
/// RESOURCE_EXHAUSTED with the text of message() where the machine has less memory or the system gives none. `make` is
/// not called for more than the machine has.
template <typename Make, typename Message>
auto MakeWithinMemory(std::size_t bytes, const Make& make, const Message& message) -> decltype(make()) {
  if (bytes > PhysicalMemory()) return absl::ResourceExhaustedError(message());
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(message());
  }
}

}  // namespace mpc::runtime
