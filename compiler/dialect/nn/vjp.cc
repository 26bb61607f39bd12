// Derivatives of convolution, matrix product, normalisation and losses.
#include "compiler/dialect/gradient_vjp.h"
#include "compiler/dialect/tensor_values.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

// The cotangent before the activation, from the one after it; null where no cotangent is needed. Product makes what
// gelu is applied to, once more.
template <typename ProductOp>
static Value beforeActivation(ProductOp forward, OpBuilder &builder, Value dy, ArrayRef<bool> needed,
                              llvm::function_ref<Value()> product) {
  if (!llvm::is_contained(needed, true))
    return nullptr;
  Location loc = forward.getLoc();
  switch (forward.getActivation()) {
  case Activation::kNone:
    return dy;
  case Activation::kRelu:
    return ReluGradOp::create(builder, loc, dy.getType(), dy, forward.getY());
  case Activation::kSigmoid:
    return SigmoidGradOp::create(builder, loc, dy.getType(), dy, forward.getY());
  case Activation::kTanh:
    return TanhGradOp::create(builder, loc, dy.getType(), dy, forward.getY());
  case Activation::kGelu:
    return GeluGradOp::create(builder, loc, dy.getType(), dy, product(), Approximation::kNone);
  case Activation::kGeluTanh:
    return GeluGradOp::create(builder, loc, dy.getType(), dy, product(), Approximation::kTanh);
  }
  llvm_unreachable("covered switch");
}

Cotangents MatmulOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  Value dz = beforeActivation(*this, builder, dy[0], needed, [&] {
    return MatmulOp::create(builder, getLoc(), getY().getType(), getA(), getB(), getBias(), getTransposeA(),
                            getTransposeB());
  });
  SmallVector<Value> result(getNumOperands());
  setFactorCotangents(*this, dz, needed, result,
                      [&](Value like, Value left, bool transposeLeft, Value right, bool transposeRight) {
                        return MatmulOp::create(builder, getLoc(), like.getType(), left, right, /*bias=*/Value(),
                                                transposeLeft, transposeRight);
                      });
  if (getBias() && needed[2])
    result[2] = tensorTypeOf(getBias()).getRank() == 2
                    ? castTo(builder, getLoc(), dz, tensorTypeOf(getBias()).getElementType())
                    : biasCotangent(builder, getLoc(), dz, /*channelAxis=*/1, getBias());
  return result;
}

Cotangents Conv2dOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  Value dz = beforeActivation(*this, builder, dy[0], needed, [&] {
    return convolveAs<Conv2dOp>(*this, builder, getY().getType(), getX(), getWeight(), getBias());
  });
  SmallVector<Value> result(getNumOperands());
  if (needed[0])
    result[0] = convolveAs<Conv2dGradInputOp>(*this, builder, getX().getType(), dz, getWeight(),
                                              tensorTypeOf(getX()).getShape());
  if (needed[1])
    result[1] = weightCotangent(*this, builder, getX(), dz);
  if (getBias() && needed[2])
    result[2] = biasCotangent(builder, getLoc(), dz, AxesOf(getDataFormat()).channel, getBias());
  return result;
}

//===-- Batch normalisation --------------------------------------------------------------------------------------===//

// The cotangent of x by those of its statistics, of which one at least is there. With n elements a channel,
//   dx = dmean / n + (x - mean) * (2 dvariance - inv_std^3 dinv_std) / n,
// which is x normalised again, with another gamma and beta.
static Value statisticsCotangent(BatchNormTrainOp norm, OpBuilder &builder, Value dMean, Value dVariance,
                                 Value dInvStd) {
  Location loc = norm.getLoc();
  Value inverse = norm.getInvStd();
  Type channels = inverse.getType();
  double share = double(elementCount(inverse)) / double(elementCount(norm.getX()));
  auto scaled = [&](Value v, double by) -> Value {
    return MulScalarOp::create(builder, loc, channels, v, llvm::APFloat(float(by)));
  };
  SmallVector<Value> terms;
  if (dVariance)
    terms.push_back(DivOp::create(builder, loc, channels, scaled(dVariance, 2 * share), inverse));
  if (dInvStd) {
    Value square = SquareOp::create(builder, loc, channels, inverse);
    terms.push_back(MulOp::create(builder, loc, channels, square, scaled(dInvStd, -share)));
  }
  auto sumOrZero = [&](ValueRange values) -> Value {
    if (values.empty())
      return ConstantOp::create(
          builder, loc, channels,
          DenseElementsAttr::get(cast<ShapedType>(channels), builder.getZeroAttr(getElementTypeOrSelf(channels))));
    return values.size() == 1 ? values.front() : SumNOp::create(builder, loc, channels, values).getY();
  };
  Value gamma = sumOrZero(terms), beta = dMean ? scaled(dMean, share) : sumOrZero({});
  return BatchNormInferOp::create(builder, loc, norm.getX().getType(), norm.getX(), gamma, beta, norm.getMean(),
                                  norm.getVariance(), norm.getEpsilonAttr(), norm.getDataFormatAttr());
}

