// Settings of the process: seed, device, and how the device runs steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace mpc {

/// Sets the seed of initial values, dropout and shuffling of everything created from now on, and restarts the streams:
/// the same program after the same seed gives the same bits.
void SetSeed(std::uint64_t seed);
std::uint64_t GetSeed();

/// `arch`, `graph`, `steps_per_launch`, `allow_tf32` and `allow_conv_statistics` are of device "cuda", `allow_winograd`
/// is of the CPU; the other device refuses each that is given. What is below `mode` holds for the Models and Cells of
/// the process that run on `device`; see docs/gpu.md and docs/tuning.md.
struct ContextOptions {
  std::string device = "cpu";  ///< "cpu", "cuda"
  int num_threads = 0;         ///< of the CPU backend; 0: OMP_NUM_THREADS, else one a core
  /// Compute neighbouring operations in one generated kernel; see docs/fusion.md. Left out: on the CPU.
  std::optional<bool> fusion;
  /// Bytes that arena, state and constants of a compiled step may take together: a language model's head is computed in
  /// chunks of rows, then what is kept for the backward pass is given up and computed again, until they fit; see
  /// docs/memory.md. 0: as much as the step takes.
  std::int64_t memory_budget = 0;
  /// Parts that the rows of a language model's head are cut into, 1 to 4096, so that fewer logits live at a time; see
  /// docs/memory.md. With memory_budget: at least.
  std::int64_t head_chunks = 1;
  std::string mode = "graph";  ///< "graph": a step is compiled as a whole. There is no other
  /// What to compile for where the device itself need not be here: "sm_80", "sm_90". Such Programs can be saved, not
  /// run. Empty: this machine's device.
  std::string arch;
  std::optional<bool> graph;  ///< replay a step as one CUDA graph; false: start its kernels one by one. Left out: true
  int steps_per_launch = 1;   ///< 1 to 64: training steps that one graph holds, where the callbacks allow it
  bool allow_tf32 = false;    ///< f32 products on tensor cores, with 10 bits of mantissa
  /// f16 convolutions compute the statistics of the batch normalisation behind them, in f32; see docs/gpu.md
  bool allow_conv_statistics = false;
  bool allow_winograd = false;  ///< f32 convolutions by Winograd's algorithm, which is faster and rounds more
  bool tune = false;            ///< choose kernels by timing them while compiling, not by rules and heuristics
  std::string choice_cache;     ///< file of choices from earlier runs, read and written; empty: none
};

/// Errors: another mode (MindSpore's "pynative"), an unknown or missing device (what exists, why it is missing), a
/// negative thread count or memory budget, steps_per_launch out of range; two fields that contradict each other, with
/// both: a field of "cuda" on another device, several steps a launch without graphs.
absl::Status SetContext(const ContextOptions& options);
/// What SetContext checks before it looks for the device.
absl::Status CheckContext(const ContextOptions& options);
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
