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
std::unique_ptr<mlir::MLIRContext> MakeContext();

/// A context of the calling thread, which lives as long as it does. Making one takes longer than what most tests do
/// with a small module.
mlir::MLIRContext& ThreadContext();

/// The module that \p text spells; null, with a message on stderr, if it does not parse or verify.
mlir::OwningOpRef<mlir::ModuleOp> ParseModule(mlir::MLIRContext& context, std::string_view text);

/// `@forward`: the operands of the case in \p dtype to its results.
mlir::OwningOpRef<mlir::ModuleOp> ForwardModule(mlir::MLIRContext& context, const op_cases::OpCase& op_case,
                                                DType dtype);

/// `@gradients`: the operands and a cotangent of the first result (of its shape, f32) to the gradient of
/// `reduce_sum(result * cotangent)` by each differentiable operand. Other results take no part: a derivative by saved
/// statistics does not exist.
mlir::OwningOpRef<mlir::ModuleOp> GradientModule(mlir::MLIRContext& context, const op_cases::OpCase& op_case,
                                                 DType dtype);

/// Runs mpc-autodiff and the verifier.
llvm::LogicalResult RunAutodiff(mlir::ModuleOp module);

/// The textual form of \p module.
std::string printed(mlir::ModuleOp module);

}  // namespace mpc
