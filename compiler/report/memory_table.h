// The contents of a Program's arena at its peak, as plain rows. They are the data behind the memory part of the report.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"
#include "runtime/program.h"

namespace mpc::compiler {

/// What storage in the arena is for.
enum class StorageUse : std::uint8_t {
  Input,
  Forward,   ///< computed by the forward pass: what is still live in the backward pass was saved for it
  Backward,  ///< cotangents, and what is computed again in the backward pass
  Gradient,  ///< gradients of parameters, which the finite check, clipping and optimizers read
  Update,    ///< other values of the update
  Workspace, ///< scratch of one instruction
};

inline constexpr std::size_t kStorageUses = 6;

/// "forward", "gradients".
const char *StorageUseName(StorageUse use);

/// Storage that holds one value, or the values that are written over each other.
struct MemoryRow {
  StorageUse use = StorageUse::Forward;
  std::string op;   ///< the operation that wrote it: "conv2d"; an input's name
  std::string path; ///< Cell path; empty outside Cells
  std::string type; ///< "32x64x56x56xf16"; empty for a workspace
  std::int64_t bytes = 0;
  std::size_t first = 0; ///< instructions, both included
  std::size_t last = 0;
  std::size_t offset = 0; ///< in the arena
};

struct MemoryTable {
  std::size_t instructions = 0;
  std::size_t peak = 0;              ///< the first instruction at which most bytes are live
  std::string peak_op, peak_path;    ///< operation and Cell path of that instruction
  std::int64_t peak_bytes = 0;       ///< live there: no packing can be smaller
  std::int64_t activation_bytes = 0; ///< the largest sum of live bytes without gradients of parameters
  std::vector<MemoryRow> rows;       ///< what is live at the peak, largest first
  std::vector<MemoryRow> lives;      ///< all storage of the step, in the order in which it becomes live
  /// Bytes that are live at each instruction, by StorageUse. What is written over an operand counts in its place.
  std::vector<std::array<std::int64_t, kStorageUses>> live;
  std::vector<std::size_t> operations; ///< the instruction of each operation that is no view and no constant, in order

  /// Bytes of the rows of one use.
  std::int64_t bytes(StorageUse use) const;
};

/// The table of a Program that was lowered from function `program.name` of `module`. Errors: NOT_FOUND where the module
/// has no such function, INVALID_ARGUMENT where the two do not belong together.
absl::StatusOr<MemoryTable> TabulateMemory(const runtime::Program &program, const Module &module);

/// A step cannot update this state in place.
struct StateCopy {
  std::string state;
  std::int64_t bytes = 0;
  std::string reason;
};

/// Returns the copies of a step in its order.
std::vector<StateCopy> StateCopies(const runtime::Program &program);

} // namespace mpc::compiler
