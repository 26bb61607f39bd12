// Derivatives of element-wise operations, casts, data movement and reductions.
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

static SmallVector<Value> single(Value Cotangent) { return {Cotangent}; }

//===-- Element by element ---------------------------------------------------------------------------------------===//

Cotangents NegOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (!Needed[0])
    return single(nullptr);
  return single(NegOp::create(Builder, getLoc(), getX().getType(), Dy[0]));
}

Cotangents AddOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  for (unsigned Index : {0u, 1u})
    if (Needed[Index])
      Result[Index] = sumTo(Builder, getLoc(), Dy[0], tensorTypeOf(getOperand(Index)));
  return Result;
}

Cotangents SubOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  if (Needed[0])
    Result[0] = sumTo(Builder, getLoc(), Dy[0], tensorTypeOf(getA()));
  if (Needed[1]) {
    Value Sum = sumTo(Builder, getLoc(), Dy[0], tensorTypeOf(getB()));
    Result[1] = NegOp::create(Builder, getLoc(), Sum.getType(), Sum);
  }
  return Result;
}

Cotangents MulOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  ArrayRef<int64_t> Full = tensorTypeOf(getY()).getShape();
  for (unsigned Index : {0u, 1u}) {
    if (!Needed[Index])
      continue;
    RankedTensorType Type = tensorTypeOf(getOperand(Index));
    Value Term = MulOp::create(Builder, getLoc(), termType(Type, Full), Dy[0], getOperand(1 - Index));
    Result[Index] = sumTo(Builder, getLoc(), Term, Type);
  }
  return Result;
}

Cotangents DivOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  ArrayRef<int64_t> Full = tensorTypeOf(getY()).getShape();
  if (Needed[0]) {
    RankedTensorType Type = tensorTypeOf(getA());
    Value Term = DivOp::create(Builder, getLoc(), termType(Type, Full), Dy[0], getB());
    Result[0] = sumTo(Builder, getLoc(), Term, Type);
  }
  if (Needed[1]) {
    RankedTensorType Type = tensorTypeOf(getB());
    Value Term = DivGradOp::create(Builder, getLoc(), termType(Type, Full), Dy[0], getY(), getB());
    Result[1] = sumTo(Builder, getLoc(), Term, Type);
  }
  return Result;
}

Cotangents MaximumOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return extremumCotangents<MaximumGradOp>(*this, Builder, Dy[0], Needed);
}

Cotangents AddScalarOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (!Needed[0])
    return single(nullptr);
  return single(castTo(Builder, getLoc(), Dy[0], tensorTypeOf(getX()).getElementType()));
}

Cotangents MulScalarOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (!Needed[0])
    return single(nullptr);
  return single(MulScalarOp::create(Builder, getLoc(), getX().getType(), Dy[0], getValueAttr()));
}

Cotangents SumNOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(getNumOperands());
  for (auto [Index, Input] : llvm::enumerate(getInputs()))
    if (Needed[Index])
      Result[Index] = castTo(Builder, getLoc(), Dy[0], tensorTypeOf(Input).getElementType());
  return Result;
}

Cotangents CastOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  // Integers are constants to a derivative: none of an integer is needed.
  if (!Needed[0])
    return single(nullptr);
  for (Type Element : {elementOf(getX()), elementOf(getY())})
    if (isCastOnly(Element))
      return emitOpError() << "has no derivative through " << Element << ": nothing but a cast takes it";
  return single(castTo(Builder, getLoc(), Dy[0], tensorTypeOf(getX()).getElementType()));
}

Cotangents StopGradientOp::buildVjp(OpBuilder &, ValueRange, ArrayRef<bool>) { return single(nullptr); }

Cotangents DropoutOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(3);
  // The same seed, step and call site draw the mask of the forward pass again.
  if (Needed[0])
    Result[0] = DropoutOp::create(Builder, getLoc(), getX().getType(), Dy[0], getSeed(), getStep(), getPAttr(),
                                  getCallSiteAttr());
  return Result;
}

//===-- Data movement --------------------------------------------------------------------------------------------===//

Cotangents ReshapeOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  RankedTensorType Type = tensorTypeOf(getX());
  if (!Needed[0] || !isa<FloatType>(Type.getElementType()))
    return single(nullptr);
  Value Cotangent = castTo(Builder, getLoc(), Dy[0], Type.getElementType());
  return single(ReshapeOp::create(Builder, getLoc(), Type, Cotangent, Type.getShape()));
}

Cotangents TransposeOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  RankedTensorType Type = tensorTypeOf(getX());
  if (!Needed[0] || !isa<FloatType>(Type.getElementType()))
    return single(nullptr);
  SmallVector<int64_t> Inverse(getPermutation().size());
  for (auto [Index, Axis] : llvm::enumerate(getPermutation()))
    Inverse[Axis] = int64_t(Index);
  Value Cotangent = castTo(Builder, getLoc(), Dy[0], Type.getElementType());
  return single(TransposeOp::create(Builder, getLoc(), Type, Cotangent, Inverse));
}

Cotangents BroadcastToOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (!Needed[0])
    return single(nullptr);
  return single(sumTo(Builder, getLoc(), Dy[0], tensorTypeOf(getX())));
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
  if (!Needed[0])
    return single(nullptr);
  return single(stretchOver(Builder, getLoc(), Dy[0], tensorTypeOf(getX()), getAxes(), getKeepDims()));
}

Cotangents ReduceMeanOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (!Needed[0])
    return single(nullptr);
  RankedTensorType Type = tensorTypeOf(getX()), ResultType = tensorTypeOf(getY());
  int64_t Count = Type.getNumElements() / ResultType.getNumElements();
  // A division rounds once where a product with 1 / count would round twice; f32 holds counts beyond f16's range.
  Value Divisor = scalarConstant(Builder, getLoc(), accumulatorType(Type.getElementType()), double(Count));
  Value Share = DivOp::create(Builder, getLoc(), withElementType(ResultType, Type.getElementType()), Dy[0], Divisor);
  return single(stretchOver(Builder, getLoc(), Share, Type, getAxes(), getKeepDims()));
}

Cotangents ScaleLossOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Needed[1])
    return emitError() << describeWithCell(*this)
                       << " has no derivative by its scale, but the gradient of it is needed";
  SmallVector<Value> Result(2);
  if (Needed[0])
    Result[0] = ScaleLossOp::create(Builder, getLoc(), getLoss().getType(), Dy[0], getScale());
  return Result;
}

} // namespace mpc
