// Accumulators of reductions in registers: vectors in independent chains, combined in a fixed order.
#pragma once

#include "compiler/codegen/host_position.h"

namespace mpc::codegen {

/// The accumulators of one reduction step along a row or of everything.
class HostAccumulators {
public:
  HostAccumulators(HostFunction &F, const HostSchedule &Schedule, const RegionPlan::Step &Step, unsigned Chains);

  const RegionPlan::Step &step() const { return *Step; }
  /// Begins anew.
  void reset();
  /// Adds the terms of the lanes of \p Where.
  void add(const HostPosition &Where, llvm::ArrayRef<Float> Terms, unsigned Chain);
  /// One scalar an accumulator: chains in pairs, then halves of lanes.
  llvm::SmallVector<llvm::Value *, 2> combined();

private:
  Combine how(unsigned Index) const { return Step->reduction.accumulators[Index]; }

  HostFunction &F;
  const RegionPlan::Step *Step;
  unsigned Lanes;
  /// Of each accumulator, of each chain.
  llvm::SmallVector<llvm::SmallVector<llvm::AllocaInst *, 4>, 2> Variables;
};

/// The accumulators of a reduction of columns, in the rows of partial values of the tile's rows.
///
/// Moments (SumF64, SquaresF64) of a visit to several rows are formed in f32 about one of the terms, the *pivot*: sums
/// of d = x - p and of d^2, which are then moved to 0 in f64. Three operations an element instead of conversions to
/// f64, and what f32 rounds is relative to the deviations in the column: with n rows, p one of them, sum d^2 is at most
/// 2 (n + 1) times the sum of squares about the visit's mean (tests/kernels/error_bounds.cc).
class HostColumnAccumulators {
public:
  HostColumnAccumulators(HostRegion &Region, HostFunction &F, const RegionPlan::Step &Step, llvm::Value *RowTile);

  const RegionPlan::Step &step() const { return *Step; }
  bool areMoments() const;
  /// Clears those of the vector at \p Column.
  void clear(const HostPosition &Where, llvm::Value *Column);
  /// Takes those of the vector at \p Column into registers, adds terms, writes them back.
  void begin(const HostPosition &Where, llvm::Value *Column);
  void add(const HostPosition &Where, llvm::ArrayRef<Float> Terms);
  void end(const HostPosition &Where, llvm::Value *Column);
  /// The same for moments about the first of the terms, \p First, of \p Rows rows.
  void beginAbout(const HostPosition &Where, Float First);
  void endAbout(const HostPosition &Where, llvm::Value *Column, llvm::Value *Rows);

private:
  struct Accumulator {
    Combine how;
    llvm::Type *type;
    llvm::Value *base;
    llvm::AllocaInst *variable;
    llvm::AllocaInst *deviations; ///< of a visit, in f32; null where they are not moments
  };
  void addAbout(const HostPosition &Where, Float Term);

  HostFunction &F;
  const RegionPlan::Step *Step;
  llvm::SmallVector<Accumulator, 2> Accumulators;
  llvm::Value *Pivot = nullptr; ///< of the visit
};

} // namespace mpc::codegen
