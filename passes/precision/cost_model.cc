#include "passes/precision/cost_model.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/matrix_work.h"
#include "compiler/dialect/tensor_values.h"

#include <algorithm>

using namespace mlir;

namespace mpc {

static double elements(Value V) { return static_cast<double>(elementCount(V)); }

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
  if (isa<ViewLikeOpInterface>(Op))
    return 0;
  double Moving = bytes(Op, Low) / BytesPerSecond;
  double Computing = matrixFlops(Op) / (Low ? LowFlops : F32Flops);
  return SecondsPerOperation + std::max(Moving, Computing);
}

double CostModel::castSeconds(Value V) const { return SecondsPerOperation + elements(V) * (4 + 2) / BytesPerSecond; }

double CostModel::shadowSeconds(Value V) const { return elements(V) * 2 / BytesPerSecond; }

} // namespace mpc
