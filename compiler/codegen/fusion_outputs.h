// When a region stores each output and reads each input.
#pragma once

#include "compiler/dialect/fusion_plan.h"
#include "llvm/ADT/SetVector.h"

namespace mpc::codegen {

/// An output is stored as soon as its value is available. Whole outputs and outputs of rows are stored in the phase
/// `when`. Outputs of columns and single outputs are stored where the sweep before `when` is combined. If nothing is
/// combined before, they are stored in the first sweep. From the next phase on a whole output is read back instead of
/// computed again.
class FusionOutputs {
public:
  struct Output {
    mlir::Value value;
    unsigned index; ///< index among the region's outputs
    Extent extent;
    Availability when;
  };

  FusionOutputs(FusionOp fusion, const FusionPlan &plan);

  /// Puts off outputs that are available before the last phase of their sweep. It is for a target that would rather
  /// store every element once and last. Only sums of two f32 inputs are put off: they are as quickly added again as
  /// read back. It happens only if all whole outputs of the sweep are then stored in its last phase. What
  /// FusionAliasing says holds as before: each position is read before it is stored.
  void putOffSums();

  llvm::ArrayRef<Output> all() const { return outputs; }
  /// The first output that is \p v and is stored before \p now, or null.
  const Output *storedBefore(mlir::Value v, Availability now) const;
  /// Whether output \p o is stored once, at the combination after \p sweep.
  bool isCombined(const Output &o, unsigned sweep) const;

  /// The inputs that are read in a phase of a sweep, with everything that it computes and stores.
  llvm::SetVector<mlir::Value> inputsRead(Availability at) const;
  /// The inputs that are read where \p sweep is combined.
  llvm::SetVector<mlir::Value> inputsCombined(unsigned sweep) const;

private:
  /// Returns the inputs that \p values are computed from at \p at.
  llvm::SetVector<mlir::Value> inputsBehind(llvm::ArrayRef<mlir::Value> values, Availability at) const;
  void collect(mlir::Value v, Availability at, llvm::SetVector<mlir::Value> &inputs,
               llvm::DenseSet<mlir::Value> &seen) const;

  const FusionPlan &plan;
  llvm::SmallVector<Output, 4> outputs;
};

} // namespace mpc::codegen
