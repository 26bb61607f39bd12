// What a sweep of a region does on a GPU, and how its rows and columns are shared out over threads: arithmetic on
// shapes.
#pragma once

#include "compiler/dialect/region_plan.h"

#include <vector>

namespace mpc::codegen {

/// One visit of the iteration space: rows are reduced first, pass by pass; in the last pass terms for columns and for
/// everything are added, and results are stored. So an element of an output is stored after its thread's last read.
struct Sweep {
  using Step = RegionPlan::Step;
  using Steps = llvm::SmallVector<const Step *, 2>;

  unsigned index = 0;
  /// Reductions along rows, those of one pass together. A value of a row that a later sweep needs is reduced again.
  llvm::SmallVector<Steps, 2> rowPasses;
  Steps columnSteps, allSteps;
  /// Results of the region (their numbers) that have a value an element or a row.
  llvm::SmallVector<unsigned> stores;
  /// Those with a value a column, or one, that are stored after the sweep before this one, where that is combined.
  llvm::SmallVector<unsigned> columnStores, singleStores;
  /// What the sweep reads that has a value an element: inputs, and what earlier sweeps stored. The storage of an output
  /// may be that of an input which nothing but the output's value is computed from later.
  llvm::SmallVector<mlir::Value> elements;

  bool visits() const { return !stores.empty() || !columnSteps.empty() || !allSteps.empty(); }
};

/// The sweeps of \p Plan and, behind them, one that visits nothing.
std::vector<Sweep> sweepsOf(FusionOp Fusion, const RegionPlan &Plan);

/// How one sweep is launched.
///
/// Flat: the space is one row of vectors; each thread takes `ahead` of them at a time. Else a block's threads are teams
/// of `lanes` threads, a row a team; a thread takes `slots` vectors of a row, `lanes` vectors apart, and where these
/// are not the whole row or column tile (`resident`) it goes on with the next ones.
struct SweepTiling {
  bool flat = false;
  bool resident = true;
  unsigned vector = 1; ///< elements that lie side by side and are read at once
  unsigned lanes = 1, slots = 1;
  unsigned ahead = 1; ///< rows (flat: vectors) whose loads are under way together
  unsigned threads = 256;
  int64_t columnTiles = 1; ///< blocks side by side along a row
  int64_t rowBlocks = 1, rowsPerBlock = 1;

  unsigned teams() const { return threads / lanes; }
  int64_t blocks() const { return columnTiles * rowBlocks; }
  /// Columns that the slots of a team cover.
  int64_t width() const { return int64_t{lanes} * slots * vector; }
};

/// From the shape and the number of multiprocessors of the target alone.
SweepTiling tilingOf(const RegionPlan &Plan, FusionOp Fusion, const Sweep &S, unsigned Multiprocessors);

} // namespace mpc::codegen
