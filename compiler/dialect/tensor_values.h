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
inline mlir::Type elementOf(mlir::Value v) { return getElementTypeOrSelf(v.getType()); }

/// Whether the type is floating and nothing but a cast reads or writes it: f8. A null type is not.
bool isCastOnly(mlir::Type element);

/// Whether operations compute with the value as a floating number: types that only casts take are data, as integers
/// are.
inline bool isFloating(mlir::Value v) { return llvm::isa<mlir::FloatType>(elementOf(v)) && !isCastOnly(elementOf(v)); }

/// Whether mixed precision stores and multiplies in the type: f16 or bf16. A null type is not low.
bool isLow(mlir::Type element);

/// Whether every value of floating type \p narrow is one of floating type \p wide: a type widens to itself.
bool widensExactly(mlir::Type narrow, mlir::Type wide);

/// Elements of a tensor of static shape; 0 of anything else.
std::int64_t elementCount(mlir::Value v);

/// Bytes of a tensor of static shape in memory; 0 of anything else.
std::int64_t bytesOf(mlir::Value v);

/// Axis i of what is returned is axis Permutation[i] of what is given, as `mpc.transpose` has it.
llvm::SmallVector<std::int64_t> permuted(llvm::ArrayRef<std::int64_t> extents,
                                         llvm::ArrayRef<std::int64_t> permutation);
mlir::RankedTensorType permuted(mlir::Type tensor, llvm::ArrayRef<std::int64_t> permutation);

/// "f16", "tensor<2x3xf32>".
std::string typeText(mlir::Type type);

} // namespace mpc
