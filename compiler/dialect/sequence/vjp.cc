// Derivatives of batched matrix work, attention, recurrent cells, transposed convolution, layer and group
// normalisation, binary cross-entropy.
#include "compiler/dialect/vjp_support.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

static Value zeros(OpBuilder &Builder, Location Loc, Type Like) {
  auto Type = cast<RankedTensorType>(Like);
  Attribute Zero = Builder.getFloatAttr(Type.getElementType(), 0.0);
  return ConstantOp::create(Builder, Loc, Type, DenseElementsAttr::get(Type, Zero));
}

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

Cotangents BatchMatmulOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  setFactorCotangents(
      *this, Dy[0], Needed, Result, [&](Value Like, Value Left, bool TransposeLeft, Value Right, bool TransposeRight) {
        return BatchMatmulOp::create(Builder, getLoc(), Like.getType(), Left, Right, TransposeLeft, TransposeRight);
      });
  return Result;
}

Cotangents AttentionOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Dy[1])
    return noDerivativeBySaved(*this, "log_sum_exp");
  return resultCotangents(Needed, [&] {
    return AttentionGradOp::create(Builder, getLoc(), getQuery().getType(), getKey().getType(), getValue().getType(),
                                   Dy[0], getQuery(), getKey(), getValue(), getLogSumExp(), getMask(), getScaleAttr(),
                                   getCausalAttr());
  });
}

//===-- Recurrent cells ------------------------------------------------------------------------------------------===//

Cotangents LstmCellOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Dy[2])
    return noDerivativeBySaved(*this, "activations");
  // One of the two states may take no part in the loss: the last step's cell state usually does not.
  auto OrZeros = [&](Value Cotangent, Value State) {
    return Cotangent ? Cotangent : zeros(Builder, getLoc(), State.getType());
  };
  return resultCotangents(Needed, [&] {
    return LstmCellGradOp::create(Builder, getLoc(), getGates().getType(), getCellState().getType(),
                                  OrZeros(Dy[0], getHidden()), OrZeros(Dy[1], getNewCellState()), getActivations(),
                                  getCellState(), getNewCellState());
  });
}

//===-- Transposed convolution -----------------------------------------------------------------------------------===//

// The operation is linear in x and in the weight, and is itself conv2d's derivative: y stands for that convolution's
// input, x for its result.
Cotangents ConvTranspose2dOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(getNumOperands());
  if (Needed[0])
    Result[0] = convolveAs<Conv2dOp>(*this, Builder, getX().getType(), Dy[0], getWeight(), /*bias=*/Value());
  if (Needed[1])
    Result[1] = weightCotangent(*this, Builder, Dy[0], getX());
  if (getBias() && Needed[2])
    Result[2] = biasCotangent(Builder, getLoc(), Dy[0], AxesOf(getDataFormat()).channel, getBias());
  return Result;
}

//===-- Normalisation --------------------------------------------------------------------------------------------===//

// The statistics, results 1 and 2, are saved for the derivative, and refuse cotangents of their own.
template <typename GradientOp, typename NormOp, typename... Args>
static Cotangents savedNormCotangents(NormOp Norm, OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed,
                                      const Args &...Attributes) {
  for (unsigned Index : {1u, 2u})
    if (Dy[Index])
      return noDerivativeBySaved(Norm, Index == 1 ? "mean" : "inv_std");
  return normCotangents<GradientOp>(Norm, Builder, Dy[0], Needed, Norm.getInvStd(), Attributes...);
}

Cotangents LayerNormOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return savedNormCotangents<LayerNormGradOp>(*this, Builder, Dy, Needed);
}

Cotangents GroupNormOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return savedNormCotangents<GroupNormGradOp>(*this, Builder, Dy, Needed, getGroups(), getDataFormat());
}

//===-- Loss -----------------------------------------------------------------------------------------------------===//

Cotangents BceWithLogitsOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return labelledLossCotangents<BceWithLogitsGradOp>(*this, Builder, Dy[0], Needed);
}

} // namespace mpc
