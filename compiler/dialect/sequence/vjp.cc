// Derivatives of batched matrix work, packed attention, transposed convolution, layer and group normalisation, binary
// cross-entropy.
#include "compiler/dialect/norm_vjp.h"
#include "compiler/dialect/tensor_values.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

Cotangents BatchMatmulOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  setFactorCotangents(
      *this, dy[0], needed, result, [&](Value like, Value left, bool transposeLeft, Value right, bool transposeRight) {
        return BatchMatmulOp::create(builder, getLoc(), like.getType(), left, right, transposeLeft, transposeRight);
      });
  return result;
}

Cotangents PackedAttentionOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  if (dy[1])
    return noDerivativeBySaved(*this, "log_sum_exp");
  return resultCotangents(needed, [&] {
    return PackedAttentionGradOp::create(builder, getLoc(), getQkv().getType(), dy[0], getQkv(), getY(), getLogSumExp(),
                                         getMask(), getHeadsAttr(), getScaleAttr(), getCausalAttr());
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

// The mean and inv_std, results 1 and 2, are saved for the derivative. Its own derivative gives them cotangents.
template <typename GradientOp, typename NormOp, typename... Args>
static Cotangents savedNormCotangents(NormOp norm, const NormLayout &layout, OpBuilder &builder, ValueRange dy,
                                      ArrayRef<bool> needed, const Args &...attributes) {
  Cotangents result = SmallVector<Value>(norm->getNumOperands());
  if (dy[0])
    result = normCotangents<GradientOp>(norm, builder, dy[0], needed, norm.getInvStd(), attributes...);
  if (!needed[0] || (!dy[1] && !dy[2]))
    return result;
  Value ofStatistics = statisticsCotangent(norm, layout, builder, dy[1], dy[2]);
  Value &dx = result->front();
  Type type = norm.getX().getType();
  dx = dx ? SumNOp::create(builder, norm.getLoc(), type, ValueRange{dx, ofStatistics}).getY() : ofStatistics;
  return result;
}

Cotangents LayerNormOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return savedNormCotangents<LayerNormGradOp>(*this, NormLayout::ofTrailingAxes(getX(), getGamma()), builder, dy,
                                              needed);
}

Cotangents GroupNormOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return savedNormCotangents<GroupNormGradOp>(*this, NormLayout::ofGroups(getX(), getGroups(), getDataFormat()),
                                              builder, dy, needed, getGroups(), getDataFormat());
}

Cotangents LayerNormGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return normGradCotangents(*this, NormLayout::ofTrailingAxes(getX(), getGamma()), builder, c, needed);
}

Cotangents GroupNormGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return normGradCotangents(*this, NormLayout::ofGroups(getX(), getGroups(), getDataFormat()), builder, c, needed);
}

//===-- Loss -----------------------------------------------------------------------------------------------------===//

Cotangents BceWithLogitsOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return labelledLossCotangents<BceWithLogitsGradOp>(*this, builder, dy[0], needed);
}

// Of dloss (s - labels), where s is the sigmoid of the logits. The product of s at both signs has no difference that
// cancels.
Cotangents BceWithLogitsGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(3);
  if (needed[0])
    result[0] = lossCotangent(*this, builder, c[0]);
  if (!needed[1] && !needed[2])
    return result;
  WideArithmetic wide(builder, getLoc(), getLogits());
  Value p = ofElementLosses(wide, c[0], getDloss(), getReduction(), elementCount(getLogits()));
  if (needed[1]) {
    Value upper = wide.of<SigmoidOp>(getLogits()), lower = wide.of<SigmoidOp>(wide.negated(getLogits()));
    result[1] = castTo(builder, getLoc(), wide.times(p, wide.times(upper, lower)), elementOf(getLogits()));
  }
  if (needed[2])
    result[2] = castTo(builder, getLoc(), wide.negated(p), elementOf(getLabels()));
  return result;
}

} // namespace mpc
