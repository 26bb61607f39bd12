// Derivatives of convolution, matrix product, pooling, normalisation, softmax and losses.
#include "compiler/dialect/vjp_support.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

// The cotangent before the activation, from the one after it. Product makes what gelu is applied to, once more.
static Value beforeActivation(OpBuilder &Builder, Location Loc, StringRef Activation, Value Dy, Value Y,
                              llvm::function_ref<Value()> Product) {
  if (Activation == "relu")
    return ReluGradOp::create(Builder, Loc, Dy.getType(), Dy, Y);
  if (Activation == "sigmoid")
    return SigmoidGradOp::create(Builder, Loc, Dy.getType(), Dy, Y);
  if (Activation == "tanh")
    return TanhGradOp::create(Builder, Loc, Dy.getType(), Dy, Y);
  if (Activation == "gelu" || Activation == "gelu_tanh")
    return GeluGradOp::create(Builder, Loc, Dy.getType(), Dy, Product(), Activation == "gelu" ? "none" : "tanh");
  return Dy;
}

// The cotangent of a per-channel bias: the sum over every other axis.
static Value biasCotangent(OpBuilder &Builder, Location Loc, Value Dz, int64_t ChannelAxis, Value Bias) {
  SmallVector<int64_t> Axes;
  for (int64_t Axis = 0; Axis < tensorTypeOf(Dz).getRank(); ++Axis)
    if (Axis != ChannelAxis)
      Axes.push_back(Axis);
  return ReduceSumOp::create(Builder, Loc, Bias.getType(), Dz, Axes, /*keep_dims=*/false);
}

Cotangents MatmulOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(getNumOperands());
  if (!llvm::is_contained(Needed, true))
    return Result;
  Value Dz = beforeActivation(Builder, getLoc(), getActivation(), Dy[0], getY(), [&]() -> Value {
    return MatmulOp::create(Builder, getLoc(), getY().getType(), getA(), getB(), getBias(), getTransposeA(),
                            getTransposeB());
  });
  bool TransposeA = getTransposeA(), TransposeB = getTransposeB();
  auto Product = [&](Value Like, Value Left, bool TransposeLeft, Value Right, bool TransposeRight) -> Value {
    return MatmulOp::create(Builder, getLoc(), Like.getType(), Left, Right, /*bias=*/Value(), TransposeLeft,
                            TransposeRight);
  };
  // With A = op(a) and B = op(b): dA = dz B^T and dB = A^T dz; a transposed operand takes the transpose of the whole.
  if (Needed[0])
    Result[0] =
        TransposeA ? Product(getA(), getB(), TransposeB, Dz, true) : Product(getA(), Dz, false, getB(), !TransposeB);
  if (Needed[1])
    Result[1] =
        TransposeB ? Product(getB(), Dz, true, getA(), TransposeA) : Product(getB(), getA(), !TransposeA, Dz, false);
  if (getBias() && Needed[2])
    Result[2] = tensorTypeOf(getBias()).getRank() == 2
                    ? castTo(Builder, getLoc(), Dz, tensorTypeOf(getBias()).getElementType())
                    : biasCotangent(Builder, getLoc(), Dz, /*ChannelAxis=*/1, getBias());
  return Result;
}

Cotangents Conv2dOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(getNumOperands());
  if (!llvm::is_contained(Needed, true))
    return Result;
  Value Dz = beforeActivation(Builder, getLoc(), getActivation(), Dy[0], getY(), [&]() -> Value {
    return Conv2dOp::create(Builder, getLoc(), getY().getType(), getX(), getWeight(), getBias(), getStrides(),
                            getDilations(), getPadMode(), getPadding(), getGroups(), getDataFormat());
  });
  if (Needed[0])
    Result[0] = Conv2dGradInputOp::create(Builder, getLoc(), getX().getType(), Dz, getWeight(),
                                          tensorTypeOf(getX()).getShape(), getStrides(), getDilations(), getPadMode(),
                                          getPadding(), getGroups(), getDataFormat());
  if (Needed[1])
    Result[1] = Conv2dGradWeightOp::create(Builder, getLoc(), getWeight().getType(), getX(), Dz,
                                           tensorTypeOf(getWeight()).getShape(), getStrides(), getDilations(),
                                           getPadMode(), getPadding(), getGroups(), getDataFormat());
  if (getBias() && Needed[2])
    Result[2] = biasCotangent(Builder, getLoc(), Dz, AxesOf(getDataFormat()).channel, getBias());
  return Result;
}

