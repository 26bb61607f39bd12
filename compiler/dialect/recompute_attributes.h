// Discardable attributes of operations that run again in the backward pass.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace mpc {

/// On an operation of the forward pass, an integer: the call of a Cell with Recompute() that it was traced in. Values
/// inside a call are computed again where the backward pass reads them.
inline constexpr llvm::StringLiteral RecomputeAttrName = "mpc.recompute";

/// On an operation of the backward pass: it computes again what an operation of the forward pass has computed.
inline constexpr llvm::StringLiteral RecomputedAttrName = "mpc.recomputed";

/// On a function whose step was fitted to a memory budget: how many candidates for recomputation there were, first
/// those without matrix work, then Cells with it.
inline constexpr llvm::StringLiteral RecomputeCandidatesAttrName = "mpc.recompute_candidates";

} // namespace mpc
