#include "compiler/codegen/host_position.h"

using namespace mlir;

namespace mpc::codegen {

bool canStream(const HostFusion &region, const FusionOutputs::Output &o) {
  bool inLastPhase = o.when.phase + 1 == region.plan.numPhases(o.when.sweep);
  return region.schedule.streams && o.extent == Extent::Full && inLastPhase;
}

static llvm::Align alignOf(llvm::Type *t) { return llvm::Align(t->getScalarSizeInBits() / 8); }

void HostPosition::setRow(llvm::Value *at) {
  row = at;
  start = f.builder().CreateMul(row, f.index(region.schedule.width));
}

void HostPosition::setColumn(llvm::Value *at, llvm::Constant *lanes) {
  columnIndex = at;
  mask = lanes;
  keptHere.clear();
}

llvm::Value *HostPosition::loadVector(llvm::Type *t, llvm::Value *address) const {
  auto *vector = llvm::FixedVectorType::get(t, region.schedule.lanes);
  if (!mask)
    return f.builder().CreateAlignedLoad(vector, address, alignOf(t));
  return f.builder().CreateMaskedLoad(vector, address, alignOf(t), mask, llvm::Constant::getNullValue(vector));
}

void HostPosition::storeVector(llvm::Value *value, llvm::Value *address) const {
  llvm::IRBuilder<> &b = f.builder();
  value = lanes(value);
  if (!mask)
    b.CreateAlignedStore(value, address, alignOf(value->getType()));
  else if (!mask->getAggregateElement(1u)->isOneValue())
    // One lane. LLVM 22 would store it as wide as it was before it was truncated.
    b.CreateAlignedStore(b.CreateExtractElement(value, uint64_t(0)), address, alignOf(value->getType()));
  else
    b.CreateMaskedStore(value, address, alignOf(value->getType()), mask);
}

llvm::Value *HostPosition::address(llvm::Type *t, llvm::Value *base, Extent e) const {
  llvm::IRBuilder<> &b = f.builder();
  switch (e) {
  case Extent::Full:
    return b.CreateGEP(t, base, b.CreateAdd(start, columnIndex));
  case Extent::PerRow:
    return b.CreateGEP(t, base, row);
  case Extent::PerColumn:
    return b.CreateGEP(t, base, columnIndex);
  case Extent::Single:
    return base;
  }
  llvm_unreachable("an extent");
}

llvm::Value *HostPosition::loadFrom(llvm::Type *t, llvm::Value *base, Extent e) const {
  llvm::Value *place = address(t, base, e);
  if (e == Extent::Full || e == Extent::PerColumn)
    return loadVector(t, place);
  return f.builder().CreateAlignedLoad(t, place, alignOf(t));
}

static void storeAt(const HostPosition &p, llvm::IRBuilder<> &b, llvm::Value *value, llvm::Value *address, Extent e) {
  if (e == Extent::Full || e == Extent::PerColumn)
    p.storeVector(value, address);
  else
    b.CreateAlignedStore(value, address, alignOf(value->getType()));
}

bool HostPosition::isStreamed(const FusionOutputs::Output &o) const {
  const HostSchedule &s = region.schedule;
  return canStream(region, o) && !mask && s.width % s.lanes == 0;
}

llvm::Value *HostPosition::address(const FusionOutputs::Output &o) const {
  return address(storageType(o.value), f.operand(region.fusion.getInputs().size() + o.index), o.extent);
}

void HostPosition::store(const FusionOutputs::Output &o, llvm::Value *value) const {
  if (isStreamed(o))
    f.stream(lanes(value), address(o));
  else
    storeAt(*this, f.builder(), value, address(o), o.extent);
}

void HostPosition::store(HostWorkspace::SavedValue saved, llvm::Value *value) const {
  llvm::Value *base = f.workspace(saved.offset);
  storeAt(*this, f.builder(), value, address(value->getType()->getScalarType(), base, saved.extent), saved.extent);
}

// No GEP: the address may lie beyond the tensor.
static void prefetchAt(HostFunction &f, Value input, llvm::Value *bytes) {
  llvm::IRBuilder<> &b = f.builder();
  llvm::Value *base = b.CreatePtrToInt(f.operand(cast<BlockArgument>(input).getArgNumber()), b.getInt64Ty());
  llvm::Value *address = b.CreateIntToPtr(b.CreateAdd(base, bytes), b.getPtrTy());
  constexpr int read = 0, secondLevel = 2, data = 1;
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                    {address, b.getInt32(read), b.getInt32(secondLevel), b.getInt32(data)});
}

