// Attributes between the IR and the form that kernels and Programs share.
#pragma once

#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <optional>
#include <string_view>

namespace mpc {

/// Booleans, integers, floats, strings and dense i64 arrays; everything else (types, symbols, scopes) is left out.
Attributes toAttributes(mlir::DictionaryAttr dictionary);

/// The kernel that computes \p op: the one of its name. In one process it is mpc.all_reduce's for both parts of a sum
/// that others run beside.
std::string_view kernelName(mlir::Operation *op);

/// The inherent attributes of \p op, defaults included.
Attributes kernelAttributes(mlir::Operation *op);

/// Doubles become f32 attributes: the dialect's scalar constants are f32.
llvm::SmallVector<mlir::NamedAttribute> toNamedAttributes(mlir::MLIRContext *context, const Attributes &values);

/// The element type of \p type, or nullopt for one that the framework does not know.
std::optional<DType> toDType(mlir::Type type);
mlir::Type toType(mlir::MLIRContext *context, DType dtype);

/// A statically shaped tensor of a known element type.
TensorSpec toTensorSpec(mlir::RankedTensorType type);
mlir::RankedTensorType toTensorType(mlir::MLIRContext *context, const TensorSpec &spec);

} // namespace mpc
