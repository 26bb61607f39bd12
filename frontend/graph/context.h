// Settings of the process: seed, device, and how the device runs steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace mpc {

/// Sets the seed of initial values, dropout and shuffling of everything created from now on, and restarts the random
/// streams. The same program after the same seed gives the same bits.
void SetSeed(std::uint64_t seed);
std::uint64_t GetSeed();

/// Fields `arch`, `graph`, `steps_per_launch`, `pad_classes`, `allow_tf32` and `allow_conv_statistics` are for device
/// "cuda", `allow_winograd` is for the CPU. Giving one of them for the other device is an error. The fields below
/// `mode` hold for the Models and Cells of the process that run on `device`; see docs/gpu.md and docs/tuning.md.
struct ContextOptions {
  std::string device = "cpu";  ///< "cpu", "cuda"
  int num_threads = 0;         ///< threads of the CPU backend; 0: OMP_NUM_THREADS, else usable processors
  /// Compute neighbouring operations in one generated kernel; see docs/fusion.md. Left out: true.
  std::optional<bool> fusion;
  /// Bytes that arena, state and constants of a compiled step may take together; 0: as much as the step takes. Until
  /// they fit, a language model's head is computed in chunks of rows. Then values kept for the backward pass are given
  /// up and computed again; see docs/memory.md.
  std::int64_t memory_budget = 0;
  /// Chunks that the rows of a language model's head are cut into, 1 to 4096, so that fewer logits live at a time; see
  /// docs/memory.md. With memory_budget this is the smallest number of chunks.
  std::int64_t head_chunks = 1;
  /// cuda: compute an f16 or bf16 head on classes that are padded to a multiple of 8; see docs/gpu.md. true: every
  /// head, false: none. Left out: those that gain from it.
  std::optional<bool> pad_classes;
  std::string mode = "graph";  ///< "graph": a step is compiled as a whole; there is no other mode
  /// Architecture to compile for, which this machine need not have: "sm_80", "sm_90". Such Programs can be saved, not
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

/// Errors: a mode other than "graph" (MindSpore's "pynative"); an unknown or missing device, with what exists or why it
/// is missing. Further errors: a negative thread count or memory budget, and steps_per_launch out of range. Two fields
/// that contradict each other are an error that names both: a field of "cuda" on another device, several steps a launch
/// without graphs.
absl::Status SetContext(const ContextOptions& options);
const ContextOptions& GetContext();

namespace internal {
/// The next random stream: one a Parameter, in order of creation.
std::int64_t NextStream();

/// Counts changes of what a network compiles to: freezing, training mode, pinned types, added Cells. As long as it
/// stands still, a Program that was found for some input types is the right one.
std::uint64_t StructureVersion();
void StructureChanged();
}  // namespace internal

}  // namespace mpc
