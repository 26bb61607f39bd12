// Derivatives of convolution, matrix product, normalisation and losses.
#include "compiler/dialect/vjp_support.h"
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

Cotangents BatchNormTrainOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  for (unsigned index : {1u, 2u, 3u})
    if (dy[index])
      return emitError() << describeWithCell(*this)
                         << " has no derivative by its batch statistics, but the loss depends on result " << index
                         << " ("
                         << (index == 1   ? "mean"
                             : index == 2 ? "variance"
                                          : "inv_std")
                         << "); use mpc.stop_gradient, or compute the statistic with reduce_mean";
  return normCotangents<BatchNormTrainGradOp>(*this, builder, dy[0], needed, getInvStd(), getDataFormat());
}

Cotangents BatchNormInferOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  for (unsigned index : {3u, 4u})
    if (needed[index])
      return emitError() << describeWithCell(*this)
                         << " has no derivative by its statistics, but the gradient of operand " << index << " ("
                         << (index == 3 ? "mean" : "variance") << ") is needed";
  return normCotangents<BatchNormInferGradOp>(*this, builder, dy[0], needed, getVariance(), getEpsilonAttr(),
                                              getDataFormatAttr());
}

//===-- Losses ---------------------------------------------------------------------------------------------------===//

Cotangents SoftmaxCrossEntropyOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  if (dy[1])
    return noDerivativeBySaved(*this, "log_sum_exp");
  return labelledLossCotangents<SoftmaxCrossEntropyGradOp>(*this, builder, dy[0], needed, getLogSumExp());
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
