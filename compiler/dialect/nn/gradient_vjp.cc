// Derivatives of the derivatives of convolutions, pooling, batch normalisation, softmax and losses.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/norm_vjp.h"
#include "compiler/dialect/tensor_values.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

// Derivatives of a convolution are linear in both operands, and each is the convolution or a derivative of it.
Cotangents Conv2dGradInputOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] = convolveAs<Conv2dOp>(*this, builder, getDy().getType(), c[0], getWeight(), /*bias=*/Value());
  if (needed[1])
    result[1] = weightCotangent(*this, builder, c[0], getDy());
  return result;
}

Cotangents Conv2dGradWeightOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] =
        convolveAs<Conv2dGradInputOp>(*this, builder, getX().getType(), getDy(), c[0], tensorTypeOf(getX()).getShape());
  if (needed[1])
    result[1] = convolveAs<Conv2dOp>(*this, builder, getDy().getType(), getX(), c[0], /*bias=*/Value());
  return result;
}

Cotangents AvgPool2dGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] {
    return AvgPool2dOp::create(builder, getLoc(), getDy().getType(), c[0], getKernelSize(), getStrides(), getPadMode(),
                               getPadding(), getCountIncludePad(), getDataFormat());
  });
}

Cotangents ResizeGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  RankedTensorType image = tensorTypeOf(getDy());
  ImageAxes axes = AxesOf(getDataFormat());
  return firstCotangent(needed, [&] {
    return ResizeOp::create(builder, getLoc(), image, c[0],
                            ArrayRef<int64_t>{image.getDimSize(axes.height), image.getDimSize(axes.width)},
                            getInterpolation(), getCoordinates(), getDataFormat());
  });
}

namespace {

/// The places of the winners of max_pool2d in an image, from their places in their windows.
class WinnerPlaces {
public:
  WinnerPlaces(OpBuilder &builder, MaxPool2dGradOp op, const Window &window, RankedTensorType image);

  Value places; ///< elements of the image in front of the winner
  Value inside; ///< whether there is a winner in the image

private:
  Value number(int64_t value) { return integerConstant(builder, loc, type.getElementType(), value); }
  Value plus(Value a, Value b) { return IntAddOp::create(builder, loc, type, a, b); }
  /// start + step * i at index i of \p axis, whatever the other indices are.
  Value countAlong(int64_t axis, int64_t start, int64_t step) {
    SmallVector<int64_t> line(type.getRank(), 1);
    line[axis] = type.getDimSize(axis);
    return IotaOp::create(builder, loc, RankedTensorType::get(line, type.getElementType()), line, axis, start, step);
  }
  void require(Value condition) { inside = LogicalAndOp::create(builder, loc, inside.getType(), inside, condition); }

  OpBuilder &builder;
  Location loc;
  RankedTensorType type;
};

} // namespace

WinnerPlaces::WinnerPlaces(OpBuilder &builder, MaxPool2dGradOp op, const Window &window, RankedTensorType image)
    : builder(builder), loc(op.getLoc()),
      type(withElementType(tensorTypeOf(op.getIndices()),
                           llvm::isInt<32>(image.getNumElements()) ? builder.getI32Type() : builder.getI64Type())) {
  ImageAxes axes = AxesOf(op.getDataFormat());
  Value inWindow = castTo(builder, loc, op.getIndices(), type.getElementType()), width = number(window.kernel[1]);
  Value steps[] = {IntFloorDivOp::create(builder, loc, type, inWindow, width),
                   IntModOp::create(builder, loc, type, inWindow, width)};
  inside = isInRange(builder, loc, inWindow, window.kernel[0] * window.kernel[1]);
  int64_t stride = 1;
  for (int64_t axis = image.getRank() - 1; axis >= 0; stride *= image.getDimSize(axis--)) {
    Value place;
    if (axis == axes.height || axis == axes.width) {
      int spatial = axis == axes.height ? 0 : 1;
      place = plus(steps[spatial], countAlong(axis, -window.pad_begin[spatial], window.stride[spatial]));
      require(isInRange(builder, loc, place, window.input[spatial]));
      place = IntMulOp::create(builder, loc, type, place, number(stride));
    } else {
      place = countAlong(axis, /*start=*/0, stride);
    }
    places = places ? plus(places, place) : place;
  }
}

