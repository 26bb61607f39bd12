// Accumulators of reductions in registers: vectors in independent chains, combined in a fixed order.
#pragma once

#include "compiler/codegen/host_position.h"

namespace mpc::codegen {

/// The accumulators of one reduction step along a row or of everything.
class HostAccumulators {
public:
  HostAccumulators(HostFunction &f, const HostSchedule &schedule, const FusionPlan::Step &step, unsigned chains);

  const FusionPlan::Step &getStep() const { return *step; }
  /// Resets the accumulators to their identities.
  void reset();
  /// Adds the terms of the lanes of \p where.
  void add(const HostPosition &where, llvm::ArrayRef<Float> terms, unsigned chain);
  /// Returns one scalar an accumulator. Chains are combined in pairs, then halves of the lanes.
  llvm::SmallVector<llvm::Value *, 2> combined();

private:
  Combine how(unsigned index) const { return step->reduction.accumulators[index]; }

  HostFunction &f;
  const FusionPlan::Step *step;
  unsigned lanes;
  /// A variable for each accumulator and each chain.
  llvm::SmallVector<llvm::SmallVector<llvm::AllocaInst *, 4>, 2> variables;
};

/// The accumulators of a reduction of columns. They lie in the tile's row of partial values in the workspace.
///
/// A visit to several rows forms moments (SumF64, SquaresF64) in f32 about one of the terms, the *pivot* p. It sums d =
/// x - p and d^2, and then moves both sums to 0 in f64. This takes three operations an element instead of conversions
/// to f64. The rounding errors of f32 are relative to the deviations in the column. With n rows, p one of them, sum d^2
/// is at most 2 (n + 1) times the sum of squares about the visit's mean (tests/kernels/error_bounds.cc).
class HostColumnAccumulators {
public:
  HostColumnAccumulators(HostFusion &region, HostFunction &f, const FusionPlan::Step &step, llvm::Value *rowTile);

  const FusionPlan::Step &getStep() const { return *step; }
  bool areMoments() const;
  /// Clears the accumulators of the vector at \p column.
  void clear(const HostPosition &where, llvm::Value *column);
  /// These load the accumulators of the vector at \p column into registers, add terms, and write them back.
  void begin(const HostPosition &where, llvm::Value *column);
  void add(const HostPosition &where, llvm::ArrayRef<Float> terms);
  void end(const HostPosition &where, llvm::Value *column);
  /// The same for moments about the first term, \p first, of \p rows rows.
  void beginAbout(const HostPosition &where, Float first);
  void endAbout(const HostPosition &where, llvm::Value *column, llvm::Value *rows);

private:
  struct Accumulator {
    Combine how;
    llvm::Type *type;
    llvm::Value *base;
    llvm::AllocaInst *variable;
    llvm::AllocaInst *deviations; ///< sums of a visit about the pivot, in f32; null for other accumulators
  };
  void addAbout(const HostPosition &where, Float term);

  HostFunction &f;
  const FusionPlan::Step *step;
  llvm::SmallVector<Accumulator, 2> accumulators;
  llvm::Value *pivot = nullptr; ///< the pivot of the current visit; null where it forms no moments
};

} // namespace mpc::codegen
