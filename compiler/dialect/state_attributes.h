// What arguments and results of a step are: roles of data and of state, and how state is stored.
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace mpc {

/// On an f32 argument of role "parameter": the low type ("f16", "bf16") that its state entry is stored in. The function
/// reads the stored value, widened.
inline constexpr llvm::StringLiteral StorageAttrName = "mpc.storage";

/// Roles of data. A capture is what the function of a network takes from the step around it.
inline constexpr llvm::StringLiteral InputRole = "input";
inline constexpr llvm::StringLiteral CaptureRole = "capture";
inline constexpr llvm::StringLiteral OutputRole = "output";
inline constexpr llvm::StringLiteral RecordRole = "record";

/// Roles of state that passes add.
inline constexpr llvm::StringLiteral DerivedRole = "derived";
inline constexpr llvm::StringLiteral AccumulatorRole = "accumulator";

inline constexpr llvm::StringLiteral DataRoles[] = {InputRole, CaptureRole, OutputRole, RecordRole};
inline constexpr llvm::StringLiteral StateRoles[] = {
    "parameter", "statistic", "slot", "step", "learning_rate", "rng", "scaler", DerivedRole, AccumulatorRole};

/// Whether a value of this role is state: an entry outlives the step. An empty role is data.
inline bool isStateRole(llvm::StringRef Role) { return llvm::is_contained(StateRoles, Role); }

} // namespace mpc