//===-- Pooling --------------------------------------------------------------------------------------------------===//

Cotangents MaxPool2dOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(1);
  if (Needed[0])
    Result[0] = MaxPool2dGradOp::create(Builder, getLoc(), getX().getType(), Dy[0], getIndices(),
                                        tensorTypeOf(getX()).getShape(), getKernelSize(), getStrides(), getPadMode(),
                                        getPadding(), getDataFormat());
  return Result;
}

Cotangents AvgPool2dOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(1);
  if (Needed[0])
    Result[0] = AvgPool2dGradOp::create(Builder, getLoc(), getX().getType(), Dy[0], tensorTypeOf(getX()).getShape(),
                                        getKernelSize(), getStrides(), getPadMode(), getPadding(), getCountIncludePad(),
                                        getDataFormat());
  return Result;
}

//===-- Batch normalisation --------------------------------------------------------------------------------------===//

Cotangents BatchNormTrainOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  for (unsigned Index : {1u, 2u, 3u})
    if (Dy[Index])
      return emitError() << describeWithCell(*this)
                         << " has no derivative by its batch statistics, but the loss depends on result " << Index
                         << " ("
                         << (Index == 1   ? "mean"
                             : Index == 2 ? "variance"
                                          : "inv_std")
                         << "); use mpc.stop_gradient, or compute the statistic with reduce_mean";
  SmallVector<Value> Result(3);
  if (!llvm::is_contained(Needed, true))
    return Result;
  auto Gradient =
      BatchNormTrainGradOp::create(Builder, getLoc(), getX().getType(), getGamma().getType(), getBeta().getType(),
                                   Dy[0], getX(), getGamma(), getMean(), getInvStd(), getDataFormat());
  for (unsigned Index : {0u, 1u, 2u})
    if (Needed[Index])
      Result[Index] = Gradient.getResult(Index);
  return Result;
}

Cotangents BatchNormInferOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  for (unsigned Index : {3u, 4u})
    if (Needed[Index])
      return emitError() << describeWithCell(*this)
                         << " has no derivative by its statistics, but the gradient of operand " << Index << " ("
                         << (Index == 3 ? "mean" : "variance") << ") is needed";
  SmallVector<Value> Result(5);
  if (!llvm::is_contained(Needed, true))
    return Result;
  auto Gradient = BatchNormInferGradOp::create(Builder, getLoc(), getX().getType(), getGamma().getType(),
                                               getBeta().getType(), Dy[0], getX(), getGamma(), getMean(), getVariance(),
                                               getEpsilonAttr(), getDataFormatAttr());
  for (unsigned Index : {0u, 1u, 2u})
    if (Needed[Index])
      Result[Index] = Gradient.getResult(Index);
  return Result;
}

//===-- Softmax and losses ---------------------------------------------------------------------------------------===//

Cotangents SoftmaxOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(1);
  if (Needed[0])
    Result[0] = SoftmaxGradOp::create(Builder, getLoc(), getX().getType(), Dy[0], getY(), getAxis());
  return Result;
}

Cotangents LogSoftmaxOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(1);
  if (Needed[0])
    Result[0] = LogSoftmaxGradOp::create(Builder, getLoc(), getX().getType(), Dy[0], getY(), getAxis());
  return Result;
}

Cotangents SoftmaxCrossEntropyOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Dy[1])
    return noDerivativeBySaved(*this, "log_sum_exp");
  if (Needed[1])
    return noDerivativeByLabels(*this);
  SmallVector<Value> Result(2);
  if (Needed[0])
    Result[0] = SoftmaxCrossEntropyGradOp::create(Builder, getLoc(), getLogits().getType(), Dy[0], getLogits(),
                                                  getLabels(), getLogSumExp(), getReduction());
  return Result;
}

Cotangents MseOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  auto Gradient = [&](Type Type) -> Value {
    return MseGradOp::create(Builder, getLoc(), Type, Dy[0], getPrediction(), getTarget(), getReduction());
  };
  if (Needed[0])
    Result[0] = Gradient(getPrediction().getType());
  if (Needed[1]) {
    Type TargetType = getTarget().getType();
    Value Positive = Result[0] && Result[0].getType() == TargetType ? Result[0] : Gradient(TargetType);
    Result[1] = NegOp::create(Builder, getLoc(), TargetType, Positive);
  }
  return Result;
}

} // namespace mpc
