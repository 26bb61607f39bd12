// Settings of the process: seed and device.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace mpc {

/// Sets the seed of initial values, dropout and shuffling of everything created from now on, and restarts the streams:
/// the same program after the same seed gives the same bits.
void SetSeed(std::uint64_t seed);
std::uint64_t GetSeed();

struct ContextOptions {
  std::string device = "cpu";  ///< "cpu"
  int num_threads = 0;         ///< of the CPU backend; 0: OMP_NUM_THREADS, else one a core
  std::string mode = "graph";  ///< "graph": a step is compiled as a whole. There is no other
};

/// Errors: another mode (MindSpore's "pynative"), an unknown device (what exists), a negative thread count.
absl::Status SetContext(const ContextOptions& options);
const ContextOptions& GetContext();

namespace internal {
/// The next random stream: one a Parameter, in order of creation.
std::int64_t NextStream();

/// Counts changes of what a network compiles to (freezing, training mode, pinned types, added Cells): as long as it
/// stands still, a Program that was found for some input types is the right one.
std::uint64_t StructureVersion();
void StructureChanged();
}  // namespace internal

}  // namespace mpc
