#include "compiler/dialect/norm_vjp.h"

#include "compiler/dialect/tensor_values.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

//===-- Layouts --------------------------------------------------------------------------------------------------===//

NormLayout NormLayout::ofTrailingAxes(Value x, Value gamma) {
  NormLayout layout;
  ArrayRef<int64_t> shape = tensorTypeOf(x).getShape(), line = tensorTypeOf(gamma).getShape();
  layout.shape.assign(shape.begin(), shape.end());
  layout.parameters.assign(line.begin(), line.end());
  layout.statistics.assign(shape.begin(), shape.end());
  for (int64_t axis = int64_t(shape.size() - line.size()); axis < int64_t(shape.size()); ++axis) {
    layout.lineAxes.push_back(axis);
    layout.statistics[axis] = 1;
  }
  layout.count = elementCount(gamma);
  return layout;
}

NormLayout NormLayout::ofGroups(Value x, int64_t groups, DataFormat format) {
  NormLayout layout;
  ArrayRef<int64_t> shape = tensorTypeOf(x).getShape();
  int64_t channelAxis = AxesOf(format).channel, share = shape[channelAxis] / groups;
  layout.shape.assign(shape.begin(), shape.end());
  layout.shape[channelAxis] = groups;
  layout.shape.insert(layout.shape.begin() + channelAxis + 1, share);
  layout.parameters.assign(layout.shape.size(), 1);
  layout.parameters[channelAxis] = groups;
  layout.parameters[channelAxis + 1] = share;
  layout.statistics.assign(layout.shape.size(), 1);
  for (int64_t axis = 0; axis < int64_t(layout.shape.size()); ++axis) {
    if (axis == 0 || axis == channelAxis)
      layout.statistics[axis] = layout.shape[axis];
    else
      layout.lineAxes.push_back(axis);
  }
  layout.count = elementCount(x) / (shape[0] * groups);
  return layout;
}

NormLayout NormLayout::ofChannels(Value x, DataFormat format) {
  NormLayout layout;
  ArrayRef<int64_t> shape = tensorTypeOf(x).getShape();
  int64_t channelAxis = shape.size() == 4 ? AxesOf(format).channel : 1;
  layout.shape.assign(shape.begin(), shape.end());
  layout.statistics.assign(shape.size(), 1);
  layout.statistics[channelAxis] = shape[channelAxis];
  layout.parameters = layout.statistics;
  for (int64_t axis = 0; axis < int64_t(shape.size()); ++axis)
    if (axis != channelAxis)
      layout.lineAxes.push_back(axis);
  layout.count = elementCount(x) / shape[channelAxis];
  return layout;
}

//===-- Arithmetic -----------------------------------------------------------------------------------------------===//

Value NormArithmetic::lineMean(Value full) {
  RankedTensorType type = RankedTensorType::get(layout.statistics, accumulatorType(elementOf(full)));
  return ReduceMeanOp::create(builder, loc, type, full, layout.lineAxes, /*keep_dims=*/true);
}

Value NormArithmetic::cotangentOf(Value like, Value full, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorTypeOf(like);
  Value sum = sumTo(builder, loc, full, RankedTensorType::get(shape, type.getElementType()));
  return reshapeTo(builder, loc, sum, type.getShape());
}

//===-- The derivative's derivative ------------------------------------------------------------------------------===//

// Let x_hat = (x - mean) inv_std and g = dy gamma. P(v) = v - mean(v) - x_hat mean(v x_hat) is symmetric.
//   dx = inv_std P(g), dgamma = sum dy x_hat, dbeta = sum dy.
// Let a, u and w be their cotangents. By dy it is gamma inv_std P(a) + u x_hat + w, by gamma sum dy inv_std P(a). By
// x_hat it is e = u dy - inv_std (a mean(g x_hat) + g mean(a x_hat)). By x it is inv_std e, by the mean its negative
// sum, by inv_std the sum of e (x - mean) + g P(a).
Cotangents normGradCotangents(const NormGradValues &values, const NormLayout &layout, OpBuilder &builder, Location loc,
                              ArrayRef<bool> needed) {
  SmallVector<Value> result(5);
  if (!llvm::is_contained(needed, true))
    return result;
  NormArithmetic wide(builder, loc, layout, values.x);
  auto plus = [&](Value sum, Value term) { return sum ? wide.plus(sum, term) : term; };
  Value dy = wide.inFull(values.dy), gamma = wide.inParameters(values.gamma), inverse = wide.inLines(values.inverse);
  Value a = wide.inFull(values.ofDx), u = wide.inParameters(values.ofDgamma), w = wide.inParameters(values.ofDbeta);
  Value mean = wide.inLines(values.mean), deviation = wide.minus(wide.inFull(values.x), mean);
  Value normal = wide.times(deviation, inverse);

  Value meanOfProduct, projected, scaled;
  if (a) {
    meanOfProduct = wide.lineMean(wide.times(a, normal));
    projected = wide.minus(a, wide.lineMean(a));
    projected = wide.minus(projected, wide.times(normal, meanOfProduct));
    scaled = wide.times(projected, inverse);
  }
  if (needed[0]) {
    Value byDy = a ? wide.times(scaled, gamma) : Value();
    if (u)
      byDy = plus(byDy, wide.times(normal, u));
    if (w)
      byDy = byDy ? wide.plus(byDy, w) : wide.of<BroadcastToOp>(w, layout.shape);
    result[0] = wide.cotangentOf(values.dy, byDy, layout.shape);
  }
  if (needed[2] && a)
    result[2] = wide.cotangentOf(values.gamma, wide.times(scaled, dy), layout.parameters);
  if (!a && !u)
    return result;

  Value byNormal = u ? wide.times(dy, u) : Value(), weighted;
  if (a) {
    weighted = wide.times(dy, gamma);
    Value byProjection = wide.times(a, wide.lineMean(wide.times(weighted, normal)));
    byProjection = wide.plus(byProjection, wide.times(weighted, meanOfProduct));
    byProjection = wide.times(byProjection, inverse);
    byNormal = byNormal ? wide.minus(byNormal, byProjection) : wide.negated(byProjection);
  }
  Value byX = wide.times(byNormal, inverse);
  if (needed[1])
    result[1] = wide.cotangentOf(values.x, byX, layout.shape);
  if (needed[3])
    result[3] = wide.cotangentOf(values.mean, wide.negated(byX), layout.statistics);
  if (needed[4]) {
    Value byInverse = wide.times(byNormal, deviation);
    if (a)
      byInverse = wide.plus(byInverse, wide.times(weighted, projected));
    result[4] = wide.cotangentOf(values.inverse, byInverse, layout.statistics);
  }
  return result;
}

} // namespace mpc
