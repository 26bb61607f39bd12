#include "compiler/codegen/body_emitter.h"

#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc::codegen {

static Type elementType(Value v) { return cast<RankedTensorType>(v.getType()).getElementType(); }

llvm::Type *storageType(Value v) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  Type t = elementType(v);
  if (t.isF32())
    return b.getFloatTy();
  if (t.isF64())
    return b.getDoubleTy();
  return b.getIntNTy(std::max(8u, t.getIntOrFloatBitWidth()));
}

bool isWide(Combine how) { return how == Combine::SumF64 || how == Combine::SquaresF64; }

llvm::Constant *identity(Combine how) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  switch (how) {
  case Combine::Sum:
    return llvm::ConstantFP::get(b.getFloatTy(), 0.0);
  case Combine::SumF64:
  case Combine::SquaresF64:
    return llvm::ConstantFP::get(b.getDoubleTy(), 0.0);
  case Combine::MaxNum:
  case Combine::Maximum:
    return llvm::ConstantFP::getInfinity(b.getFloatTy(), /*negative=*/true);
  }
  llvm_unreachable("a combination");
}

llvm::Value *combine(Combine how, llvm::Value *a, llvm::Value *b) {
  llvm::IRBuilder<> &builder = EmissionScope::builder();
  switch (how) {
  case Combine::Sum:
  case Combine::SumF64:
  case Combine::SquaresF64:
    return builder.CreateFAdd(a, b);
  case Combine::MaxNum:
    return builder.CreateSelect(builder.CreateFCmpOGT(b, a), b, a);
  case Combine::Maximum: {
    llvm::Value *wins = builder.CreateOr(builder.CreateFCmpOGT(b, a), builder.CreateFCmpUNO(b, b));
    return builder.CreateSelect(wins, b, a);
  }
  }
  llvm_unreachable("a combination");
}

llvm::Value *accumulable(Combine how, Float term) {
  if (!isWide(how))
    return term.value();
  llvm::IRBuilder<> &b = EmissionScope::builder();
  llvm::Value *wide = b.CreateFPExt(term.value(), typeLike(b.getDoubleTy(), term.value()));
  // Exact: a square of 24 bits has 48.
  return how == Combine::SquaresF64 ? b.CreateFMul(wide, wide) : wide;
}

Float Position::atColumn(Unsigned which, Float there, Float elsewhere) {
  return select(column() == which, there, elsewhere);
}

Float Conversion::widen(llvm::Value *stored, Type storageType) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  llvm::Type *wide = typeLike(b.getFloatTy(), stored);
  if (storageType.isF16())
    return Float(b.CreateFPExt(b.CreateBitCast(stored, typeLike(b.getHalfTy(), stored)), wide));
  // bf16 is the upper half of an f32: a shift costs a GPU less than a conversion.
  llvm::Value *bits = b.CreateZExt(stored, typeLike(b.getInt32Ty(), stored));
  return Float(b.CreateBitCast(b.CreateShl(bits, 16), wide));
}

llvm::Value *Conversion::roundByTarget(Float value, llvm::Type *low) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  llvm::Value *v = value.value();
  return b.CreateBitCast(b.CreateFPTrunc(v, typeLike(low, v)), typeLike(b.getInt16Ty(), v));
}

/// The context that one operation sees, element by element or while it finishes a reduction.
class BodyEmitter::Context final : public ElementContext {
public:
  Context(BodyEmitter &emitter, Operation *op) : emitter(emitter), op(op) {}
  Context(BodyEmitter &emitter, const FusionPlan::Step &step, ArrayRef<llvm::Value *> accumulated)
      : emitter(emitter), op(step.op), finished(&step), accumulators(accumulated) {}

  Float operand(unsigned index) override { return Float(emitter.number(op->getOperand(index))); }
  Long integerOperand(unsigned index) override { return Long(emitter.number(op->getOperand(index))); }
  Bool boolOperand(unsigned index) override { return Bool(emitter.number(op->getOperand(index))); }

  Unsigned column() override { return emitter.where->column(); }
  Float atColumn(Unsigned column, Float there, Float elsewhere) override {
    return emitter.where->atColumn(column, there, elsewhere);
  }
  Long linearIndex() override { return emitter.where->linearIndex(); }
  Float once(llvm::function_ref<Float()> compute) override { return emitter.where->once(op, compute); }
  int64_t count(Axis along) const override {
    switch (along) {
    case Axis::Row:
      return emitter.plan.getColumns();
    case Axis::Column:
      return emitter.plan.rows();
    case Axis::All:
      return emitter.plan.getElements();
    }
    llvm_unreachable("an axis");
  }

  void addTerm(Float term) override { terms.push_back(term); }
  Float accumulated(unsigned index) override {
    llvm::Value *v = accumulators[index];
    if (!isWide(finished->reduction.accumulators[index]))
      return Float(v);
    llvm::IRBuilder<> &b = EmissionScope::builder();
    return Float(b.CreateFPTrunc(v, typeLike(b.getFloatTy(), v)));
  }
  Double accumulatedF64(unsigned index) override { return Double(accumulators[index]); }
  void keep(Float value) override { emitter.keptValues[op].push_back(emitter.convert.shared(value)); }
  Float kept(unsigned index) override {
    unsigned first = emitter.firstKept(op);
    return index < first ? emitter.where->loadKept(op, index) : emitter.keptValues[op][index - first];
  }

