// Derivatives of convolution, matrix product, normalisation and losses.
#include "compiler/dialect/vjp_support.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

// The cotangent before the activation, from the one after it; null where no cotangent is needed. Product makes what
// gelu is applied to, once more.
template <typename ProductOp>
static Value beforeActivation(ProductOp Forward, OpBuilder &Builder, Value Dy, ArrayRef<bool> Needed,
                              llvm::function_ref<Value()> Product) {
  if (!llvm::is_contained(Needed, true))
    return nullptr;
  Location Loc = Forward.getLoc();
  StringRef Activation = Forward.getActivation();
  if (Activation == "relu")
    return ReluGradOp::create(Builder, Loc, Dy.getType(), Dy, Forward.getY());
  if (Activation == "sigmoid")
    return SigmoidGradOp::create(Builder, Loc, Dy.getType(), Dy, Forward.getY());
  if (Activation == "tanh")
    return TanhGradOp::create(Builder, Loc, Dy.getType(), Dy, Forward.getY());
  if (Activation == "gelu" || Activation == "gelu_tanh")
    return GeluGradOp::create(Builder, Loc, Dy.getType(), Dy, Product(), Activation == "gelu" ? "none" : "tanh");
  return Dy;
}

Cotangents MatmulOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  Value Dz = beforeActivation(*this, Builder, Dy[0], Needed, [&] {
    return MatmulOp::create(Builder, getLoc(), getY().getType(), getA(), getB(), getBias(), getTransposeA(),
                            getTransposeB());
  });
  SmallVector<Value> Result(getNumOperands());
  setFactorCotangents(*this, Dz, Needed, Result,
                      [&](Value Like, Value Left, bool TransposeLeft, Value Right, bool TransposeRight) {
                        return MatmulOp::create(Builder, getLoc(), Like.getType(), Left, Right, /*bias=*/Value(),
                                                TransposeLeft, TransposeRight);
                      });
  if (getBias() && Needed[2])
    Result[2] = tensorTypeOf(getBias()).getRank() == 2
                    ? castTo(Builder, getLoc(), Dz, tensorTypeOf(getBias()).getElementType())
                    : biasCotangent(Builder, getLoc(), Dz, /*ChannelAxis=*/1, getBias());
  return Result;
}

Cotangents Conv2dOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  Value Dz = beforeActivation(*this, Builder, Dy[0], Needed, [&] {
    return convolveAs<Conv2dOp>(*this, Builder, getY().getType(), getX(), getWeight(), getBias());
  });
  SmallVector<Value> Result(getNumOperands());
  if (Needed[0])
    Result[0] = convolveAs<Conv2dGradInputOp>(*this, Builder, getX().getType(), Dz, getWeight(),
                                              tensorTypeOf(getX()).getShape());
  if (Needed[1])
    Result[1] = weightCotangent(*this, Builder, getX(), Dz);
  if (getBias() && Needed[2])
    Result[2] = biasCotangent(Builder, getLoc(), Dz, AxesOf(getDataFormat()).channel, getBias());
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
  return normCotangents<BatchNormTrainGradOp>(*this, Builder, Dy[0], Needed, getInvStd(), getDataFormat());
}

Cotangents BatchNormInferOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  for (unsigned Index : {3u, 4u})
    if (Needed[Index])
      return emitError() << describeWithCell(*this)
                         << " has no derivative by its statistics, but the gradient of operand " << Index << " ("
                         << (Index == 3 ? "mean" : "variance") << ") is needed";
  return normCotangents<BatchNormInferGradOp>(*this, Builder, Dy[0], Needed, getVariance(), getEpsilonAttr(),
                                              getDataFormatAttr());
}

//===-- Losses ---------------------------------------------------------------------------------------------------===//

Cotangents SoftmaxCrossEntropyOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Dy[1])
    return noDerivativeBySaved(*this, "log_sum_exp");
  return labelledLossCotangents<SoftmaxCrossEntropyGradOp>(*this, Builder, Dy[0], Needed, getLogSumExp());
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
