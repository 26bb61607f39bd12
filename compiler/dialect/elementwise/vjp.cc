// Derivatives of element-wise operations, casts, data movement and reductions.
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

static SmallVector<Value> single(Value Cotangent) { return {Cotangent}; }

//===-- Element by element ---------------------------------------------------------------------------------------===//

// The cotangents of the operands of a sum, which broadcasting may have stretched.
static SmallVector<Value> addendCotangents(Operation *Op, OpBuilder &Builder, Value Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(Needed.size());
  for (auto [Index, Operand] : llvm::enumerate(Op->getOperands()))
    if (Needed[Index])
      Result[Index] = sumTo(Builder, Op->getLoc(), Dy, tensorTypeOf(Operand));
  return Result;
}

Cotangents AddOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return addendCotangents(*this, Builder, Dy[0], Needed);
}

Cotangents SubOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result = addendCotangents(*this, Builder, Dy[0], Needed);
  if (Value Sum = Result[1])
    Result[1] = NegOp::create(Builder, getLoc(), Sum.getType(), Sum);
  return Result;
}

Cotangents MulOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  for (unsigned Index : {0u, 1u})
    if (Needed[Index])
      Result[Index] = summedTerm<MulOp>(Builder, getLoc(), getOperand(Index), getY(), {Dy[0], getOperand(1 - Index)});
  return Result;
}

Cotangents DivOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  if (Needed[0])
    Result[0] = summedTerm<DivOp>(Builder, getLoc(), getA(), getY(), {Dy[0], getB()});
  if (Needed[1])
    Result[1] = summedTerm<DivGradOp>(Builder, getLoc(), getB(), getY(), {Dy[0], getY(), getB()});
  return Result;
}

Cotangents MaximumOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return extremumCotangents<MaximumGradOp>(*this, Builder, Dy[0], Needed);
}

Cotangents AddScalarOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return firstCotangent(Needed, [&] { return castTo(Builder, getLoc(), Dy[0], elementOf(getX())); });
}

Cotangents SumNOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(getNumOperands());
  for (auto [Index, Input] : llvm::enumerate(getInputs()))
    if (Needed[Index])
      Result[Index] = castTo(Builder, getLoc(), Dy[0], elementOf(Input));
  return Result;
}

Cotangents CastOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  // Integers are constants to a derivative: none of an integer is needed.
  if (!Needed[0])
    return single(nullptr);
  for (Type Element : {elementOf(getX()), elementOf(getY())})
    if (isCastOnly(Element))
      return emitOpError() << "has no derivative through " << Element << ": nothing but a cast takes it";
  return single(castTo(Builder, getLoc(), Dy[0], elementOf(getX())));
}

Cotangents StopGradientOp::buildVjp(OpBuilder &, ValueRange, ArrayRef<bool>) { return single(nullptr); }

Cotangents DropoutOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  // The same seed, step and call site draw the mask of the forward pass again.
  return firstCotangent(Needed, [&] {
    return DropoutOp::create(Builder, getLoc(), getX().getType(), Dy[0], getSeed(), getStep(), getPAttr(),
                             getCallSiteAttr());
  });
}

//===-- Data movement --------------------------------------------------------------------------------------------===//

Cotangents ReshapeOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return firstCotangent(
      Needed, [&] { return moveBack<ReshapeOp>(Builder, getLoc(), Dy[0], getX(), tensorTypeOf(getX()).getShape()); });
}

Cotangents TransposeOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<int64_t> Inverse(getPermutation().size());
  for (auto [Index, Axis] : llvm::enumerate(getPermutation()))
    Inverse[Axis] = int64_t(Index);
  return firstCotangent(Needed, [&] { return moveBack<TransposeOp>(Builder, getLoc(), Dy[0], getX(), Inverse); });
}

Cotangents BroadcastToOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return firstCotangent(Needed, [&] { return sumTo(Builder, getLoc(), Dy[0], tensorTypeOf(getX())); });
}

//===-- Reductions -----------------------------------------------------------------------------------------------===//

// Stretches the cotangent of a reduction over `Axes` (none: all) back to the operand's type.
static Value stretchOver(OpBuilder &Builder, Location Loc, Value Cotangent, RankedTensorType Target,
                         ArrayRef<int64_t> Axes, bool KeepDims) {
  Value Stretched = castTo(Builder, Loc, Cotangent, Target.getElementType());
  // A scalar broadcasts by itself, and so does a result that lost leading axes only.
  bool OnlyLeading = true;
  for (int64_t Axis : Axes)
    OnlyLeading &= Axis < int64_t(Axes.size());
  if (!KeepDims && !OnlyLeading) {
    SmallVector<int64_t> Kept(Target.getShape());
    for (int64_t Axis : Axes)
      Kept[Axis] = 1;
    Stretched = ReshapeOp::create(Builder, Loc, RankedTensorType::get(Kept, Target.getElementType()), Stretched, Kept);
  }
  if (Stretched.getType() == Target)
    return Stretched;
  return BroadcastToOp::create(Builder, Loc, Target, Stretched, Target.getShape());
}

Cotangents ReduceSumOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return firstCotangent(
      Needed, [&] { return stretchOver(Builder, getLoc(), Dy[0], tensorTypeOf(getX()), getAxes(), getKeepDims()); });
}

Cotangents ReduceMeanOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  RankedTensorType Type = tensorTypeOf(getX()), ResultType = tensorTypeOf(getY());
  int64_t Count = Type.getNumElements() / ResultType.getNumElements();
  return firstCotangent(Needed, [&] {
    // A division rounds once where a product with 1 / count would round twice; f32 holds counts beyond f16's range.
    Value Divisor = scalarConstant(Builder, getLoc(), accumulatorType(Type.getElementType()), double(Count));
    Value Share = DivOp::create(Builder, getLoc(), withElementType(ResultType, Type.getElementType()), Dy[0], Divisor);
    return stretchOver(Builder, getLoc(), Share, Type, getAxes(), getKeepDims());
  });
}

Cotangents ScaleLossOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Needed[1])
    return emitError() << describeWithCell(*this)
                       << " has no derivative by its scale, but the gradient of it is needed";
  return firstCotangent(Needed,
                        [&] { return ScaleLossOp::create(Builder, getLoc(), getLoss().getType(), Dy[0], getScale()); });
}

} // namespace mpc
