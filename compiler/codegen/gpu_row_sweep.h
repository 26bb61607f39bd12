// A sweep by rows while its kernel is written. Teams of threads reduce their rows (gpu_row_sweep.cc). Columns are
// reduced over rows, teams and blocks (gpu_row_columns.cc).
#pragma once

#include "compiler/codegen/gpu_stages.h"

#include <memory>

namespace mpc::codegen {

class RowSweep {
public:
  RowSweep(GpuRegion &Region, const Sweep &S, const Sweep &Next, const SweepTiling &T);
  Partials emit();

private:
  /// Neighbouring columns that a thread handles.
  struct Place {
    llvm::Value *column, *inside;
    unsigned number; ///< index among the thread's places
  };
  using Places = llvm::SmallVector<Place, 8>;
  /// The elements of one row in the columns of a Place.
  struct Slot : Place {
    std::unique_ptr<RowPosition> at;
  };
  using Slots = llvm::SmallVector<Slot, 8>;
  /// A row of the thread's team, with its slots where they are resident.
  struct Row {
    llvm::Value *index, *inside;
    std::unique_ptr<RowPosition> at;
    Slots resident;
  };
  using Variables = llvm::SmallVector<llvm::AllocaInst *>;

  Variables variables(llvm::ArrayRef<Accumulator> Of);
  /// Combines each of \p Sums over \p Lanes threads, which all get the result.
  llvm::SmallVector<llvm::Value *> acrossTeam(llvm::ArrayRef<Accumulator> Of, const Variables &Sums, unsigned Lanes);
  void add(const Accumulator &A, llvm::AllocaInst *Sum, Float Term, llvm::Value *Mask);

  Row rowAt(llvm::Value *First, unsigned Number);
  Places placesAt(llvm::Value *Begin);
  Slots slotsAt(const Row &R, llvm::ArrayRef<Place> At);
  void eachSlot(const Row &R, llvm::function_ref<void(const Slot &)> Visit);
  void visitRows(llvm::Value *First);
  void reduceRow(const Row &R, llvm::ArrayRef<const Sweep::Step *> Steps);
  void lastPass(const Row &R, const Slot &At);
  void addToColumns(const Row &R, const Slot &At);
  /// Returns where the results of extent \p E are stored, and their values at the position.
  llvm::SmallVector<std::pair<llvm::Value *, llvm::Value *>> storesOf(Extent E);
  void storeOfRow(const Row &R);

  bool leavesColumns() const { return !Left.columns.empty(); }
  llvm::Value *partial(unsigned Number, llvm::Value *Column);
  void clearPartials();
  void reduceColumns();
  void reduceAll();

  GpuRegion &Region;
  const Sweep &S;
  const Sweep &Next;
  const SweepTiling &T;
  const int64_t Rows, Columns;
  GpuFunction F;
  llvm::IRBuilder<> &B;
  const unsigned Lanes;
  const llvm::SmallVector<Accumulator> ColumnAccumulators, Accumulators;
  llvm::Value *Lane, *Team, *TileBegin, *RowBlock, *RowBegin, *RowEnd;
  /// One variable a column accumulator for each slot. Where rows are not resident, the sums are in the workspace.
  llvm::SmallVector<Variables> ColumnSums;
  Variables Sums;
  Places Resident; ///< the thread's places where they cover the whole row or tile
  llvm::Instruction *ColumnAnchor = nullptr;
  Partials Left;
};

} // namespace mpc::codegen
