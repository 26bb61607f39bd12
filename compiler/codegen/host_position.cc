#include "compiler/codegen/host_position.h"

using namespace mlir;

namespace mpc::codegen {

bool canStream(const HostRegion &Region, const RegionOutputs::Output &O) {
  bool InLastPhase = O.when.phase + 1 == Region.plan.numPhases(O.when.sweep);
  return Region.schedule.streams && O.extent == Extent::Full && InLastPhase;
}

static llvm::Align alignOf(llvm::Type *T) { return llvm::Align(T->getScalarSizeInBits() / 8); }

void HostPosition::setRow(llvm::Value *At) {
  Row = At;
  Start = F.builder().CreateMul(Row, F.index(Region.schedule.width));
}

void HostPosition::setColumn(llvm::Value *At, llvm::Constant *Lanes) {
  Column = At;
  Mask = Lanes;
  KeptHere.clear();
}

llvm::Value *HostPosition::loadVector(llvm::Type *T, llvm::Value *Address) const {
  auto *Vector = llvm::FixedVectorType::get(T, Region.schedule.lanes);
  if (!Mask)
    return F.builder().CreateAlignedLoad(Vector, Address, alignOf(T));
  return F.builder().CreateMaskedLoad(Vector, Address, alignOf(T), Mask, llvm::Constant::getNullValue(Vector));
}

void HostPosition::storeVector(llvm::Value *Value, llvm::Value *Address) const {
  llvm::IRBuilder<> &B = F.builder();
  Value = lanes(Value);
  if (!Mask)
    B.CreateAlignedStore(Value, Address, alignOf(Value->getType()));
  else if (!Mask->getAggregateElement(1u)->isOneValue())
    // One lane. LLVM 22 would store it as wide as it was before it was truncated.
    B.CreateAlignedStore(B.CreateExtractElement(Value, uint64_t(0)), Address, alignOf(Value->getType()));
  else
    B.CreateMaskedStore(Value, Address, alignOf(Value->getType()), Mask);
}

llvm::Value *HostPosition::address(llvm::Type *T, llvm::Value *Base, Extent E) const {
  llvm::IRBuilder<> &B = F.builder();
  switch (E) {
  case Extent::Full:
    return B.CreateGEP(T, Base, B.CreateAdd(Start, Column));
  case Extent::PerRow:
    return B.CreateGEP(T, Base, Row);
  case Extent::PerColumn:
    return B.CreateGEP(T, Base, Column);
  case Extent::Single:
    return Base;
  }
  llvm_unreachable("an extent");
}

llvm::Value *HostPosition::loadFrom(llvm::Type *T, llvm::Value *Base, Extent E) const {
  llvm::Value *Address = address(T, Base, E);
  if (E == Extent::Full || E == Extent::PerColumn)
    return loadVector(T, Address);
  return F.builder().CreateAlignedLoad(T, Address, alignOf(T));
}

static void storeAt(const HostPosition &P, llvm::IRBuilder<> &B, llvm::Value *Value, llvm::Value *Address, Extent E) {
  if (E == Extent::Full || E == Extent::PerColumn)
    P.storeVector(Value, Address);
  else
    B.CreateAlignedStore(Value, Address, alignOf(Value->getType()));
}

bool HostPosition::isStreamed(const RegionOutputs::Output &O) const {
  const HostSchedule &S = Region.schedule;
  return canStream(Region, O) && !Mask && S.width % S.lanes == 0;
}

llvm::Value *HostPosition::address(const RegionOutputs::Output &O) const {
  return address(storageType(O.value), F.operand(Region.fusion.getInputs().size() + O.index), O.extent);
}

void HostPosition::store(const RegionOutputs::Output &O, llvm::Value *Value) const {
  if (isStreamed(O))
    F.stream(lanes(Value), address(O));
  else
    storeAt(*this, F.builder(), Value, address(O), O.extent);
}

void HostPosition::store(HostWorkspace::Slot Slot, llvm::Value *Value) const {
  llvm::Value *Base = F.workspace(Slot.offset);
  storeAt(*this, F.builder(), Value, address(Value->getType()->getScalarType(), Base, Slot.extent), Slot.extent);
}

// No GEP: the address may lie beyond the tensor.
static void prefetchAt(HostFunction &F, Value Input, llvm::Value *Bytes) {
  llvm::IRBuilder<> &B = F.builder();
  llvm::Value *Base = B.CreatePtrToInt(F.operand(cast<BlockArgument>(Input).getArgNumber()), B.getInt64Ty());
  llvm::Value *Address = B.CreateIntToPtr(B.CreateAdd(Base, Bytes), B.getPtrTy());
  constexpr int Read = 0, SecondLevel = 2, Data = 1;
  B.CreateIntrinsic(llvm::Intrinsic::prefetch, {B.getPtrTy()},
                    {Address, B.getInt32(Read), B.getInt32(SecondLevel), B.getInt32(Data)});
}

static int64_t bytesOf(Value Input) { return storageType(Input)->getScalarSizeInBits() / 8; }

void HostPosition::prefetchBelow(Value Input, int64_t Rows) const {
  prefetchAhead(Input, Rows * Region.schedule.width * bytesOf(Input));
}

void HostPosition::prefetchAhead(Value Input, int64_t Bytes) const {
  llvm::IRBuilder<> &B = F.builder();
  constexpr int64_t LineBytes = 64;
  llvm::Value *Here = B.CreateMul(B.CreateAdd(Start, Column), F.index(bytesOf(Input)));
  for (int64_t Byte = 0; Byte < Region.schedule.lanes * bytesOf(Input); Byte += LineBytes)
    prefetchAt(F, Input, B.CreateAdd(Here, F.index(Bytes + Byte)));
}

void HostPosition::prefetchHalfBelow(Value Input, bool Second) const {
  llvm::IRBuilder<> &B = F.builder();
  int64_t Bytes = bytesOf(Input), RowBytes = Region.schedule.width * Bytes;
  llvm::Value *Half = Bytes % 2 == 0 ? B.CreateMul(Column, F.index(Bytes / 2)) : B.CreateLShr(Column, 1);
  llvm::Value *Below =
      B.CreateAdd(B.CreateMul(Start, F.index(Bytes)), F.index(Second ? RowBytes + RowBytes / 2 : RowBytes));
  prefetchAt(F, Input, B.CreateAdd(Below, Half));
}

llvm::Value *HostPosition::load(Value Input, Extent E) {
  llvm::Type *T = storageType(Input);
  if (llvm::Value *Spread = SpreadValues.lookup(Input))
    return loadFrom(T, Spread, E);
  return loadFrom(T, F.operand(cast<BlockArgument>(Input).getArgNumber()), E);
}

llvm::Value *HostPosition::loadStored(Value V, Extent E) {
  llvm::Type *T = storageType(V);
  if (llvm::Value *Spread = SpreadValues.lookup(V))
    return loadFrom(T, Spread, E);
  if (const RegionOutputs::Output *O = Region.outputs.storedBefore(V, Now))
    return loadFrom(T, F.operand(Region.fusion.getInputs().size() + O->index), E);
  if (std::optional<HostWorkspace::Slot> Slot = Region.workspace.reduced(V))
    return loadFrom(T, F.workspace(Slot->offset), E);
  return nullptr;
}

Float HostPosition::loadKept(Operation *Op, unsigned Index) {
  llvm::Value *&Known = KeptHere[{Op, Index}];
  if (!Known) {
    std::optional<HostWorkspace::Slot> Slot = Region.workspace.kept(Op)[Index];
    assert(Slot && "what a row kept is not used in a later sweep");
    llvm::IRBuilder<> &B = F.builder();
    llvm::IRBuilderBase::InsertPointGuard Guard(B);
    if (llvm::Instruction *Anchor = anchor(Slot->extent))
      B.SetInsertPoint(Anchor);
    llvm::Value *Spread = SpreadKept.lookup({Op, Index});
    Known = loadFrom(B.getFloatTy(), Spread ? Spread : F.workspace(Slot->offset), Slot->extent);
  }
  return Float(Known);
}

llvm::Value *HostPosition::iota(llvm::Value *First) const {
  SmallVector<llvm::Constant *> Lanes;
  for (unsigned Lane = 0; Lane < Region.schedule.lanes; ++Lane)
    Lanes.push_back(llvm::ConstantInt::get(First->getType(), Lane));
  return F.builder().CreateAdd(lanes(First), llvm::ConstantVector::get(Lanes));
}

Unsigned HostPosition::column() {
  llvm::IRBuilder<> &B = F.builder();
  if (Region.schedule.width == Region.schedule.columns)
    return Unsigned(iota(B.CreateTrunc(Column, B.getInt32Ty())));
  llvm::Value *InRow = B.CreateURem(linearIndex().value(), lanes(F.index(Region.schedule.columns)));
  return Unsigned(B.CreateTrunc(InRow, typeLike(B.getInt32Ty(), InRow)));
}

Float HostPosition::atColumn(Unsigned Wanted, Float There, Float Elsewhere) {
  const HostSchedule &S = Region.schedule;
  if (S.width != S.columns || lanesOf(Wanted.value()) != 0)
    return Position::atColumn(Wanted, There, Elsewhere);
  llvm::IRBuilder<> &B = F.builder();
  Unsigned Lane = Wanted - Unsigned(B.CreateTrunc(Column, B.getInt32Ty()));
  return Float(F.rarely((Lane < Unsigned(S.lanes)).value(), lanes(Elsewhere.value()),
                        [&] { return select(Unsigned(iota(B.getInt32(0))) == Lane, There, Elsewhere).value(); }));
}

Long HostPosition::linearIndex() { return Long(iota(F.builder().CreateAdd(Start, Column))); }

Float HostPosition::once(Operation *Op, llvm::function_ref<Float()> Compute) {
  // A row of this length stays in the second-level cache beside the row, and takes little of any stack.
  constexpr int64_t Longest = 16 * 1024;
  const HostSchedule &S = Region.schedule;
  if (S.width > Longest)
    return Compute();
  llvm::IRBuilder<> &B = F.builder();
  auto [It, IsFirst] = Rows.try_emplace(Op);
  if (IsFirst)
    It->second = {F.buffer(B.getFloatTy(), llvm::alignTo(S.width, S.lanes)), Now.phase};
  auto [Buffer, Phase] = It->second;
  llvm::Value *Address = B.CreateGEP(B.getFloatTy(), Buffer, Column);
  llvm::Align Alignment(S.lanes * sizeof(float));
  if (Phase != Now.phase)
    return Float(B.CreateAlignedLoad(llvm::FixedVectorType::get(B.getFloatTy(), S.lanes), Address, Alignment));
  Float Number = Compute();
  B.CreateAlignedStore(lanes(Number.value()), Address, Alignment);
  return Number;
}

llvm::Value *HostPosition::spreadFrom(llvm::Type *T, llvm::Value *Base) {
  llvm::IRBuilder<> &B = F.builder();
  const HostSchedule &S = Region.schedule;
  // Each copy is written in whole vectors; what is too much, the next one overwrites.
  llvm::Value *Buffer = F.buffer(T, S.width + S.lanes);
  F.loop(F.index(0), F.index(S.copies), 1, [&](llvm::Value *Copy) {
    llvm::Value *Target = B.CreateGEP(T, Buffer, B.CreateMul(Copy, F.index(S.columns)));
    auto Move = [&](llvm::Value *At, llvm::Constant *Lanes) {
      setColumn(At, Lanes);
      llvm::Value *Source = loadVector(T, B.CreateGEP(T, Base, At));
      setColumn(At, nullptr);
      storeVector(Source, B.CreateGEP(T, Target, At));
    };
    int64_t Tail = S.columns % S.lanes;
    F.loop(F.index(0), F.index(S.columns - Tail), S.lanes, [&](llvm::Value *At) { Move(At, nullptr); });
    if (Tail != 0)
      Move(F.index(S.columns - Tail), firstLanes(S.lanes, Tail));
  });
  return Buffer;
}

void HostPosition::spreadColumns() {
  if (Region.schedule.copies == 1)
    return;
  llvm::SetVector<Value> Inputs;
  for (unsigned Phase = 0; Phase < Region.plan.numPhases(Now.sweep); ++Phase)
    Inputs.insert_range(Region.outputs.inputsRead({Now.sweep, Phase}));
  for (Value Input : Inputs)
    if (Region.plan.extent(Input) == Extent::PerColumn)
      SpreadValues[Input] = spreadFrom(storageType(Input), F.operand(cast<BlockArgument>(Input).getArgNumber()));
  for (Operation *Op : Region.plan.body()) {
    for (auto [Index, Slot] : llvm::enumerate(Region.workspace.kept(Op)))
      if (Slot && Slot->extent == Extent::PerColumn)
        SpreadKept[{Op, static_cast<unsigned>(Index)}] =
            spreadFrom(F.builder().getFloatTy(), F.workspace(Slot->offset));
    for (Value Result : Op->getResults()) {
      if (Region.plan.extent(Result) != Extent::PerColumn || Result.use_empty())
        continue;
      llvm::Value *Base = nullptr;
      if (const RegionOutputs::Output *O = Region.outputs.storedBefore(Result, Now))
        Base = F.operand(Region.fusion.getInputs().size() + O->index);
      else if (std::optional<HostWorkspace::Slot> Slot = Region.workspace.reduced(Result))
        Base = F.workspace(Slot->offset);
      if (Base)
        SpreadValues[Result] = spreadFrom(storageType(Result), Base);
    }
  }
}

} // namespace mpc::codegen
