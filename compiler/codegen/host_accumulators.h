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
class HostColumnAccumulators {
public:
  HostColumnAccumulators(HostRegion &Region, HostFunction &F, const RegionPlan::Step &Step, llvm::Value *RowTile);

  const RegionPlan::Step &step() const { return *Step; }
  /// Clears those of the vector at \p Column.
  void clear(const HostPosition &Where, llvm::Value *Column);
  /// Takes those of the vector at \p Column into registers, adds terms, writes them back.
  void begin(const HostPosition &Where, llvm::Value *Column);
  void add(const HostPosition &Where, llvm::ArrayRef<Float> Terms);
  void end(const HostPosition &Where, llvm::Value *Column);

private:
  struct Accumulator {
    Combine how;
    llvm::Type *type;
    llvm::Value *base;
    llvm::AllocaInst *variable;
  };
  HostFunction &F;
  const RegionPlan::Step *Step;
  llvm::SmallVector<Accumulator, 2> Accumulators;
};

} // namespace mpc::codegen
