// Reductions of columns in a sweep by rows.
#include "compiler/codegen/gpu_row_sweep.h"

using namespace mlir;

namespace mpc::codegen {

// Columns beyond the last have sums too, which nobody reads; the workspace has no room for theirs.
void RowSweep::addToColumns(const Row &R, const Slot &At) {
  SmallVector<std::pair<llvm::Value *, llvm::Value *>> Stores;
  eachTerm(F.body(), S.columnSteps, [&](unsigned Number, Float Term) {
    const Accumulator &A = ColumnAccumulators[Number];
    if (T.resident)
      return add(A, ColumnSums[At.number][Number], Term, R.inside);
    llvm::Value *Address = partial(Number, At.column);
    llvm::Value *More = maskedTerm(A, Term, R.inside, Lanes);
    Stores.push_back({combine(A.how, F.load(More->getType(), Address), More), Address});
  });
  F.when(At.inside, [&] {
    for (auto [V, Address] : Stores)
      F.store(V, Address);
  });
}

llvm::Value *RowSweep::partial(unsigned Number, llvm::Value *Column) {
  llvm::Value *At = B.CreateNUWAdd(B.CreateNUWMul(RowBlock, F.index(Columns)), Column);
  return F.element(F.workspace(Left.columns[Number]), ColumnAccumulators[Number].type(), At);
}

// Each column's thread is the same in every row, so no barrier is needed between its additions.
void RowSweep::clearPartials() {
  if (ColumnAccumulators.empty())
    return;
  llvm::Value *Begin = B.CreateNUWMul(Lane, F.index(T.vector));
  F.loop(Begin, F.index(Columns), F.index(int64_t{T.lanes} * T.vector), [&](llvm::Value *Column) {
    for (auto [Number, A] : llvm::enumerate(ColumnAccumulators))
      F.store(spread(identity(A.how), Lanes), partial(Number, Column));
  });
}

void RowSweep::reduceColumns() {
  for (unsigned I = 0; I < T.slots; ++I) {
    SmallVector<llvm::Value *> Values;
    for (llvm::AllocaInst *Sum : ColumnSums[I])
      Values.push_back(F.get(Sum));
    llvm::Value *Begin = B.CreateNUWAdd(TileBegin, F.index(int64_t{I} * T.lanes * T.vector));
    combineTeams(F, ColumnAccumulators, Values, T.lanes, T.teams(), Begin,
                 [&](llvm::Value *Column, llvm::Value *Inside, ArrayRef<llvm::Value *> Combined) {
                   if (!leavesColumns())
                     return finishColumn(F, S.columnSteps, Next, Column, Inside, Combined);
                   F.when(Inside, [&] {
                     for (auto [Number, V] : llvm::enumerate(Combined))
                       F.store(V, partial(Number, Column));
                   });
                 });
  }
}

} // namespace mpc::codegen
