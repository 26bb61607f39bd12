// Where the heads of attention lie in tensors that hold more than them.
#pragma once

#include "mlir/IR/Value.h"

#include <cstdint>

namespace mpc {

/// One of several tensors [B, H, T, D] that a tensor [B, T, count * H * D] holds in each row, one behind the other.
struct PackedPart {
  int64_t index, count;
};

/// Returns the value of which \p heads, [B, H, T, D], are a copy of \p part; null where they are none. The value may
/// have any shape: its elements are those of [B, T, count * H * D], in order. Reshapes, transposes, slices and splits
/// may lie between the two.
mlir::Value packedSourceOf(mlir::Value heads, PackedPart part);

/// The reverse: returns the value that holds a copy of \p heads as \p part; null where there is none. Reshapes,
/// transposes and concatenations may lie between. Nothing else may read \p heads or what lies between.
mlir::Value packedCopyOf(mlir::Value heads, PackedPart part);

} // namespace mpc
