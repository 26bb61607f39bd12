#include "compiler/codegen/body_emitter.h"

#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc::codegen {

static Type elementType(Value V) { return cast<RankedTensorType>(V.getType()).getElementType(); }

llvm::Type *storageType(Value V) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  Type T = elementType(V);
  if (T.isF32())
    return B.getFloatTy();
  if (T.isF64())
    return B.getDoubleTy();
  return B.getIntNTy(std::max(8u, T.getIntOrFloatBitWidth()));
}

bool isWide(Combine How) { return How == Combine::SumF64 || How == Combine::SquaresF64; }

llvm::Constant *identity(Combine How) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  switch (How) {
  case Combine::Sum:
    return llvm::ConstantFP::get(B.getFloatTy(), 0.0);
  case Combine::SumF64:
  case Combine::SquaresF64:
    return llvm::ConstantFP::get(B.getDoubleTy(), 0.0);
  case Combine::MaxNum:
  case Combine::Maximum:
    return llvm::ConstantFP::getInfinity(B.getFloatTy(), /*Negative=*/true);
  }
  llvm_unreachable("a combination");
}

llvm::Value *combine(Combine How, llvm::Value *A, llvm::Value *B) {
  llvm::IRBuilder<> &Builder = EmissionScope::builder();
  switch (How) {
  case Combine::Sum:
  case Combine::SumF64:
  case Combine::SquaresF64:
    return Builder.CreateFAdd(A, B);
  case Combine::MaxNum:
    return Builder.CreateSelect(Builder.CreateFCmpOGT(B, A), B, A);
  case Combine::Maximum: {
    llvm::Value *Wins = Builder.CreateOr(Builder.CreateFCmpOGT(B, A), Builder.CreateFCmpUNO(B, B));
    return Builder.CreateSelect(Wins, B, A);
  }
  }
  llvm_unreachable("a combination");
}

llvm::Value *accumulable(Combine How, Float Term) {
  if (!isWide(How))
    return Term.value();
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Value *Wide = B.CreateFPExt(Term.value(), typeLike(B.getDoubleTy(), Term.value()));
  // Exact: a square of 24 bits has 48.
  return How == Combine::SquaresF64 ? B.CreateFMul(Wide, Wide) : Wide;
}

Float Position::atColumn(Unsigned Column, Float There, Float Elsewhere) {
  return select(column() == Column, There, Elsewhere);
}

Float Conversion::widen(llvm::Value *Stored, Type StorageType) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Type *Wide = typeLike(B.getFloatTy(), Stored);
  if (StorageType.isF16())
    return Float(B.CreateFPExt(B.CreateBitCast(Stored, typeLike(B.getHalfTy(), Stored)), Wide));
  // bf16 is the upper half of an f32: a shift costs a GPU less than a conversion.
  llvm::Value *Bits = B.CreateZExt(Stored, typeLike(B.getInt32Ty(), Stored));
  return Float(B.CreateBitCast(B.CreateShl(Bits, 16), Wide));
}

llvm::Value *Conversion::roundByTarget(Float Value, llvm::Type *Low) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Value *V = Value.value();
  return B.CreateBitCast(B.CreateFPTrunc(V, typeLike(Low, V)), typeLike(B.getInt16Ty(), V));
}

/// The context that one operation sees, element by element or while it finishes a reduction.
class BodyEmitter::Context final : public ElementContext {
public:
  Context(BodyEmitter &Emitter, Operation *Op) : Emitter(Emitter), Op(Op) {}
  Context(BodyEmitter &Emitter, const RegionPlan::Step &Step, ArrayRef<llvm::Value *> Accumulated)
      : Emitter(Emitter), Op(Step.op), Finished(&Step), Accumulators(Accumulated) {}

  Float operand(unsigned Index) override { return Float(Emitter.number(Op->getOperand(Index))); }
  Long integerOperand(unsigned Index) override { return Long(Emitter.number(Op->getOperand(Index))); }
  Bool boolOperand(unsigned Index) override { return Bool(Emitter.number(Op->getOperand(Index))); }

  Unsigned column() override { return Emitter.Where->column(); }
  Float atColumn(Unsigned Column, Float There, Float Elsewhere) override {
    return Emitter.Where->atColumn(Column, There, Elsewhere);
  }
  Long linearIndex() override { return Emitter.Where->linearIndex(); }
  Float once(llvm::function_ref<Float()> Compute) override { return Emitter.Where->once(Op, Compute); }
  int64_t count(Axis Along) const override {
    switch (Along) {
    case Axis::Row:
      return Emitter.Plan.columns();
    case Axis::Column:
      return Emitter.Plan.rows();
    case Axis::All:
      return Emitter.Plan.elements();
    }
    llvm_unreachable("an axis");
  }

  void addTerm(Float Term) override { Terms.push_back(Term); }
  Float accumulated(unsigned Index) override {
    llvm::Value *V = Accumulators[Index];
    if (!isWide(Finished->reduction.accumulators[Index]))
      return Float(V);
    llvm::IRBuilder<> &B = EmissionScope::builder();
    return Float(B.CreateFPTrunc(V, typeLike(B.getFloatTy(), V)));
  }
  Double accumulatedF64(unsigned Index) override { return Double(Accumulators[Index]); }
  void keep(Float Value) override { Emitter.Kept[Op].push_back(Emitter.Convert.shared(Value)); }
  Float kept(unsigned Index) override {
    unsigned First = Emitter.firstKept(Op);
    return Index < First ? Emitter.Where->loadKept(Op, Index) : Emitter.Kept[Op][Index - First];
  }

