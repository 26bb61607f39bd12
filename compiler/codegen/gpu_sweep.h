// The work of a region's sweep on a GPU, and the distribution of its rows and columns over threads. It is arithmetic on
// shapes.
#pragma once

#include "compiler/dialect/fusion_plan.h"

#include <vector>

namespace mpc::codegen {

/// One visit of the iteration space. Rows are reduced first, pass by pass. One more pass, the last one, adds the terms
/// for columns and for everything, and stores results. So an element of an output is stored after its thread's last
/// read. The steps are those of the plan, which outlives the sweep.
struct Sweep {
  using Step = FusionPlan::Step;
  using Steps = llvm::SmallVector<const Step *, 2>;

  unsigned index = 0; ///< its place in sweepsOf()
  /// Reductions along rows, grouped by pass, without the last pass. A value of a row that a later sweep needs is
  /// reduced again. A result of the region is read back instead.
  llvm::SmallVector<Steps, 2> rowPasses;
  Steps columnSteps, allSteps;
  /// Results of the region (their numbers) that have a value an element or a row.
  llvm::SmallVector<unsigned> stores;
  /// Results with a value a column, or a single value, that are stored where the sweep before this one is combined.
  llvm::SmallVector<unsigned> columnStores, singleStores;
  /// The values that the sweep reads at every element: inputs of the region, and what earlier sweeps stored.
  /// FusionAliasing says which outputs may lie over which of these inputs.
  llvm::SmallVector<mlir::Value> elements;
  /// The same with one value a row.
  llvm::SmallVector<mlir::Value> rowValues;

  /// Whether the sweep visits any element. Reductions along rows alone are no reason to.
  bool visits() const { return !stores.empty() || !columnSteps.empty() || !allSteps.empty(); }
};

/// The sweeps of \p plan and, behind them, one that visits nothing.
std::vector<Sweep> sweepsOf(FusionOp fusion, const FusionPlan &plan);

/// How one sweep is launched.
///
/// Flat: the space is one row of vectors, and each thread takes `ahead` of them at a time. All threads of a block are
/// one team: `lanes` is `threads`, and `places` is 1. The first block takes the elements that fill no vector. Otherwise
/// a block's threads form teams of `lanes` threads, a power of two, and each team takes a row. A thread takes `places`
/// vectors of the row, `lanes` vectors apart. Where `resident` is true, these are the whole row or column tile. Else
/// the thread goes on with the next ones. Places beyond the end of a row take no part.
///
/// Shifted: the vectors divide the space, but not the columns. So a row may begin and end within a vector. The elements
/// of a row before its first whole vector and behind its last one are its edge, at most one element a thread.
struct SweepTiling {
  bool flat = false;
  bool resident = true;
  bool shifted = false;
  /// The first pass of a row puts the row into shared memory, where later passes read it. Not where it is resident.
  bool staged = false;
  /// The sums of columns are in shared memory while the sweep lasts. Not where it is resident.
  bool columnsStaged = false;
  /// Elements that lie side by side and are read at once. They divide the columns unless flat or shifted.
  unsigned vector = 1;
  unsigned lanes = 1, places = 1;
  unsigned ahead = 1;      ///< rows (flat: vectors) whose loads are under way together
  unsigned threads = 256;  ///< threads of a block: 64 to 512, 1024 where one block fills a multiprocessor
  unsigned blocksEach = 0; ///< blocks that a multiprocessor has registers for at once; 0: for at least one
  int64_t columnTiles = 1; ///< blocks side by side along a row
  /// Blocks one below the other, and the rows that each takes. Flat: all blocks; rowsPerBlock is not used.
  int64_t rowBlocks = 1, rowsPerBlock = 1;

  /// Teams of a block.
  unsigned teams() const { return threads / lanes; }
  /// Blocks of the launch.
  int64_t blocks() const { return columnTiles * rowBlocks; }
  /// Columns that the places of a team cover.
  int64_t width() const { return int64_t{lanes} * places * vector; }
};

/// What a tiling takes from its target: that of the largest GPU of an architecture.
struct Multiprocessors {
  unsigned number;
  unsigned sharedBytes; ///< shared memory of one, which its blocks divide
};

/// The tiling of a sweep. It follows from the shape, the element types, what the sweep reads, stores and reduces, and
/// the target's multiprocessors. \p s visits something.
SweepTiling tilingOf(const FusionPlan &plan, FusionOp fusion, const Sweep &s, const Multiprocessors &target);

} // namespace mpc::codegen
