#include "passes/amp/cost_model.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;

namespace mpc {

static double elements(Value V) { return static_cast<double>(elementCount(V)); }

static int64_t extent(Value V, int64_t Axis) {
  auto Tensor = cast<RankedTensorType>(V.getType());
  return Tensor.getDimSize(Axis < 0 ? Tensor.getRank() + Axis : Axis);
}

double matrixFlops(Operation *Op) {
  return llvm::TypeSwitch<Operation *, double>(Op)
      .Case([](MatmulOp Matmul) {
        return 2 * elements(Matmul.getY()) * extent(Matmul.getA(), Matmul.getTransposeA() ? 0 : 1);
      })
      .Case([](BatchMatmulOp Matmul) {
        return 2 * elements(Matmul.getY()) * extent(Matmul.getA(), Matmul.getTransposeA() ? -2 : -1);
      })
      // Weights are [O, C / groups, kh, kw] in either data format, [C, O / groups, kh, kw] where transposed.
      .Case<Conv2dOp, Conv2dStatisticsOp>([](auto Conv) {
        return 2 * elements(Conv.getY()) * elements(Conv.getWeight()) / extent(Conv.getWeight(), 0);
      })
      .Case([](ConvTranspose2dOp Conv) {
        return 2 * elements(Conv.getX()) * elements(Conv.getWeight()) / extent(Conv.getWeight(), 0);
      })
      .Case([](AttentionOp Attention) {
        double Scores = elements(Attention.getLogSumExp()) * extent(Attention.getKey(), -2);
        return 2 * Scores * (extent(Attention.getQuery(), -1) + extent(Attention.getValue(), -1));
      })
      .Default(0.0);
}

static double bytes(Operation *Op, bool Low) {
  auto Amp = cast<AmpOpInterface>(Op);
  double Bytes = 0;
  auto Add = [&](ValueRange Values, ArrayRef<unsigned> StayF32) {
    for (auto [Index, V] : llvm::enumerate(Values)) {
      Type Element = getElementTypeOrSelf(V.getType());
      bool Halved = Low && isa<FloatType>(Element) && !llvm::is_contained(StayF32, Index);
      Bytes += elements(V) * (isa<FloatType>(Element) ? Halved ? 2 : 4 : (Element.getIntOrFloatBitWidth() + 7) / 8);
    }
  };
  Add(Op->getOperands(), Amp.getF32Operands());
  Add(Op->getResults(), Amp.getF32Results());
  return Bytes;
}

double CostModel::operationSeconds(Operation *Op, bool Low) const {
  // The same bytes under another shape.
  if (isa<ReshapeOp>(Op))
    return 0;
  double Moving = bytes(Op, Low) / BytesPerSecond;
  double Computing = matrixFlops(Op) / (Low ? LowFlops : F32Flops);
  return SecondsPerOperation + std::max(Moving, Computing);
}

double CostModel::castSeconds(Value V) const { return SecondsPerOperation + elements(V) * (4 + 2) / BytesPerSecond; }

double CostModel::shadowSeconds(Value V) const { return elements(V) * 2 / BytesPerSecond; }

} // namespace mpc
