#include "compiler/dialect/matrix_work.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

static double elements(Value V) { return static_cast<double>(elementCount(V)); }

static double extent(Value V, int64_t Axis) {
  auto Tensor = cast<RankedTensorType>(V.getType());
  return static_cast<double>(Tensor.getDimSize(Axis < 0 ? Tensor.getRank() + Axis : Axis));
}

// The first axis of `Weight` is the channel axis of `Image`. Each element of the image takes part in a product with
// every element of its channel's weights. The image is x for a transposed convolution, else y.
static double convolution(Value Image, Value Weight) {
  return 2 * elements(Image) * elements(Weight) / extent(Weight, 0);
}

double matrixFlops(Operation *Op) {
  auto Work = dyn_cast<MatrixWorkOpInterface>(Op);
  return Work ? Work.countFlops() : 0;
}

double MatmulOp::countFlops() { return 2 * elements(getY()) * extent(getA(), getTransposeA() ? 0 : 1); }

double BatchMatmulOp::countFlops() { return 2 * elements(getY()) * extent(getA(), getTransposeA() ? -2 : -1); }

double Conv2dOp::countFlops() { return convolution(getY(), getWeight()); }

double Conv2dStatisticsOp::countFlops() { return convolution(getY(), getWeight()); }

double Conv2dGradInputOp::countFlops() { return convolution(getDy(), getWeight()); }

double Conv2dGradWeightOp::countFlops() { return convolution(getDy(), getDweight()); }

double ConvTranspose2dOp::countFlops() { return convolution(getX(), getWeight()); }

template <typename Op> static double scores(Op Attention) {
  return elements(Attention.getLogSumExp()) * extent(Attention.getKey(), -2);
}

double AttentionOp::countFlops() { return 2 * scores(*this) * (extent(getQuery(), -1) + extent(getValue(), -1)); }

// Scores again, then the gradients of probabilities, query, key and value: five products where attention has two.
double AttentionGradOp::countFlops() {
  return 2 * scores(*this) * (3 * extent(getQuery(), -1) + 2 * extent(getValue(), -1));
}

} // namespace mpc
