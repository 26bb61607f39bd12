// Counts what operator new allocates. A test that links this replaces the global operator new and operator delete, so
// it is a binary of its own.
#pragma once

#include <cstddef>

namespace mpc::testing {

struct Allocations {
  std::size_t calls = 0;
  std::size_t bytes = 0;
};

/// Counts from 0, on all threads, until StopCounting.
void StartCounting();
/// What was allocated since StartCounting.
Allocations StopCounting();

}  // namespace mpc::testing
