// Reductions of columns in a sweep by rows.
#include "compiler/codegen/gpu_row_sweep.h"

using namespace mlir;

namespace mpc::codegen {

// Columns beyond the last have sums too, which nobody reads; the workspace has no room for theirs.
void RowSweep::addToColumns(const Row &r, const RowPlace &at) {
  SmallVector<std::pair<llvm::Value *, llvm::Value *>> stores;
  eachTerm(f.getBody(), s.columnSteps, [&](unsigned number, Float term) {
    const Accumulator &a = columnAccumulators[number];
    if (t.resident)
      return add(a, columnSums[at.number][number], at, term, r.inside);
    llvm::Value *address = runningSum(number, at.column);
    llvm::Value *more = maskedTerm(a, term, r.inside, lanes);
    stores.push_back({combine(a.how, f.load(more->getType(), address), more), address});
  });
  f.when(at.inside, [&] {
    for (auto [v, address] : stores)
      f.store(v, address);
  });
}

llvm::Value *RowSweep::partial(unsigned number, llvm::Value *column) {
  llvm::Value *at = b.CreateNUWAdd(b.CreateNUWMul(rowBlock, f.index(columns)), column);
  return f.element(f.workspace(left.columns[number]), columnAccumulators[number].type(), at);
}

llvm::Value *RowSweep::runningSum(unsigned number, llvm::Value *column) {
  return t.columnsStaged ? f.element(columnStages[number], columnAccumulators[number].type(), column)
                         : partial(number, column);
}

// Each column's thread is the same in every row, so no barrier is needed between its additions.
void RowSweep::eachOwnColumn(llvm::function_ref<void(llvm::Value *)> visit) {
  llvm::Value *begin = b.CreateNUWMul(lane, f.index(t.vector));
  f.loop(begin, f.index(columns), f.index(int64_t{t.lanes} * t.vector), visit);
}

void RowSweep::clearPartials() {
  if (columnAccumulators.empty())
    return;
  eachOwnColumn([&](llvm::Value *column) {
    for (auto [number, a] : llvm::enumerate(columnAccumulators))
      f.store(spread(identity(a.how), lanes), runningSum(number, column));
  });
}

void RowSweep::leaveStagedColumns() {
  eachOwnColumn([&](llvm::Value *column) {
    for (unsigned number = 0; number < columnAccumulators.size(); ++number) {
      llvm::Type *type = columnAccumulators[number].type();
      llvm::Type *several = lanes ? llvm::FixedVectorType::get(type, lanes) : type;
      f.store(f.load(several, runningSum(number, column)), partial(number, column));
    }
  });
}

void RowSweep::reduceColumns() {
  for (unsigned i = 0; i < t.places; ++i) {
    SmallVector<llvm::Value *> values;
    for (const Sum &sum : columnSums[i])
      values.push_back(f.get(sum.vectors));
    llvm::Value *begin = b.CreateNUWAdd(tileBegin, f.index(int64_t{i} * t.lanes * t.vector));
    combineTeams(f, columnAccumulators, values, t.lanes, t.teams(), begin,
                 [&](llvm::Value *column, llvm::Value *inside, ArrayRef<llvm::Value *> combined) {
                   if (!leavesColumns())
                     return finishColumn(f, s.columnSteps, next, column, inside, combined);
                   f.when(inside, [&] {
                     for (auto [number, v] : llvm::enumerate(combined))
                       f.store(v, partial(number, column));
                   });
                 });
  }
}

} // namespace mpc::codegen
