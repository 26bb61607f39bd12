// What tensors and their element types are to every layer: floating or not, low or not, how many elements and bytes.
#pragma once

#include <cstdint>
#include <string>

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Value.h"

namespace mpc {

/// The element type of a tensor; the type itself of anything else.
inline mlir::Type elementOf(mlir::Value V) { return getElementTypeOrSelf(V.getType()); }

inline bool isFloating(mlir::Value V) { return llvm::isa<mlir::FloatType>(elementOf(V)); }

/// f16 or bf16; a null type is not low.
inline bool isLow(mlir::Type Element) { return Element && (Element.isF16() || Element.isBF16()); }

/// Elements of a tensor of static shape; 0 of anything else.
std::int64_t elementCount(mlir::Value V);

/// Bytes of a tensor of static shape in memory; 0 of anything else.
std::int64_t bytesOf(mlir::Value V);

/// Axis i of what is returned is axis Permutation[i] of what is given, as `mpc.transpose` has it.
llvm::SmallVector<std::int64_t> permuted(llvm::ArrayRef<std::int64_t> Extents,
                                         llvm::ArrayRef<std::int64_t> Permutation);
mlir::RankedTensorType permuted(mlir::Type Tensor, llvm::ArrayRef<std::int64_t> Permutation);

/// "f16", "tensor<2x3xf32>".
std::string typeText(mlir::Type Type);

} // namespace mpc
