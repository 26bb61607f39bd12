// Questions about tensors and their element types that every layer asks: floating or not, low or not, how many elements
// and bytes.
#pragma once

#include <cstdint>
#include <string>

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Value.h"

namespace mpc {

/// The element type of a tensor; the type itself of anything else.
inline mlir::Type elementOf(mlir::Value V) { return getElementTypeOrSelf(V.getType()); }

/// Whether the type is floating and nothing but a cast reads or writes it: f8. A null type is not.
bool isCastOnly(mlir::Type Element);

/// Whether operations compute with the value as a floating number: types that only casts take are data, as integers
/// are.
inline bool isFloating(mlir::Value V) { return llvm::isa<mlir::FloatType>(elementOf(V)) && !isCastOnly(elementOf(V)); }

/// Whether mixed precision stores and multiplies in the type: f16 or bf16. A null type is not low.
bool isLow(mlir::Type Element);

/// Whether every value of floating type \p Narrow is one of floating type \p Wide: a type widens to itself.
bool widensExactly(mlir::Type Narrow, mlir::Type Wide);

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
