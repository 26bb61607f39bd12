// Discardable attributes of state arguments beside role and name.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace mpc {

/// On an f32 argument of role "parameter": the low type ("f16", "bf16") that its state entry is stored in. The function
/// reads the stored value, widened.
inline constexpr llvm::StringLiteral StorageAttrName = "mpc.storage";

/// Roles of state that passes add.
inline constexpr llvm::StringLiteral DerivedRole = "derived";
inline constexpr llvm::StringLiteral AccumulatorRole = "accumulator";

} // namespace mpc
