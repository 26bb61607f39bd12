// A step that records a hash of the state that it leaves.
#pragma once

#include "runtime/program.h"

namespace mpc::runtime {

/// The name of the output that holds the hash, one i64.
inline constexpr char kStateHashOutput[] = "state_hash";

/// Adds to the end of the step an instruction that hashes the state after it (kernels/state_hash.h), and its output.
/// Each bound entry counts with its name, but for derived state and for accumulators, which the next step rebuilds.
/// Equal bits of that state give equal hashes in every Program that binds the same entries.
void AddStateHash(Program& program);

}  // namespace mpc::runtime
