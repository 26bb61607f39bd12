// Validation of a Program before it is bound: a malformed one is an error, never undefined behaviour.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// Checks that indices are in range, tensors and workspaces lie inside the arena or the constants on 64-byte
/// boundaries, a constant lies among the given ones or in one fill, state values match their bindings, only what may be
/// written is written, inputs and outputs are declared, state names are unique, each derived state has one refresh that
/// reads its source alone, code is of a known format and has, once, each function that a generated instruction calls,
/// and flat updates are what flat_updates.h asks of them. That temporaries which are live together do not overlap is
/// the planner's contract and not checked. Errors (INVALID_ARGUMENT): everything that is wrong, listed.
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