  void setResult(unsigned index, Float value) override { set(index, value.value()); }
  void setResult(unsigned index, Bool value) override { set(index, value.value()); }
  void setResult(unsigned index, Long value) override { set(index, value.value()); }
  bool isUsed(unsigned index) const override { return !op->getResult(index).use_empty(); }

  SmallVector<Float, 2> terms;

private:
  void set(unsigned index, llvm::Value *number) { emitter.set(op->getResult(index), number, finished != nullptr); }

  BodyEmitter &emitter;
  Operation *op;
  const FusionPlan::Step *finished = nullptr;
  ArrayRef<llvm::Value *> accumulators;
};

void BodyEmitter::moveTo(Position &to) {
  where = &to;
  forget(Extent::Full);
  for (Extent e : {Extent::PerRow, Extent::PerColumn, Extent::Single})
    if (!to.anchor(e))
      forget(e);
}

void BodyEmitter::forget(Extent e) {
  for (auto it = atPosition.begin(), end = atPosition.end(); it != end; ++it)
    if (plan.extent(it->first) == e)
      atPosition.erase(it);
}

BodyEmitter::Element *BodyEmitter::find(Value v) {
  if (auto it = reduced.find(v); it != reduced.end())
    return &it->second;
  auto it = atPosition.find(v);
  return it == atPosition.end() ? nullptr : &it->second;
}

void BodyEmitter::set(Value v, llvm::Value *number, bool isReduced) {
  Type t = elementType(v);
  Element result;
  if (!isLow(t)) {
    result.number = isReduced && t.isF32() ? convert.shared(Float(number)).value() : number;
  } else {
    result.stored = convert.round(Float(number), t);
    // A reduced value outlives the loop in which it is first read.
    if (isReduced)
      result.number = convert.widen(result.stored, t).value();
  }
  (isReduced ? reduced : atPosition)[v] = result;
}

BodyEmitter::Element BodyEmitter::evaluate(Value v) {
  if (Element *known = find(v))
    return *known;
  llvm::IRBuilder<> &b = EmissionScope::builder();
  // Code at the position may end in another block than it began in.
  std::optional<llvm::IRBuilderBase::InsertPointGuard> guard;
  Extent e = plan.extent(v);
  if (llvm::Instruction *anchor = where->anchor(e)) {
    guard.emplace(b);
    b.SetInsertPoint(anchor);
  }
  Operation *op = v.getDefiningOp();
  Element result;
  // A region's inputs are its block arguments, or values from outside of its operations.
  if (plan.isInput(v))
    result.stored = where->load(v, e);
  else if (llvm::Value *inMemory = where->loadStored(v, e))
    result.stored = inMemory;
  else if (isa<ViewLikeOpInterface>(op))
    result = evaluate(op->getOperand(0));
  else {
    Context view(*this, op);
    cast<FusibleOpInterface>(op).emitElement(view);
    Element *known = find(v);
    assert(known && "an operation sets every result that is used");
    return *known;
  }
  bool isShared = e == Extent::PerRow || e == Extent::Single;
  if (isShared && result.stored && !result.number && elementType(v).isF32())
    result.number = convert.shared(Float(result.stored)).value();
  atPosition[v] = result;
  return result;
}

llvm::Value *BodyEmitter::stored(Value v) {
  Element e = evaluate(v);
  if (e.stored)
    return e.stored;
  llvm::IRBuilder<> &b = EmissionScope::builder();
  llvm::Type *t = typeLike(storageType(v), e.number);
  if (e.number->getType() == t)
    return e.number;
  return elementType(v).isInteger(1) ? b.CreateZExt(e.number, t) : b.CreateTrunc(e.number, t);
}

llvm::Value *BodyEmitter::number(Value v) {
  Element e = evaluate(v);
  Type t = elementType(v);
  llvm::IRBuilder<> &b = EmissionScope::builder();
  // An i32 or an i8 that was computed in 64 bits wraps as it is stored.
  const bool narrow = t.isInteger(32) || t.isInteger(8);
  if (e.number && !narrow)
    return e.number;
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  if (llvm::Instruction *anchor = where->anchor(plan.extent(v)); anchor && !reduced.contains(v))
    b.SetInsertPoint(anchor);
  llvm::Value *bits = stored(v), *number = bits;
  if (isLow(t))
    number = convert.widen(bits, t).value();
  else if (t.isInteger(1))
    number = b.CreateICmpNE(bits, llvm::Constant::getNullValue(bits->getType()));
  else if (narrow)
    return b.CreateSExt(bits, typeLike(b.getInt64Ty(), bits));
  find(v)->number = number;
  return number;
}

SmallVector<Float, 2> BodyEmitter::terms(const FusionPlan::Step &step) {
  Context view(*this, step.op);
  cast<FusibleOpInterface>(step.op).emitTerms(step.index, view);
  assert(view.terms.size() == step.reduction.accumulators.size() && "a term for each accumulator");
  return view.terms;
}

void BodyEmitter::finish(const FusionPlan::Step &step, ArrayRef<llvm::Value *> accumulated) {
  Context view(*this, step, accumulated);
  cast<FusibleOpInterface>(step.op).emitFinish(step.index, view);
}

ArrayRef<Float> BodyEmitter::kept(Operation *op) const {
  auto it = keptValues.find(op);
  return it == keptValues.end() ? ArrayRef<Float>() : ArrayRef<Float>(it->second);
}

} // namespace mpc::codegen
