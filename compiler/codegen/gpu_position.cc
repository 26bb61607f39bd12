#include "compiler/codegen/gpu_position.h"

using namespace mlir;

namespace mpc::codegen {

llvm::Value *GpuPosition::load(Value input, Extent e) {
  if (llvm::Value *known = loaded.lookup(input))
    return known;
  return loadFrom(f.addressOf(input), storageType(input), e);
}

llvm::Value *GpuPosition::loadStored(Value v, Extent e) {
  if (llvm::Value *known = loaded.lookup(v))
    return known;
  llvm::Value *base = f.addressOf(v);
  return base ? loadFrom(base, storageType(v), e) : nullptr;
}

Float GpuPosition::loadKept(Operation *op, unsigned index) {
  llvm::ArrayRef<GpuFusion::KeptValue> values = f.getRegion().kept.find(op)->second;
  if (values[index].extent != Extent::PerRow)
    return Float(loadFrom(f.workspace(values[index].offset), f.builder().getFloatTy(), values[index].extent));
  // Rows are reduced again: what they keep comes in the same order.
  auto ofRows = llvm::count_if(values.take_front(index), [](auto &kept) { return kept.extent == Extent::PerRow; });
  return f.getBody().kept(op)[ofRows];
}

llvm::Value *GpuPosition::loadFrom(llvm::Value *base, llvm::Type *t, Extent e) {
  llvm::IRBuilder<> &b = f.builder();
  llvm::Value *index = indexOf(e);
  if (unsigned each = lanesOf(index)) {
    llvm::Value *v = llvm::PoisonValue::get(llvm::FixedVectorType::get(t, each));
    for (unsigned i = 0; i < each; ++i)
      v = b.CreateInsertElement(v, f.load(t, f.element(base, t, b.CreateExtractElement(index, i))), i);
    return v;
  }
  bool isVector = lanes > 0 && (e == Extent::Full || e == Extent::PerColumn);
  return f.load(isVector ? llvm::FixedVectorType::get(t, lanes) : t, f.element(base, t, index), isAligned(e));
}

void GpuPosition::storeTo(llvm::Value *base, llvm::Value *v, Extent e) {
  bool isVector = lanes > 0 && (e == Extent::Full || e == Extent::PerColumn);
  llvm::Value *elements = isVector ? spread(v, lanes) : v;
  f.store(elements, f.element(base, v->getType()->getScalarType(), indexOf(e)));
}

void GpuPosition::preload(ArrayRef<Value> values, Extent e) {
  for (Value v : values)
    loaded[v] = v.getDefiningOp() ? loadStored(v, e) : load(v, e);
}

Long GpuPosition::wide(llvm::Value *index) {
  llvm::IRBuilder<> &b = f.builder();
  return Long(b.CreateZExt(index, typeLike(b.getInt64Ty(), index)));
}

Unsigned GpuPosition::narrow(llvm::Value *column) {
  llvm::IRBuilder<> &b = f.builder();
  return Unsigned(b.CreateZExtOrTrunc(column, typeLike(b.getInt32Ty(), column)));
}

llvm::Value *GpuPosition::eachLane(llvm::Value *first) {
  if (lanes == 0)
    return first;
  SmallVector<llvm::Constant *, 8> steps;
  for (unsigned i = 0; i < lanes; ++i)
    steps.push_back(cast<llvm::Constant>(f.index(i)));
  return f.builder().CreateNUWAdd(spread(first, lanes), llvm::ConstantVector::get(steps));
}

llvm::Value *RowPosition::indexOf(Extent e) {
  llvm::IRBuilder<> &b = f.builder();
  switch (e) {
  case Extent::Full:
    return b.CreateNUWAdd(b.CreateNUWMul(row, f.index(f.getRegion().plan.getColumns())), columnIndex);
  case Extent::PerRow:
    return row;
  case Extent::PerColumn:
    return columnIndex;
  case Extent::Single:
    return f.index(0);
  }
  llvm_unreachable("an extent");
}

// The minimum changes nothing. LLVM decides comparisons with columns behind the bound by it, and drops it then.
Unsigned RowPosition::column() {
  llvm::Value *column = narrow(eachLane(columnIndex)).value();
  if (bound)
    column = f.minimum(column, llvm::ConstantInt::get(column->getType(), *bound - 1));
  return Unsigned(column);
}

// A vector that does not have the column spares its elements the comparison and the choice.
Float RowPosition::atColumn(Unsigned wanted, Float there, Float elsewhere) {
  constexpr unsigned worthABranch = 4;
  if (lanes < worthABranch || lanesOf(wanted.value()) != 0)
    return Position::atColumn(wanted, there, elsewhere);
  llvm::IRBuilder<> &b = f.builder();
  Unsigned lane = wanted - narrow(columnIndex);
  return Float(f.rarely((lane < Unsigned(lanes)).value(), spread(elsewhere.value(), lanes), [&] {
    SmallVector<llvm::Constant *, 8> each;
    for (unsigned i = 0; i < lanes; ++i)
      each.push_back(b.getInt32(i));
    return select(Unsigned(llvm::ConstantVector::get(each)) == lane, there, elsewhere).value();
  }));
}

FlatPosition::FlatPosition(GpuFunction &f, llvm::Value *first, unsigned lanes)
    : GpuPosition(f, lanes), first(first), inOneRow(lanes == 0 || f.getRegion().plan.getColumns() % lanes == 0) {}

// The elements of a row, in as many lanes as `indices` has.
static llvm::Value *rowLength(GpuFunction &f, llvm::Value *indices) {
  return spread(f.index(f.getRegion().plan.getColumns()), lanesOf(indices));
}

Unsigned FlatPosition::column() {
  llvm::Value *each = eachLane(first);
  return narrow(f.builder().CreateURem(each, rowLength(f, each)));
}

llvm::Value *FlatPosition::indexOf(Extent e) {
  llvm::IRBuilder<> &b = f.builder();
  if (e == Extent::Full)
    return first;
  if (e == Extent::Single)
    return f.index(0);
  llvm::Value *at = inOneRow ? first : eachLane(first);
  llvm::Value *columns = rowLength(f, at);
  return e == Extent::PerRow ? b.CreateUDiv(at, columns) : b.CreateURem(at, columns);
}

} // namespace mpc::codegen
