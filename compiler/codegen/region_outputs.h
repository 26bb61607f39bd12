// When a region stores each output and reads each input. This decides whether an output may lie over an input.
#pragma once

#include "compiler/dialect/region_plan.h"
#include "llvm/ADT/SetVector.h"

namespace mpc::codegen {

/// An output is stored as soon as its value is available. Whole outputs and outputs of rows are stored in the phase
/// `when`. Outputs of columns and single outputs are stored where the sweep before `when` is combined. If nothing is
/// combined before, they are stored in the first sweep. From the next phase on a whole output is read back instead of
/// computed again.
class RegionOutputs {
public:
  struct Output {
    mlir::Value value;
    unsigned index; ///< index among the region's outputs
    Extent extent;
    Availability when;
  };

  RegionOutputs(FusionOp Fusion, const RegionPlan &Plan);

  /// Puts off outputs that are available before the last phase of their sweep. It is for a target that would rather
  /// store every element once and last. Only sums of two f32 inputs are put off: they are as quickly added again as
  /// read back. It happens only if all whole outputs of the sweep are then stored in its last phase. `mayAlias` holds
  /// as before: each position is read before it is stored.
  void putOffSums();

  llvm::ArrayRef<Output> all() const { return Outputs; }
  /// The first output that is \p V and is stored before \p Now, or null.
  const Output *storedBefore(mlir::Value V, Availability Now) const;
  /// Whether output \p O is stored once, at the combination after \p Sweep.
  bool isCombined(const Output &O, unsigned Sweep) const;

  /// The inputs that are read in a phase of a sweep, with everything that it computes and stores.
  llvm::SetVector<mlir::Value> inputsRead(Availability At) const;
  /// The inputs that are read where \p Sweep is combined.
  llvm::SetVector<mlir::Value> inputsCombined(unsigned Sweep) const;

private:
  /// Returns the inputs that \p Values are computed from at \p At.
  llvm::SetVector<mlir::Value> inputsBehind(llvm::ArrayRef<mlir::Value> Values, Availability At) const;
  void collect(mlir::Value V, Availability At, llvm::SetVector<mlir::Value> &Inputs,
               llvm::DenseSet<mlir::Value> &Seen) const;
  bool isReduced(mlir::Value V) const;

  const RegionPlan &Plan;
  llvm::SmallVector<Output, 4> Outputs;
};

} // namespace mpc::codegen