static int64_t bytesOf(Value input) { return storageType(input)->getScalarSizeInBits() / 8; }

void HostPosition::prefetchBelow(Value input, int64_t rows) const {
  prefetchAhead(input, rows * region.schedule.width * bytesOf(input));
}

void HostPosition::prefetchAhead(Value input, int64_t bytes) const {
  llvm::IRBuilder<> &b = f.builder();
  constexpr int64_t lineBytes = 64;
  llvm::Value *here = b.CreateMul(b.CreateAdd(start, columnIndex), f.index(bytesOf(input)));
  for (int64_t byte = 0; byte < region.schedule.lanes * bytesOf(input); byte += lineBytes)
    prefetchAt(f, input, b.CreateAdd(here, f.index(bytes + byte)));
}

void HostPosition::prefetchHalfBelow(Value input, bool second) const {
  llvm::IRBuilder<> &b = f.builder();
  int64_t bytes = bytesOf(input), rowBytes = region.schedule.width * bytes;
  llvm::Value *half = bytes % 2 == 0 ? b.CreateMul(columnIndex, f.index(bytes / 2)) : b.CreateLShr(columnIndex, 1);
  llvm::Value *below =
      b.CreateAdd(b.CreateMul(start, f.index(bytes)), f.index(second ? rowBytes + rowBytes / 2 : rowBytes));
  prefetchAt(f, input, b.CreateAdd(below, half));
}

llvm::Value *HostPosition::load(Value input, Extent e) {
  llvm::Type *t = storageType(input);
  if (llvm::Value *spread = spreadValues.lookup(input))
    return loadFrom(t, spread, e);
  return loadFrom(t, f.operand(cast<BlockArgument>(input).getArgNumber()), e);
}

llvm::Value *HostPosition::loadStored(Value v, Extent e) {
  llvm::Type *t = storageType(v);
  if (llvm::Value *spread = spreadValues.lookup(v))
    return loadFrom(t, spread, e);
  if (const FusionOutputs::Output *o = region.outputs.storedBefore(v, now))
    return loadFrom(t, f.operand(region.fusion.getInputs().size() + o->index), e);
  if (std::optional<HostWorkspace::SavedValue> saved = region.workspace.reduced(v))
    return loadFrom(t, f.workspace(saved->offset), e);
  return nullptr;
}

Float HostPosition::loadKept(Operation *op, unsigned index) {
  llvm::Value *&known = keptHere[{op, index}];
  if (!known) {
    std::optional<HostWorkspace::SavedValue> saved = region.workspace.kept(op)[index];
    assert(saved && "what a row kept is not used in a later sweep");
    llvm::IRBuilder<> &b = f.builder();
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    if (llvm::Instruction *first = anchor(saved->extent))
      b.SetInsertPoint(first);
    llvm::Value *spread = spreadKept.lookup({op, index});
    known = loadFrom(b.getFloatTy(), spread ? spread : f.workspace(saved->offset), saved->extent);
  }
  return Float(known);
}

llvm::Value *HostPosition::iota(llvm::Value *first) const {
  SmallVector<llvm::Constant *> offsets;
  for (unsigned lane = 0; lane < region.schedule.lanes; ++lane)
    offsets.push_back(llvm::ConstantInt::get(first->getType(), lane));
  return f.builder().CreateAdd(lanes(first), llvm::ConstantVector::get(offsets));
}

Unsigned HostPosition::column() {
  llvm::IRBuilder<> &b = f.builder();
  if (region.schedule.width == region.schedule.columns)
    return Unsigned(iota(b.CreateTrunc(columnIndex, b.getInt32Ty())));
  llvm::Value *inRow = b.CreateURem(linearIndex().value(), lanes(f.index(region.schedule.columns)));
  return Unsigned(b.CreateTrunc(inRow, typeLike(b.getInt32Ty(), inRow)));
}

