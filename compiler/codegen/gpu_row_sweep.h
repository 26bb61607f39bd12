// A sweep by rows while its kernel is written. Teams of threads reduce their rows (gpu_row_sweep.cc). Columns are
// reduced over rows, teams and blocks (gpu_row_columns.cc).
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
    unsigned number; ///< index among the thread's places
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
    RowPlaces resident;
  };
  using Variables = llvm::SmallVector<llvm::AllocaInst *>;

  Variables variables(llvm::ArrayRef<Accumulator> of);
  /// Combines each of \p sums over \p lanes threads, which all get the result.
  llvm::SmallVector<llvm::Value *> acrossTeam(llvm::ArrayRef<Accumulator> of, const Variables &sums, unsigned lanes);
  void add(const Accumulator &a, llvm::AllocaInst *sum, Float term, llvm::Value *mask);

  Row rowAt(llvm::Value *first, unsigned number);
  Places placesAt(llvm::Value *begin);
  RowPlaces rowPlacesAt(const Row &r, llvm::ArrayRef<Place> at);
  void eachRowPlace(const Row &r, llvm::function_ref<void(const RowPlace &)> visit);
  void visitRows(llvm::Value *first);
  void reduceRow(const Row &r, llvm::ArrayRef<const Sweep::Step *> steps);
  void lastPass(const Row &r, const RowPlace &at);
  void addToColumns(const Row &r, const RowPlace &at);
  /// Returns where the results of extent \p e are stored, and their values at the position.
  llvm::SmallVector<std::pair<llvm::Value *, llvm::Value *>> storesOf(Extent e);
  void storeOfRow(const Row &r);

  bool leavesColumns() const { return !left.columns.empty(); }
  llvm::Value *partial(unsigned number, llvm::Value *column);
  void clearPartials();
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
  /// One variable a column accumulator for each place. Where rows are not resident, the sums are in the workspace.
  llvm::SmallVector<Variables> columnSums;
  Variables sums;
  Places resident; ///< the thread's places where they cover the whole row or tile
  llvm::Instruction *columnAnchor = nullptr;
  Partials left;
};

} // namespace mpc::codegen
