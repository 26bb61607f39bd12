// When each output of a region is stored and what is read when: what decides whether an output may lie over an input.
#pragma once

#include "compiler/dialect/region_plan.h"
#include "llvm/ADT/SetVector.h"

namespace mpc::codegen {

/// An output is stored as soon as it can be had: whole ones and those of rows in the phase `when`; those of columns and
/// single ones where the sweep before `when` is combined, or in the first sweep if nothing is combined before. From the
/// next phase on a whole output is read back instead of computed again.
class RegionOutputs {
public:
  struct Output {
    mlir::Value value;
    unsigned index; ///< among the region's outputs
    Extent extent;
    Availability when;
  };

  RegionOutputs(FusionOp Fusion, const RegionPlan &Plan);

  /// Puts off what can be had before the last phase of its sweep, for a target that would rather store every element
  /// once and last: sums of two f32 inputs, which are as quickly added again as read back, where then all whole outputs
  /// of the sweep are stored in its last phase. `mayAlias` holds as before: each position is read before it is stored.
  void putOffSums();

  llvm::ArrayRef<Output> all() const { return Outputs; }
  /// The first output that is \p V and is stored before \p Now, or null.
  const Output *storedBefore(mlir::Value V, Availability Now) const;
  /// What is stored once at the combination after \p Sweep.
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
