// Derivatives of batched matrix work, attention, recurrent cells, transposed convolution, layer and group
// normalisation, binary cross-entropy.
#include "compiler/dialect/vjp_support.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

static Value zeros(OpBuilder &builder, Location loc, Type like) {
  auto type = cast<RankedTensorType>(like);
  Attribute zero = builder.getFloatAttr(type.getElementType(), 0.0);
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, zero));
}

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

Cotangents BatchMatmulOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  setFactorCotangents(
      *this, dy[0], needed, result, [&](Value like, Value left, bool transposeLeft, Value right, bool transposeRight) {
        return BatchMatmulOp::create(builder, getLoc(), like.getType(), left, right, transposeLeft, transposeRight);
      });
  return result;
}

Cotangents AttentionOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  if (dy[1])
    return noDerivativeBySaved(*this, "log_sum_exp");
  return resultCotangents(needed, [&] {
    return AttentionGradOp::create(builder, getLoc(), getQuery().getType(), getKey().getType(), getValue().getType(),
                                   dy[0], getQuery(), getKey(), getValue(), getLogSumExp(), getMask(), getScaleAttr(),
                                   getCausalAttr());
  });
}

Cotangents PackedAttentionOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  if (dy[1])
    return noDerivativeBySaved(*this, "log_sum_exp");
  return resultCotangents(needed, [&] {
    return PackedAttentionGradOp::create(builder, getLoc(), getQkv().getType(), dy[0], getQkv(), getY(), getLogSumExp(),
                                         getMask(), getHeadsAttr(), getScaleAttr(), getCausalAttr());
  });
}

//===-- Recurrent cells ------------------------------------------------------------------------------------------===//

Cotangents LstmCellOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  if (dy[2])
    return noDerivativeBySaved(*this, "activations");
  // One of the two states may take no part in the loss: the last step's cell state usually does not.
  auto orZeros = [&](Value cotangent, Value state) {
    return cotangent ? cotangent : zeros(builder, getLoc(), state.getType());
  };
  return resultCotangents(needed, [&] {
    return LstmCellGradOp::create(builder, getLoc(), getGates().getType(), getCellState().getType(),
                                  orZeros(dy[0], getHidden()), orZeros(dy[1], getNewCellState()), getActivations(),
                                  getCellState(), getNewCellState());
  });
}

//===-- Transposed convolution -----------------------------------------------------------------------------------===//

// The operation is linear in x and in the weight, and is itself conv2d's derivative: y stands for that convolution's
// input, x for its result.
Cotangents ConvTranspose2dOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(getNumOperands());
  if (needed[0])
    result[0] = convolveAs<Conv2dOp>(*this, builder, getX().getType(), dy[0], getWeight(), /*bias=*/Value());
  if (needed[1])
    result[1] = weightCotangent(*this, builder, dy[0], getX());
  if (getBias() && needed[2])
    result[2] = biasCotangent(builder, getLoc(), dy[0], AxesOf(getDataFormat()).channel, getBias());
  return result;
}

//===-- Normalisation --------------------------------------------------------------------------------------------===//

// The statistics, results 1 and 2, are saved for the derivative, and refuse cotangents of their own.
template <typename GradientOp, typename NormOp, typename... Args>
static Cotangents savedNormCotangents(NormOp norm, OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed,
                                      const Args &...attributes) {
  for (unsigned index : {1u, 2u})
    if (dy[index])
      return noDerivativeBySaved(norm, index == 1 ? "mean" : "inv_std");
  return normCotangents<GradientOp>(norm, builder, dy[0], needed, norm.getInvStd(), attributes...);
}

Cotangents LayerNormOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return savedNormCotangents<LayerNormGradOp>(*this, builder, dy, needed);
}

Cotangents GroupNormOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return savedNormCotangents<GroupNormGradOp>(*this, builder, dy, needed, getGroups(), getDataFormat());
}

//===-- Loss -----------------------------------------------------------------------------------------------------===//

Cotangents BceWithLogitsOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return labelledLossCotangents<BceWithLogitsGradOp>(*this, builder, dy[0], needed);
}

} // namespace mpc
