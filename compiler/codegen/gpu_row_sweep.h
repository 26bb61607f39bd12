// A sweep by rows while its kernel is written. Teams of threads reduce their rows (gpu_row_sweep.cc). Which elements of
// a row a thread has is a matter of the tiling (gpu_row_places.cc). Columns are reduced over rows, teams and blocks
// (gpu_row_columns.cc).
#pragma once

#include "compiler/codegen/gpu_stages.h"

#include <memory>

namespace mpc::codegen {

class RowSweep {
public:
  RowSweep(GpuFusion &region, const Sweep &s, const Sweep &next, const SweepTiling &t);
  Partials emit();

private:
  /// Neighbouring columns that a thread handles.
  struct Place {
    llvm::Value *column, *inside;
    unsigned number;                             ///< index among the thread's places
    std::optional<int64_t> bound = std::nullopt; ///< all its columns are below, where that is less than all
  };
  using Places = llvm::SmallVector<Place, 8>;
  /// The elements of one row in the columns of a Place.
  struct RowPlace : Place {
    std::unique_ptr<RowPosition> at;
  };
  using RowPlaces = llvm::SmallVector<RowPlace, 8>;
  /// A row of the thread's team, with its places where they are resident.
  struct Row {
    llvm::Value *index, *inside;
    std::unique_ptr<RowPosition> at;
    llvm::Value *head = nullptr;    ///< the column of the first whole vector
    llvm::Value *vectors = nullptr; ///< whole vectors
    RowPlaces resident;
    RowPlace edge;                       ///< an element of the row's edge, a scalar; only where the tiling is shifted
    llvm::Value *edgeInside = nullptr;   ///< whether it is the thread's
    llvm::Instruction *anchor = nullptr; ///< dominates the places of a pass that are not resident
  };
  /// What a visit of a row's elements does with them where they are not resident.
  enum class Pass {
    First, ///< loads them, and stages them where the tiling says so
    Later,
  };
  /// The sums of one accumulator: of the lanes of vectors, and of the row's edge.
  struct Sum {
    llvm::AllocaInst *vectors, *edge = nullptr;
  };
  using Sums = llvm::SmallVector<Sum>;

  void placeStages();
  Sums zeros(llvm::ArrayRef<Accumulator> of);
  /// Combines each of \p sums over \p lanes threads, which all get the result.
  llvm::SmallVector<llvm::Value *> acrossTeam(llvm::ArrayRef<Accumulator> of, const Sums &sums, unsigned lanes);
  /// Adds \p term to the sum that has its lanes.
  void add(const Accumulator &a, const Sum &sum, const RowPlace &at, Float term, llvm::Value *mask);

  Row rowAt(llvm::Value *first, unsigned number);
  Places placesAt(llvm::Value *begin);
  Place placeOf(const Row &r, llvm::Value *vector, unsigned number, bool whole);
  void placeEdge(Row &r);
  void takeRowValues(RowPosition &at, const Row &r);
  RowPlaces rowPlacesAt(const Row &r, llvm::ArrayRef<Place> at, Pass pass);
  void eachRowPlace(const Row &r, Pass pass, llvm::function_ref<void(const RowPlace &)> visit);
  void eachLongRowPlace(const Row &r, Pass pass, llvm::function_ref<void(const RowPlace &)> visit);
  llvm::Value *stagedAt(unsigned element, const Place &p, const Row &r);
  void prefetchAfter(const Row &r);
  void beginPass(Row &r);
  void visitRows(llvm::Value *first);
  void reduceRow(const Row &r, llvm::ArrayRef<const Sweep::Step *> steps, Pass pass);
  void lastPass(const Row &r, const RowPlace &at);
  void addToColumns(const Row &r, const RowPlace &at);
  /// Returns where the results of extent \p e are stored, and their values at the position.
  llvm::SmallVector<std::pair<llvm::Value *, llvm::Value *>> storesOf(Extent e);
  void storeOfRow(const Row &r);

  bool leavesColumns() const { return !left.columns.empty(); }
  /// The address of a column's sum in the workspace, and where the sweep adds to it: there or in shared memory.
  llvm::Value *partial(unsigned number, llvm::Value *column);
  llvm::Value *runningSum(unsigned number, llvm::Value *column);
  void eachOwnColumn(llvm::function_ref<void(llvm::Value *)> visit);
  void clearPartials();
  void leaveStagedColumns();
  void reduceColumns();
  void reduceAll();

  GpuFusion &region;
  const Sweep &s;
  const Sweep &next;
  const SweepTiling &t;
  const int64_t rows, columns;
  GpuFunction f;
  llvm::IRBuilder<> &b;
  const unsigned lanes;
  const llvm::SmallVector<Accumulator> columnAccumulators, accumulators;
  llvm::Value *lane, *team, *tileBegin, *rowBlock, *rowBegin, *rowEnd;
  /// One variable a column accumulator for each place. Where rows are not resident, the sums are in shared memory or in
  /// the workspace.
  llvm::SmallVector<Sums> columnSums;
  Sums sums;
  Places resident; ///< the thread's places where they cover the whole row or tile, the same in all rows
  llvm::SmallVector<llvm::Value *> stages;       ///< shared memory for a row of each of the sweep's elements
  llvm::SmallVector<llvm::Value *> columnStages; ///< shared memory for the sums of each column accumulator
  llvm::Instruction *columnAnchor = nullptr;
  Partials left;
};

} // namespace mpc::codegen
