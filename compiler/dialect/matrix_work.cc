#include "compiler/dialect/matrix_work.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

static double elements(Value v) { return static_cast<double>(elementCount(v)); }

static double extent(Value v, int64_t axis) {
  auto tensor = cast<RankedTensorType>(v.getType());
  return static_cast<double>(tensor.getDimSize(axis < 0 ? tensor.getRank() + axis : axis));
}

// The first axis of `weight` is the channel axis of `image`. Each element of the image takes part in a product with
// every element of its channel's weights. The image is x for a transposed convolution, else y.
static double convolution(Value image, Value weight) {
  return 2 * elements(image) * elements(weight) / extent(weight, 0);
}

double matrixFlops(Operation *op) {
  auto work = dyn_cast<MatrixWorkOpInterface>(op);
  return work ? work.countFlops() : 0;
}

double MatmulOp::countFlops() { return 2 * elements(getY()) * extent(getA(), getTransposeA() ? 0 : 1); }

double BatchMatmulOp::countFlops() { return 2 * elements(getY()) * extent(getA(), getTransposeA() ? -2 : -1); }

double Conv2dOp::countFlops() { return convolution(getY(), getWeight()); }

double Conv2dStatisticsOp::countFlops() { return convolution(getY(), getWeight()); }

double Conv2dGradInputOp::countFlops() { return convolution(getDy(), getWeight()); }

double Conv2dGradWeightOp::countFlops() { return convolution(getDy(), getDweight()); }

double ConvTranspose2dOp::countFlops() { return convolution(getX(), getWeight()); }

template <typename Op> static double scores(Op attention) {
  return elements(attention.getLogSumExp()) * extent(attention.getKey(), -2);
}

double AttentionOp::countFlops() { return 2 * scores(*this) * (extent(getQuery(), -1) + extent(getValue(), -1)); }

// Scores again, then the gradients of probabilities, query, key and value: five products where attention has two.
double AttentionGradOp::countFlops() {
  return 2 * scores(*this) * (3 * extent(getQuery(), -1) + 2 * extent(getValue(), -1));
}

// The width of a head is that of y, [B, T, H * D], over the heads.
template <typename Op> static double packedScores(Op attention) {
  return elements(attention.getLogSumExp()) * extent(attention.getY(), 1) * extent(attention.getY(), 2) /
         static_cast<double>(attention.getHeads());
}

double PackedAttentionOp::countFlops() { return 2 * 2 * packedScores(*this); }

double PackedAttentionGradOp::countFlops() { return 2 * 5 * packedScores(*this); }

} // namespace mpc
