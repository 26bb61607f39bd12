// Validation of a Program before it is bound: a malformed one is an error, never undefined behaviour.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// Bytes of a value, of the arena and of the constants at most. No address space in use has more, and sums of two do
/// not overflow.
inline constexpr std::size_t kMostProgramBytes = std::size_t{1} << 48;

/// Checks what the parts of a Program promise each other:
///
/// * Indices are in range, and state names are unique.
/// * Tensors and workspaces lie inside the arena or the constants on 64-byte boundaries. A constant lies among the
/// given
///   ones or in one fill.
/// * State values match their bindings, and only what may be written is written. Inputs and outputs are declared.
/// * Each derived state has one refresh, which reads its source alone.
/// * Each sequence behind the step is run by one instruction of a sequence in front of it. It writes no state that this
///   instruction does not. There are at most kMostSequences, kDeepestSequence deep, run kMostRuns times in a step.
/// * Code is of a known format and has, once, each function that a generated instruction calls.
/// * Flat updates are what flat_updates.h asks of them.
///
/// That temporaries which are live together do not overlap is the planner's contract and not checked. Errors
/// (INVALID_ARGUMENT): everything that is wrong, listed.
absl::Status CheckProgram(const Program& program);

/// How a Program uses each of its state bindings.
struct StateUse {
  /// The first use, in execution order, is a read. Never for derived state: it is rebuilt first.
  bool read_before_written = false;
  bool written = false;
};

/// One StateUse a binding. `program` has passed CheckProgram.
std::vector<StateUse> FindStateUses(const Program& program);

}  // namespace mpc::runtime
