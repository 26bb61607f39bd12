// Accumulators of reductions in registers: vectors in independent chains, combined in a fixed order.
#pragma once

#include "compiler/codegen/host_position.h"

namespace mpc::codegen {

/// The accumulators of one reduction step along a row or of everything.
class HostAccumulators {
public:
  HostAccumulators(HostFunction &F, const HostSchedule &Schedule, const RegionPlan::Step &Step, unsigned Chains);

  const RegionPlan::Step &step() const { return *Step; }
  /// Resets the accumulators to their identities.
  void reset();
  /// Adds the terms of the lanes of \p Where.
  void add(const HostPosition &Where, llvm::ArrayRef<Float> Terms, unsigned Chain);
  /// Returns one scalar an accumulator. Chains are combined in pairs, then halves of the lanes.
  llvm::SmallVector<llvm::Value *, 2> combined();

private:
  Combine how(unsigned Index) const { return Step->reduction.accumulators[Index]; }

  HostFunction &F;
  const RegionPlan::Step *Step;
  unsigned Lanes;
  /// A variable for each accumulator and each chain.
  llvm::SmallVector<llvm::SmallVector<llvm::AllocaInst *, 4>, 2> Variables;
};

/// The accumulators of a reduction of columns. They lie in the tile's row of partial values in the workspace.
///
/// A visit to several rows forms moments (SumF64, SquaresF64) in f32 about one of the terms, the *pivot* p. It sums d =
/// x - p and d^2, and then moves both sums to 0 in f64. This takes three operations an element instead of conversions
/// to f64. The rounding errors of f32 are relative to the deviations in the column. With n rows, p one of them, sum d^2
/// is at most 2 (n + 1) times the sum of squares about the visit's mean (tests/kernels/error_bounds.cc).
class HostColumnAccumulators {
public:
  HostColumnAccumulators(HostRegion &Region, HostFunction &F, const RegionPlan::Step &Step, llvm::Value *RowTile);

  const RegionPlan::Step &step() const { return *Step; }
  bool areMoments() const;
  /// Clears the accumulators of the vector at \p Column.
  void clear(const HostPosition &Where, llvm::Value *Column);
  /// These load the accumulators of the vector at \p Column into registers, add terms, and write them back.
  void begin(const HostPosition &Where, llvm::Value *Column);
  void add(const HostPosition &Where, llvm::ArrayRef<Float> Terms);
  void end(const HostPosition &Where, llvm::Value *Column);
  /// The same for moments about the first term, \p First, of \p Rows rows.
  void beginAbout(const HostPosition &Where, Float First);
  void endAbout(const HostPosition &Where, llvm::Value *Column, llvm::Value *Rows);

private:
  struct Accumulator {
    Combine how;
    llvm::Type *type;
    llvm::Value *base;
    llvm::AllocaInst *variable;
    llvm::AllocaInst *deviations; ///< sums of a visit about the pivot, in f32; null for other accumulators
  };
  void addAbout(const HostPosition &Where, Float Term);

  HostFunction &F;
  const RegionPlan::Step *Step;
  llvm::SmallVector<Accumulator, 2> Accumulators;
  llvm::Value *Pivot = nullptr; ///< the pivot of the current visit; null where it forms no moments
};

} // namespace mpc::codegen
