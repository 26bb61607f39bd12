// Attributes between the IR and the form that kernels and Programs share.
#pragma once

#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace mpc {

/// Booleans, integers, floats, strings and dense i64 arrays; everything else (types, symbols, scopes) is left out.
Attributes toAttributes(mlir::DictionaryAttr Dictionary);

/// The inherent attributes of \p Op, defaults included.
Attributes kernelAttributes(mlir::Operation *Op);

/// Doubles become f32 attributes: the dialect's scalar constants are f32.
llvm::SmallVector<mlir::NamedAttribute> toNamedAttributes(mlir::MLIRContext *Context, const Attributes &Values);

/// The element type of \p Type, or nullopt for one that the framework does not know.
std::optional<DType> toDType(mlir::Type Type);
mlir::Type toType(mlir::MLIRContext *Context, DType Dtype);

/// A statically shaped tensor of a known element type.
TensorSpec toTensorSpec(mlir::RankedTensorType Type);
mlir::RankedTensorType toTensorType(mlir::MLIRContext *Context, const TensorSpec &Spec);

} // namespace mpc
