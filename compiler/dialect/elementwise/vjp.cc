// Derivatives of element-wise operations, casts, data movement and reductions.
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

//===-- Element by element ---------------------------------------------------------------------------------------===//

// The cotangents of the operands of a sum, which broadcasting may have stretched.
static SmallVector<Value> addendCotangents(Operation *op, OpBuilder &builder, Value dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(needed.size());
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (needed[index])
      result[index] = sumTo(builder, op->getLoc(), dy, tensorTypeOf(operand));
  return result;
}

Cotangents AddOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return addendCotangents(*this, builder, dy[0], needed);
}

Cotangents SubOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result = addendCotangents(*this, builder, dy[0], needed);
  if (Value sum = result[1])
    result[1] = NegOp::create(builder, getLoc(), sum.getType(), sum);
  return result;
}

Cotangents MulOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  for (unsigned index : {0u, 1u})
    if (needed[index])
      result[index] = summedTerm<MulOp>(builder, getLoc(), getOperand(index), getY(), {dy[0], getOperand(1 - index)});
  return result;
}

Cotangents DivOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] = summedTerm<DivOp>(builder, getLoc(), getA(), getY(), {dy[0], getB()});
  if (needed[1])
    result[1] = summedTerm<DivGradOp>(builder, getLoc(), getB(), getY(), {dy[0], getY(), getB()});
  return result;
}

Cotangents MaximumOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return extremumCotangents<MaximumGradOp>(*this, builder, dy[0], needed);
}

Cotangents AddScalarOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] { return castTo(builder, getLoc(), dy[0], elementOf(getX())); });
}

Cotangents SumNOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(getNumOperands());
  for (auto [index, input] : llvm::enumerate(getInputs()))
    if (needed[index])
      result[index] = castTo(builder, getLoc(), dy[0], elementOf(input));
  return result;
}

Cotangents CastOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  // Integers are constants to a derivative: none of an integer is needed.
  if (!needed[0])
    return single(nullptr);
  for (Type element : {elementOf(getX()), elementOf(getY())})
    if (isCastOnly(element))
      return emitOpError() << "has no derivative through " << element << ": nothing but a cast takes it";
  return single(castTo(builder, getLoc(), dy[0], elementOf(getX())));
}

Cotangents StopGradientOp::buildVjp(OpBuilder &, ValueRange, ArrayRef<bool>) { return single(nullptr); }

Cotangents DropoutOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  // The same seed, step and call site draw the mask of the forward pass again.
  return firstCotangent(needed, [&] {
    return DropoutOp::create(builder, getLoc(), getX().getType(), dy[0], getSeed(), getStep(), getPAttr(),
                             getCallSiteAttr());
  });
}

//===-- Data movement --------------------------------------------------------------------------------------------===//

Cotangents ReshapeOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return firstCotangent(
      needed, [&] { return moveBack<ReshapeOp>(builder, getLoc(), dy[0], getX(), tensorTypeOf(getX()).getShape()); });
}

Cotangents TransposeOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [index, axis] : llvm::enumerate(getPermutation()))
    inverse[axis] = int64_t(index);
  return firstCotangent(needed, [&] { return moveBack<TransposeOp>(builder, getLoc(), dy[0], getX(), inverse); });
}

Cotangents BroadcastToOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] { return sumTo(builder, getLoc(), dy[0], tensorTypeOf(getX())); });
}

//===-- Reductions -----------------------------------------------------------------------------------------------===//

// Stretches the cotangent of a reduction over `axes` (none: all) back to the operand's type.
static Value stretchOver(OpBuilder &builder, Location loc, Value cotangent, RankedTensorType target,
                         ArrayRef<int64_t> axes, bool keepDims) {
  Value stretched = castTo(builder, loc, cotangent, target.getElementType());
  // A scalar broadcasts by itself, and so does a result that lost leading axes only.
  bool onlyLeading = true;
  for (int64_t axis : axes)
    onlyLeading &= axis < int64_t(axes.size());
  if (!keepDims && !onlyLeading) {
    SmallVector<int64_t> kept(target.getShape());
    for (int64_t axis : axes)
      kept[axis] = 1;
    stretched = ReshapeOp::create(builder, loc, RankedTensorType::get(kept, target.getElementType()), stretched, kept);
  }
  if (stretched.getType() == target)
    return stretched;
  return BroadcastToOp::create(builder, loc, target, stretched, target.getShape());
}

Cotangents ReduceSumOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return firstCotangent(
      needed, [&] { return stretchOver(builder, getLoc(), dy[0], tensorTypeOf(getX()), getAxes(), getKeepDims()); });
}

Cotangents ReduceMeanOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  RankedTensorType type = tensorTypeOf(getX()), resultType = tensorTypeOf(getY());
  int64_t count = type.getNumElements() / resultType.getNumElements();
  return firstCotangent(needed, [&] {
    // A division rounds once where a product with 1 / count would round twice; f32 holds counts beyond f16's range.
    Value divisor = scalarConstant(builder, getLoc(), accumulatorType(type.getElementType()), double(count));
    Value share = DivOp::create(builder, getLoc(), withElementType(resultType, type.getElementType()), dy[0], divisor);
    return stretchOver(builder, getLoc(), share, type, getAxes(), getKeepDims());
  });
}

Cotangents ScaleLossOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  if (needed[1])
    return noDerivativeByScale(*this);
  return firstCotangent(needed,
                        [&] { return ScaleLossOp::create(builder, getLoc(), getLoss().getType(), dy[0], getScale()); });
}

} // namespace mpc