// Each cotangent comes from the element that it went to.
Cotangents MaxPool2dGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (!needed[0])
    return result;
  RankedTensorType image = tensorTypeOf(c[0]);
  ImageAxes axes = AxesOf(getDataFormat());
  absl::StatusOr<Window> window =
      ResolveWindow(kernelAttributes(*this), {image.getDimSize(axes.height), image.getDimSize(axes.width)},
                    {getKernelSize()[0], getKernelSize()[1]});
  if (!window.ok())
    return emitOpError() << std::string(window.status().message());
  WinnerPlaces winners(builder, *this, *window, image);
  RankedTensorType gathered = withElementType(tensorTypeOf(getDy()), image.getElementType());
  Value elements = reshapeTo(builder, getLoc(), c[0], {image.getNumElements()});
  Value found = GatherOp::create(builder, getLoc(), gathered, elements, winners.places);
  Value zero = scalarConstant(builder, getLoc(), image.getElementType(), 0);
  found = WhereOp::create(builder, getLoc(), gathered, winners.inside, found, zero);
  result[0] = castTo(builder, getLoc(), found, elementOf(getDy()));
  return result;
}

//===-- Batch normalisation --------------------------------------------------------------------------------------===//

Cotangents BatchNormTrainGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return normGradCotangents(*this, NormLayout::ofChannels(getX(), getDataFormat()), builder, c, needed);
}

// With s = sqrt(variance + epsilon) the results are dx = dy gamma / s, dgamma = sum dy (x - mean) / s and dbeta = sum
// dy. Let a, u and w be their cotangents and q = a gamma + u (x - mean). By dy it is q / s + w, by the variance
// -sum(dy q) / (2 s^3).
Cotangents BatchNormInferGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(5);
  if (!llvm::is_contained(needed, true))
    return result;
  NormLayout layout = NormLayout::ofChannels(getX(), getDataFormat());
  NormArithmetic wide(builder, getLoc(), layout, getX());
  WideArithmetic channels(builder, getLoc(), wide.inLines(getVariance()));
  Value square = channels.of<AddScalarOp>(wide.inLines(getVariance()), getEpsilon());
  Value deviation = channels.of<SqrtOp>(square);
  Value a = c[0], u = wide.inParameters(c[1]), w = wide.inParameters(c[2]), product;
  if (a)
    product = wide.times(a, wide.inParameters(getGamma()));
  if (u) {
    Value term = wide.times(wide.minus(getX(), wide.inLines(getMean())), u);
    product = product ? wide.plus(product, term) : term;
  }
  if (needed[0]) {
    Value byDy = product ? wide.over(product, deviation) : Value();
    if (w)
      byDy = byDy ? wide.plus(byDy, w) : wide.of<BroadcastToOp>(w, layout.shape);
    result[0] = castTo(builder, getLoc(), byDy, elementOf(getDy()));
  }
  if (u && (needed[1] || needed[3])) {
    Value byX = wide.over(wide.times(getDy(), u), deviation);
    if (needed[1])
      result[1] = castTo(builder, getLoc(), byX, elementOf(getX()));
    if (needed[3])
      result[3] = wide.cotangentOf(getMean(), wide.negated(byX), layout.statistics);
  }
  if (needed[2] && a)
    result[2] = wide.cotangentOf(getGamma(), wide.over(wide.times(a, getDy()), deviation), layout.parameters);
  if (needed[4] && product) {
    Value byVariance = wide.over(wide.over(wide.times(getDy(), product), deviation), square);
    result[4] = wide.cotangentOf(getVariance(), wide.times(byVariance, -0.5f), layout.statistics);
  }
  return result;
}

//===-- Softmax --------------------------------------------------------------------------------------------------===//

