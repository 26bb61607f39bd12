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
//
// A sum has no %share. With communication-dtype=f16 the scaled gradients are added, and the mean is unscaled then.
//
//   %share = mpc.mul_scalar %dw {value = 0.5} : tensor<4xf32>
//   %low = mpc.cast %share : (tensor<4xf32>) -> tensor<4xf16>
//   %sum = mpc.all_reduce %low {processes = 2} : tensor<4xf16>
//   %mean = mpc.cast %sum : (tensor<4xf16>) -> tensor<4xf32>
#include "passes/step/process_mean.h"

#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"
#include "passes/step/step_edit.h"

using namespace mlir;

namespace mpc {

Value ProcessMean::rounded(OpBuilder &builder, Location loc, Value v) const {
  if (!addsLow())
    return v;
  return castTo(builder, loc, castTo(builder, loc, v, exchange.low), elementOf(v));
}

Value ProcessMean::mean(OpBuilder &builder, Location loc, Value gradient) const {
  if (isAlone())
    return gradient;
  Value share = gradient;
  if (exchange.divides) {
    share = castTo(builder, loc, gradient, builder.getF32Type());
    share = MulScalarOp::create(builder, loc, share.getType(), share, APFloat(1.0f / float(processes)));
  }
  return castTo(builder, loc, sum(builder, loc, share), elementOf(gradient));
}

Value ProcessMean::sum(OpBuilder &builder, Location loc, Value share) const {
  Value term = castTo(builder, loc, share, exchange.low ? exchange.low : builder.getF32Type());
  return AllReduceOp::create(builder, loc, term.getType(), term, uint64_t(processes));
}

Value ProcessMean::agree(OpBuilder &builder, Location loc, Value firstBad) const {
  // The largest code is what stays, so that "finite" is below the codes of what is not.
  constexpr int32_t finiteCode = -3;
  Type position = firstBad.getType();
  auto flag = RankedTensorType::get({}, builder.getI1Type());
  Value none = integerScalar(builder, loc, -1), finite = integerScalar(builder, loc, finiteCode);
  Value isFinite = EqualOp::create(builder, loc, flag, firstBad, none);
  Value found = SelectOp::create(builder, loc, position, isFinite, finite, firstBad);
  Value largest = AllReduceMaxOp::create(builder, loc, position, found, uint64_t(processes));
  Value areFinite = EqualOp::create(builder, loc, flag, largest, finite);
  return SelectOp::create(builder, loc, position, areFinite, none, largest);
}

Finding findingOf(OpBuilder &builder, Location loc, Value firstBad) {
  auto flag = RankedTensorType::get({}, builder.getI1Type());
  return {EqualOp::create(builder, loc, flag, firstBad, integerScalar(builder, loc, -1)), firstBad};
}

FindingBesideNorms::FindingBesideNorms(OpBuilder &builder, Location loc, Value found, int64_t gradients, bool hasNorms)
    : ofGradients(found) {
  if (!hasNorms)
    return;
  auto flag = RankedTensorType::get({}, builder.getI1Type());
  Type position = found.getType();
  Value none = integerScalar(builder, loc, -1);
  Value isNorm = GreaterEqualOp::create(builder, loc, flag, found, integerScalar(builder, loc, int32_t(gradients)));
  ofGradients = SelectOp::create(builder, loc, position, isNorm, none, found);
  ofNorms = SelectOp::create(builder, loc, position, isNorm, found, none);
}

Value FindingBesideNorms::withNorms(OpBuilder &builder, Location loc, Value ofAll) const {
  if (!ofNorms)
    return ofAll;
  Value isFinite = findingOf(builder, loc, ofAll).finite;
  return SelectOp::create(builder, loc, ofAll.getType(), isFinite, ofNorms, ofAll);
}

} // namespace mpc
