// What the parts of a wrap read and change a training step by.
#pragma once

#include "compiler/dialect/state_attributes.h"
#include "passes/step/step_flow.h"

#include <optional>

namespace mpc {

/// A training step that is wrapped, and the place where the next operation goes.
struct StepEdit {
  StepEdit(mlir::func::FuncOp function, const StepFlow &flow);

  mlir::Block &getBody() { return function.getBody().front(); }
  llvm::ArrayRef<GradientRequest> getRequests() const { return flow.getRequests(); }

  /// Adds state as the last argument. \p of names the state that it belongs to.
  mlir::Value addArgument(mlir::Type type, Role given, llvm::StringRef name, llvm::StringRef of = "");
  /// Returns \p result as the last result.
  void appendResult(mlir::Value result, Role given, llvm::StringRef name);
  /// Makes an i32 scalar where the builder stands.
  mlir::Value constant(int32_t number);

  mlir::func::FuncOp function;
  const StepFlow &flow; ///< the step as it was before the wrap
  mlir::OpBuilder builder;
  mlir::Location loc; ///< that of the first request
  mlir::func::ReturnOp returnOp;
};

/// The type of a tensor without axes.
inline mlir::RankedTensorType scalarType(mlir::Type element) { return mlir::RankedTensorType::get({}, element); }

/// Makes an i32 scalar where \p builder stands.
mlir::Value integerScalar(mlir::OpBuilder &builder, mlir::Location loc, int32_t number);

/// The one of two operations of a block that comes later. Null comes before every operation.
mlir::Operation *later(mlir::Operation *a, mlir::Operation *b);

/// Makes one flag of any or all of \p given behind the last of them, which operations compute. A single flag stays as
/// it is; without \p loc the new one has the location of the last.
mlir::Value reduceFlags(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> given, bool any,
                        std::optional<mlir::Location> loc = {});

} // namespace mpc
