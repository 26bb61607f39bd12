// IR modules made from the table of operation cases.
#pragma once

#include <string>
#include <string_view>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "tests/op_cases/op_case.h"

namespace mpc {

/// A context with the dialects of a training step.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// The module that \p Text spells; null, with a message on stderr, if it does not parse or verify.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(mlir::MLIRContext& Context, std::string_view Text);

/// `@forward`: the operands of the case in \p Dtype to its results.
mlir::OwningOpRef<mlir::ModuleOp> forwardModule(mlir::MLIRContext& Context, const op_cases::OpCase& Case, DType Dtype);

/// `@gradients`: the operands and a cotangent of the first result (of its shape, f32) to the gradient of
/// `reduce_sum(result * cotangent)` by each differentiable operand. Other results take no part: a derivative by saved
/// statistics does not exist.
mlir::OwningOpRef<mlir::ModuleOp> gradientModule(mlir::MLIRContext& Context, const op_cases::OpCase& Case, DType Dtype);

/// Runs mpc-autodiff and the verifier.
llvm::LogicalResult runAutodiff(mlir::ModuleOp Module);

/// The textual form of \p Module.
std::string printed(mlir::ModuleOp Module);

}  // namespace mpc
