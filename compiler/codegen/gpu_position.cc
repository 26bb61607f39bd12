#include "compiler/codegen/gpu_position.h"

using namespace mlir;

namespace mpc::codegen {

llvm::Value *GpuPosition::load(Value Input, Extent E) {
  if (llvm::Value *Known = Loaded.lookup(Input))
    return Known;
  return loadFrom(F.operand(cast<BlockArgument>(Input).getArgNumber()), storageType(Input), E);
}

llvm::Value *GpuPosition::loadStored(Value V, Extent E) {
  if (llvm::Value *Known = Loaded.lookup(V))
    return Known;
  GpuRegion &Region = F.region();
  auto It = Region.stored.find(V);
  if (It == Region.stored.end())
    return nullptr;
  llvm::Value *Base =
      It->second.output ? F.operand(Region.numInputs() + *It->second.output) : F.workspace(It->second.offset);
  return loadFrom(Base, storageType(V), E);
}

Float GpuPosition::loadKept(Operation *Op, unsigned Index) {
  llvm::ArrayRef<GpuRegion::KeptValue> Values = F.region().kept.find(Op)->second;
  if (Values[Index].extent != Extent::PerRow)
    return Float(loadFrom(F.workspace(Values[Index].offset), F.builder().getFloatTy(), Values[Index].extent));
  // Rows are reduced again: what they keep comes in the same order.
  auto OfRows = llvm::count_if(Values.take_front(Index), [](auto &Kept) { return Kept.extent == Extent::PerRow; });
  return F.body().kept(Op)[OfRows];
}

llvm::Value *GpuPosition::loadFrom(llvm::Value *Base, llvm::Type *T, Extent E) {
  llvm::IRBuilder<> &B = F.builder();
  llvm::Value *Index = indexOf(E);
  if (unsigned Each = lanesOf(Index)) {
    llvm::Value *V = llvm::PoisonValue::get(llvm::FixedVectorType::get(T, Each));
    for (unsigned I = 0; I < Each; ++I)
      V = B.CreateInsertElement(V, F.load(T, F.element(Base, T, B.CreateExtractElement(Index, I))), I);
    return V;
  }
  bool IsVector = Lanes > 0 && (E == Extent::Full || E == Extent::PerColumn);
  return F.load(IsVector ? llvm::FixedVectorType::get(T, Lanes) : T, F.element(Base, T, Index));
}

void GpuPosition::storeTo(llvm::Value *Base, llvm::Value *V, Extent E) {
  bool IsVector = Lanes > 0 && (E == Extent::Full || E == Extent::PerColumn);
  llvm::Value *Elements = IsVector ? spread(V, Lanes) : V;
  F.store(Elements, F.element(Base, V->getType()->getScalarType(), indexOf(E)));
}

void GpuPosition::preload(ArrayRef<Value> Elements) {
  for (Value V : Elements)
    Loaded[V] = V.getDefiningOp() ? loadStored(V, Extent::Full) : load(V, Extent::Full);
}

Long GpuPosition::wide(llvm::Value *Index) {
  llvm::IRBuilder<> &B = F.builder();
  return Long(B.CreateZExt(Index, typeLike(B.getInt64Ty(), Index)));
}

Unsigned GpuPosition::narrow(llvm::Value *Column) {
  llvm::IRBuilder<> &B = F.builder();
  return Unsigned(B.CreateZExtOrTrunc(Column, typeLike(B.getInt32Ty(), Column)));
}

llvm::Value *GpuPosition::eachLane(llvm::Value *First) {
  if (Lanes == 0)
    return First;
  SmallVector<llvm::Constant *, 8> Steps;
  for (unsigned I = 0; I < Lanes; ++I)
    Steps.push_back(cast<llvm::Constant>(F.index(I)));
  return F.builder().CreateNUWAdd(spread(First, Lanes), llvm::ConstantVector::get(Steps));
}

llvm::Value *RowPosition::indexOf(Extent E) {
  llvm::IRBuilder<> &B = F.builder();
  switch (E) {
  case Extent::Full:
    return B.CreateNUWAdd(B.CreateNUWMul(Row, F.index(F.region().plan.columns())), Column);
  case Extent::PerRow:
    return Row;
  case Extent::PerColumn:
    return Column;
  case Extent::Single:
    return F.index(0);
  }
  llvm_unreachable("an extent");
}

FlatPosition::FlatPosition(GpuFunction &F, llvm::Value *First, unsigned Lanes)
    : GpuPosition(F, Lanes), First(First), InOneRow(Lanes == 0 || F.region().plan.columns() % Lanes == 0) {}

// The elements of a row, in as many lanes as `Indices` has.
static llvm::Value *rowLength(GpuFunction &F, llvm::Value *Indices) {
  return spread(F.index(F.region().plan.columns()), lanesOf(Indices));
}

Unsigned FlatPosition::column() {
  llvm::Value *Each = eachLane(First);
  return narrow(F.builder().CreateURem(Each, rowLength(F, Each)));
}

llvm::Value *FlatPosition::indexOf(Extent E) {
  llvm::IRBuilder<> &B = F.builder();
  if (E == Extent::Full)
    return First;
  if (E == Extent::Single)
    return F.index(0);
  llvm::Value *At = InOneRow ? First : eachLane(First);
  llvm::Value *Columns = rowLength(F, At);
  return E == Extent::PerRow ? B.CreateUDiv(At, Columns) : B.CreateURem(At, Columns);
}

} // namespace mpc::codegen
