// Means and decisions of several processes, with processes=2.
//
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
//   %u = mpc.unscale %dw, %scale : ...
// becomes
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
//   %is_finite = mpc.equal %first_bad, %none : ...
//   %code = mpc.select %is_finite, %finite_code, %first_bad : ...
//   %largest = mpc.all_reduce_max %code {processes = 2} : ...
//   %are_finite = mpc.equal %largest, %finite_code : ...
//   %agreed = mpc.select %are_finite, %none, %largest : ...
//   %all_finite = mpc.equal %agreed, %none : ...
//   %u = mpc.unscale %dw, %scale : ...
//   %share = mpc.mul_scalar %u {value = 0.5} : ...
//   %mean = mpc.all_reduce %share {processes = 2} : ...
#include "passes/step/process_mean.h"

using namespace mlir;

namespace mpc {

static RankedTensorType f32Like(Value v) {
  auto type = cast<RankedTensorType>(v.getType());
  return type.clone(Float32Type::get(type.getContext()));
}

static Value code(OpBuilder &builder, Location loc, int32_t number) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, builder.getI32IntegerAttr(number)));
}

Value ProcessMean::mean(OpBuilder &builder, Location loc, Value gradient) const {
  if (isAlone())
    return gradient;
  RankedTensorType type = f32Like(gradient);
  Value wide = type == gradient.getType() ? gradient : CastOp::create(builder, loc, type, gradient).getY();
  Value share = MulScalarOp::create(builder, loc, type, wide, APFloat(1.0f / float(processes)));
  Value total = AllReduceOp::create(builder, loc, type, share, uint64_t(processes));
  return type == gradient.getType() ? total : CastOp::create(builder, loc, gradient.getType(), total).getY();
}

Finding ProcessMean::agree(OpBuilder &builder, Location loc, Value firstBad) const {
  // The largest code is what stays, so that "finite" is below the codes of what is not.
  constexpr int32_t finiteCode = -3;
  Type position = firstBad.getType();
  auto flag = RankedTensorType::get({}, builder.getI1Type());
  Value none = code(builder, loc, -1), finite = code(builder, loc, finiteCode);
  Value isFinite = EqualOp::create(builder, loc, flag, firstBad, none);
  Value found = SelectOp::create(builder, loc, position, isFinite, finite, firstBad);
  Value largest = AllReduceMaxOp::create(builder, loc, position, found, uint64_t(processes));
  Value areFinite = EqualOp::create(builder, loc, flag, largest, finite);
  Value agreed = SelectOp::create(builder, loc, position, areFinite, none, largest);
  return {EqualOp::create(builder, loc, flag, agreed, none), agreed};
}

} // namespace mpc