  void setResult(unsigned Index, Float Value) override { set(Index, Value.value()); }
  void setResult(unsigned Index, Bool Value) override { set(Index, Value.value()); }
  void setResult(unsigned Index, Long Value) override { set(Index, Value.value()); }
  bool isUsed(unsigned Index) const override { return !Op->getResult(Index).use_empty(); }

  SmallVector<Float, 2> Terms;

private:
  void set(unsigned Index, llvm::Value *Number) { Emitter.set(Op->getResult(Index), Number, Finished != nullptr); }

  BodyEmitter &Emitter;
  Operation *Op;
  const RegionPlan::Step *Finished = nullptr;
  ArrayRef<llvm::Value *> Accumulators;
};

void BodyEmitter::moveTo(Position &To) {
  Where = &To;
  forget(Extent::Full);
  for (Extent E : {Extent::PerRow, Extent::PerColumn, Extent::Single})
    if (!To.anchor(E))
      forget(E);
}

void BodyEmitter::forget(Extent E) {
  for (auto It = AtPosition.begin(), End = AtPosition.end(); It != End; ++It)
    if (Plan.extent(It->first) == E)
      AtPosition.erase(It);
}

BodyEmitter::Element *BodyEmitter::find(Value V) {
  if (auto It = Reduced.find(V); It != Reduced.end())
    return &It->second;
  auto It = AtPosition.find(V);
  return It == AtPosition.end() ? nullptr : &It->second;
}

void BodyEmitter::set(Value V, llvm::Value *Number, bool IsReduced) {
  Type T = elementType(V);
  Element Result;
  if (!isLow(T)) {
    Result.Number = IsReduced && T.isF32() ? Convert.shared(Float(Number)).value() : Number;
  } else {
    Result.Stored = Convert.round(Float(Number), T);
    // A reduced value outlives the loop in which it is first read.
    if (IsReduced)
      Result.Number = Convert.widen(Result.Stored, T).value();
  }
  (IsReduced ? Reduced : AtPosition)[V] = Result;
}

BodyEmitter::Element BodyEmitter::evaluate(Value V) {
  if (Element *Known = find(V))
    return *Known;
  llvm::IRBuilder<> &B = EmissionScope::builder();
  // Code at the position may end in another block than it began in.
  std::optional<llvm::IRBuilderBase::InsertPointGuard> Guard;
  Extent E = Plan.extent(V);
  if (llvm::Instruction *Anchor = Where->anchor(E)) {
    Guard.emplace(B);
    B.SetInsertPoint(Anchor);
  }
  Operation *Op = V.getDefiningOp();
  Element Result;
  // A region's inputs are its block arguments, or values from outside of its operations.
  if (!Op || !llvm::is_contained(Plan.body(), Op))
    Result.Stored = Where->load(V, E);
  else if (llvm::Value *InMemory = Where->loadStored(V, E))
    Result.Stored = InMemory;
  else if (isa<ViewLikeOpInterface>(Op))
    Result = evaluate(Op->getOperand(0));
  else {
    Context View(*this, Op);
    cast<FusibleOpInterface>(Op).emitElement(View);
    Element *Known = find(V);
    assert(Known && "an operation sets every result that is used");
    return *Known;
  }
  bool IsShared = E == Extent::PerRow || E == Extent::Single;
  if (IsShared && Result.Stored && !Result.Number && elementType(V).isF32())
    Result.Number = Convert.shared(Float(Result.Stored)).value();
  AtPosition[V] = Result;
  return Result;
}

llvm::Value *BodyEmitter::stored(Value V) {
  Element E = evaluate(V);
  if (E.Stored)
    return E.Stored;
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Type *T = typeLike(storageType(V), E.Number);
  if (E.Number->getType() == T)
    return E.Number;
  return elementType(V).isInteger(1) ? B.CreateZExt(E.Number, T) : B.CreateTrunc(E.Number, T);
}

llvm::Value *BodyEmitter::number(Value V) {
  Element E = evaluate(V);
  Type T = elementType(V);
  llvm::IRBuilder<> &B = EmissionScope::builder();
  // An i32 or an i8 that was computed in 64 bits wraps as it is stored.
  const bool Narrow = T.isInteger(32) || T.isInteger(8);
  if (E.Number && !Narrow)
    return E.Number;
  llvm::IRBuilderBase::InsertPointGuard Guard(B);
  if (llvm::Instruction *Anchor = Where->anchor(Plan.extent(V)); Anchor && !Reduced.contains(V))
    B.SetInsertPoint(Anchor);
  llvm::Value *Stored = stored(V);
  llvm::Value *Number = Stored;
  if (isLow(T))
    Number = Convert.widen(Stored, T).value();
  else if (T.isInteger(1))
    Number = B.CreateICmpNE(Stored, llvm::Constant::getNullValue(Stored->getType()));
  else if (Narrow)
    return B.CreateSExt(Stored, typeLike(B.getInt64Ty(), Stored));
  find(V)->Number = Number;
  return Number;
}

SmallVector<Float, 2> BodyEmitter::terms(const RegionPlan::Step &Step) {
  Context View(*this, Step.op);
  cast<FusibleOpInterface>(Step.op).emitTerms(Step.index, View);
  assert(View.Terms.size() == Step.reduction.accumulators.size() && "a term for each accumulator");
  return View.Terms;
}

void BodyEmitter::finish(const RegionPlan::Step &Step, ArrayRef<llvm::Value *> Accumulated) {
  Context View(*this, Step, Accumulated);
  cast<FusibleOpInterface>(Step.op).emitFinish(Step.index, View);
}

ArrayRef<Float> BodyEmitter::kept(Operation *Op) const {
  auto It = Kept.find(Op);
  return It == Kept.end() ? ArrayRef<Float>() : ArrayRef<Float>(It->second);
}

} // namespace mpc::codegen
