// What a step does with values of the other processes that train together.
#pragma once

#include "compiler/dialect/dialect.h"
#include "passes/step/step_flow.h"

namespace mpc {

/// What a finite check finds.
struct Finding {
  mlir::Value finite; ///< whether all that it looks at is finite
  /// The position of the first gradient that is not; -1 where all is finite, -2 where the loss alone is not.
  mlir::Value firstBad;
};

/// The part of \p processes, at least two, in one step. Values of all processes have the same bits.
class ProcessMean {
public:
  explicit ProcessMean(int64_t processes) : processes(processes) {}

  bool isAlone() const { return processes == 1; }
  /// The sum over processes of \p share, an f32 value, where the builder stands.
  mlir::Value sum(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value share) const;
  /// The mean over processes of \p gradient, of its type, where the builder stands. It is computed in f32.
  mlir::Value mean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value gradient) const;
  /// What all processes found, where the builder stands. Of several bad gradients the largest position stays, and any
  /// position goes before -2.
  Finding agree(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value firstBad) const;

  /// Lets running statistics move by the batches of all processes, and generators draw for them. Emits an error and
  /// fails where other state would move by the rows of this process alone.
  llvm::LogicalResult shareState(mlir::func::FuncOp function, const StepFlow &flow) const;

private:
  void gatherStatistics(BatchNormRunningUpdateOp update) const;
  void advanceGenerator(IncrementOp counter) const;

  int64_t processes;
};

} // namespace mpc