// Of y (dy - sum(dy y)): by dy it is the operation again, whose matrix is symmetric. By y it is
// c (dy - sum(dy y)) - dy sum(c y).
Cotangents SoftmaxGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] = againOf(*this, builder, c[0]);
  if (needed[1]) {
    WideArithmetic wide(builder, getLoc(), getY());
    auto sum = [&](Value factor) { return wide.sumAlong(wide.times(factor, getY()), getAxis()); };
    Value direct = wide.times(c[0], wide.minus(getDy(), sum(getDy())));
    Value byY = wide.minus(direct, wide.times(getDy(), sum(c[0])));
    result[1] = castTo(builder, getLoc(), byY, elementOf(getY()));
  }
  return result;
}

// Of dy - exp(y) sum(dy): by dy it is c - sum(c exp(y)), by y it is -c exp(y) sum(dy).
Cotangents LogSoftmaxGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (!needed[0] && !needed[1])
    return result;
  WideArithmetic wide(builder, getLoc(), getY());
  Value weighted = wide.times(c[0], wide.of<ExpOp>(getY()));
  if (needed[0])
    result[0] = castTo(builder, getLoc(), wide.minus(c[0], wide.sumAlong(weighted, getAxis())), elementOf(getDy()));
  if (needed[1]) {
    Value byY = wide.negated(wide.times(weighted, wide.sumAlong(getDy(), getAxis())));
    result[1] = castTo(builder, getLoc(), byY, elementOf(getY()));
  }
  return result;
}

//===-- Losses ---------------------------------------------------------------------------------------------------===//

// Of g (p sum(labels) - labels), p = exp(logits - log_sum_exp), g the share of dloss. By the logits it is
// c g sum(labels) p, by log_sum_exp the negative sum of that, by dense labels g (sum(c p) - c).
Cotangents SoftmaxCrossEntropyGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(4);
  Location loc = getLoc();
  if (needed[0])
    result[0] = lossCotangent(*this, builder, c[0]);
  if (!needed[1] && !needed[2] && !needed[3])
    return result;
  int64_t rows = tensorTypeOf(getLogits()).getDimSize(0);
  ClassProbabilities classes(builder, loc, getLogits(), getLogSumExp(), countClasses());
  WideArithmetic wide(builder, loc, classes.probabilities);
  Value dloss = getReduction() == LossReduction::kNone ? reshapeTo(builder, loc, getDloss(), {rows, 1}) : getDloss();
  Value weighted = ofElementLosses(wide, classes.narrowed(c[0]), dloss, getReduction(), rows);
  Value product = wide.times(weighted, classes.probabilities);
  if (needed[1] || needed[3]) {
    Value byLogits = isFloating(getLabels()) ? wide.times(product, wide.sumAlong(getLabels(), 1)) : product;
    if (needed[1])
      result[1] = castTo(builder, loc, classes.widened(byLogits), elementOf(getLogits()));
    if (needed[3])
      result[3] = ReduceSumOp::create(builder, loc, getLogSumExp().getType(), wide.negated(byLogits),
                                      ArrayRef<int64_t>{1}, /*keep_dims=*/false);
  }
  if (needed[2])
    result[2] = castTo(builder, loc, wide.minus(wide.sumAlong(product, 1), weighted), elementOf(getLabels()));
  return result;
}

// Of 2 dloss (prediction - target), or the mean's share of it.
Cotangents MseGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(3);
  if (needed[0])
    result[0] = lossCotangent(*this, builder, c[0]);
  if (!needed[1] && !needed[2])
    return result;
  WideArithmetic wide(builder, getLoc(), getPrediction());
  Value product = ofElementLosses(wide, c[0], getDloss(), getReduction(), elementCount(getPrediction()));
  Value byPrediction = wide.times(product, 2);
  if (needed[1])
    result[1] = castTo(builder, getLoc(), byPrediction, elementOf(getPrediction()));
  if (needed[2])
    result[2] = castTo(builder, getLoc(), wide.negated(byPrediction), elementOf(getTarget()));
  return result;
}

} // namespace mpc