Float HostPosition::atColumn(Unsigned wanted, Float there, Float elsewhere) {
  const HostSchedule &s = region.schedule;
  if (s.width != s.columns || lanesOf(wanted.value()) != 0)
    return Position::atColumn(wanted, there, elsewhere);
  llvm::IRBuilder<> &b = f.builder();
  Unsigned lane = wanted - Unsigned(b.CreateTrunc(columnIndex, b.getInt32Ty()));
  return Float(f.rarely((lane < Unsigned(s.lanes)).value(), lanes(elsewhere.value()),
                        [&] { return select(Unsigned(iota(b.getInt32(0))) == lane, there, elsewhere).value(); }));
}

Long HostPosition::linearIndex() { return Long(iota(f.builder().CreateAdd(start, columnIndex))); }

Float HostPosition::once(Operation *op, llvm::function_ref<Float()> compute) {
  // A row of this length stays in the second-level cache beside the row, and takes little of any stack.
  constexpr int64_t longest = 16 * 1024;
  const HostSchedule &s = region.schedule;
  if (s.width > longest)
    return compute();
  llvm::IRBuilder<> &b = f.builder();
  auto [it, isFirst] = rows.try_emplace(op);
  if (isFirst)
    it->second = {f.buffer(b.getFloatTy(), llvm::alignTo(s.width, s.lanes)), now.phase};
  auto [buffer, phase] = it->second;
  llvm::Value *address = b.CreateGEP(b.getFloatTy(), buffer, columnIndex);
  llvm::Align alignment(s.lanes * sizeof(float));
  if (phase != now.phase)
    return Float(b.CreateAlignedLoad(llvm::FixedVectorType::get(b.getFloatTy(), s.lanes), address, alignment));
  Float number = compute();
  b.CreateAlignedStore(lanes(number.value()), address, alignment);
  return number;
}

llvm::Value *HostPosition::spreadFrom(llvm::Type *t, llvm::Value *base) {
  llvm::IRBuilder<> &b = f.builder();
  const HostSchedule &s = region.schedule;
  // Each copy is written in whole vectors; what is too much, the next one overwrites.
  llvm::Value *buffer = f.buffer(t, s.width + s.lanes);
  f.loop(f.index(0), f.index(s.copies), 1, [&](llvm::Value *copy) {
    llvm::Value *target = b.CreateGEP(t, buffer, b.CreateMul(copy, f.index(s.columns)));
    auto move = [&](llvm::Value *at, llvm::Constant *lanes) {
      setColumn(at, lanes);
      llvm::Value *source = loadVector(t, b.CreateGEP(t, base, at));
      setColumn(at, nullptr);
      storeVector(source, b.CreateGEP(t, target, at));
    };
    int64_t tail = s.columns % s.lanes;
    f.loop(f.index(0), f.index(s.columns - tail), s.lanes, [&](llvm::Value *at) { move(at, nullptr); });
    if (tail != 0)
      move(f.index(s.columns - tail), firstLanes(s.lanes, tail));
  });
  return buffer;
}

void HostPosition::spreadColumns() {
  if (region.schedule.copies == 1)
    return;
  llvm::SetVector<Value> inputs;
  for (unsigned phase = 0; phase < region.plan.numPhases(now.sweep); ++phase)
    inputs.insert_range(region.outputs.inputsRead({now.sweep, phase}));
  for (Value input : inputs)
    if (region.plan.extent(input) == Extent::PerColumn)
      spreadValues[input] = spreadFrom(storageType(input), f.operand(cast<BlockArgument>(input).getArgNumber()));
  for (Operation *op : region.plan.getBody()) {
    for (auto [index, saved] : llvm::enumerate(region.workspace.kept(op)))
      if (saved && saved->extent == Extent::PerColumn)
        spreadKept[{op, static_cast<unsigned>(index)}] =
            spreadFrom(f.builder().getFloatTy(), f.workspace(saved->offset));
    for (Value result : op->getResults()) {
      if (region.plan.extent(result) != Extent::PerColumn || result.use_empty())
        continue;
      llvm::Value *base = nullptr;
      if (const FusionOutputs::Output *o = region.outputs.storedBefore(result, now))
        base = f.operand(region.fusion.getInputs().size() + o->index);
      else if (std::optional<HostWorkspace::SavedValue> saved = region.workspace.reduced(result))
        base = f.workspace(saved->offset);
      if (base)
        spreadValues[result] = spreadFrom(storageType(result), base);
    }
  }
}

} // namespace mpc::codegen