Cotangents BatchNormTrainOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  Cotangents result = SmallVector<Value>(getNumOperands());
  if (dy[0])
    result = normCotangents<BatchNormTrainGradOp>(*this, builder, dy[0], needed, getInvStd(), getDataFormat());
  if (!needed[0] || (!dy[1] && !dy[2] && !dy[3]))
    return result;
  Value ofStatistics = statisticsCotangent(*this, builder, dy[1], dy[2], dy[3]);
  Value &dx = result->front();
  dx = dx ? SumNOp::create(builder, getLoc(), getX().getType(), ValueRange{dx, ofStatistics}).getY() : ofStatistics;
  return result;
}

// The derivatives by the statistics follow from those by beta and gamma, where deviation^2 = variance + epsilon:
//   dmean = -gamma dbeta / deviation,  dvariance = -gamma dgamma / (2 deviation^2).
Cotangents BatchNormInferOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  BatchNormInferGradOp gradient;
  Cotangents result = resultCotangents(needed, [&] {
    return gradient = BatchNormInferGradOp::create(builder, getLoc(), getX().getType(), getGamma().getType(),
                                                   getBeta().getType(), dy[0], getX(), getGamma(), getMean(),
                                                   getVariance(), getEpsilonAttr(), getDataFormatAttr());
  });
  if (!needed[3] && !needed[4])
    return result;
  Type channels = getVariance().getType();
  auto quotient = [&](Value sum, Value divisor, float factor) -> Value {
    Value product = MulOp::create(builder, getLoc(), channels, getGamma(), sum);
    Value scaled = MulScalarOp::create(builder, getLoc(), channels, product, llvm::APFloat(factor));
    return DivOp::create(builder, getLoc(), channels, scaled, divisor);
  };
  Value square = AddScalarOp::create(builder, getLoc(), channels, getVariance(), getEpsilon());
  if (needed[3])
    (*result)[3] = quotient(gradient.getDbeta(), SqrtOp::create(builder, getLoc(), channels, square), /*factor=*/-1);
  if (needed[4])
    (*result)[4] = quotient(gradient.getDgamma(), square, /*factor=*/-0.5);
  return result;
}

//===-- Losses ---------------------------------------------------------------------------------------------------===//

Cotangents SoftmaxCrossEntropyOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  if (needed[1])
    return noDerivativeByLabels(*this);
  SmallVector<Value> result(2), terms;
  if (!needed[0])
    return result;
  Type type = getLogits().getType();
  if (dy[0])
    terms.push_back(SoftmaxCrossEntropyGradOp::create(builder, getLoc(), type, dy[0], getLogits(), getLabels(),
                                                      getLogSumExp(), getReduction(), getClassesAttr()));
  // log_sum_exp is saved for the derivative, whose own derivative gives it a cotangent.
  if (dy[1]) {
    ClassProbabilities classes(builder, getLoc(), getLogits(), getLogSumExp(), countClasses());
    WideArithmetic wide(builder, getLoc(), classes.probabilities);
    Value perRow = reshapeTo(builder, getLoc(), dy[1], {tensorTypeOf(getLogits()).getDimSize(0), 1});
    Value byLogits = classes.widened(wide.times(classes.probabilities, perRow));
    terms.push_back(castTo(builder, getLoc(), byLogits, elementOf(getLogits())));
  }
  result[0] = terms.size() == 1 ? terms[0] : SumNOp::create(builder, getLoc(), type, terms).getY();
  return result;
}

Cotangents MseOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  auto gradient = [&](Type type) -> Value {
    return MseGradOp::create(builder, getLoc(), type, dy[0], getPrediction(), getTarget(), getReduction());
  };
  if (needed[0])
    result[0] = gradient(getPrediction().getType());
  if (needed[1]) {
    Type targetType = getTarget().getType();
    Value positive = result[0] && result[0].getType() == targetType ? result[0] : gradient(targetType);
    result[1] = NegOp::create(builder, getLoc(), targetType, positive);
  }
  return result;
}

} // namespace mpc
