#include "passes/precision/cost_model.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/matrix_work.h"
#include "compiler/dialect/tensor_values.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace mpc {

static double elements(Value v) { return static_cast<double>(elementCount(v)); }

static double bytes(Operation *op, bool low) {
  auto amp = cast<AmpOpInterface>(op);
  double bytes = 0;
  auto add = [&](ValueRange values, ArrayRef<unsigned> stayF32) {
    for (auto [index, v] : llvm::enumerate(values)) {
      Type element = getElementTypeOrSelf(v.getType());
      bool halved = low && isa<FloatType>(element) && !llvm::is_contained(stayF32, index);
      bytes += elements(v) * (isa<FloatType>(element) ? halved ? 2 : 4 : (element.getIntOrFloatBitWidth() + 7) / 8);
    }
  };
  add(op->getOperands(), amp.getF32Operands());
  add(op->getResults(), amp.getF32Results());
  return bytes;
}

llvm::Error CostModel::give(double bytes, double low, double f32, double perOperation) {
  struct Given {
    const char *name;
    double *field;
    double rate;
  };
  const Given given[] = {{"bytes-per-second", &bytesPerSecond, bytes},
                         {"low-flops", &lowFlops, low},
                         {"f32-flops", &f32Flops, f32},
                         {"seconds-per-operation", &secondsPerOperation, perOperation}};
  for (const auto &[name, field, rate] : given) {
    if (!std::isfinite(rate) || rate < 0)
      return llvm::createStringError("%s must be finite and positive, or 0 for the default, got %g", name, rate);
    if (rate > 0)
      *field = rate;
  }
  return llvm::Error::success();
}

double CostModel::operationSeconds(Operation *op, bool low) const {
  // The same bytes under another shape.
  if (isa<ViewLikeOpInterface>(op))
    return 0;
  double moving = bytes(op, low) / bytesPerSecond;
  double computing = matrixFlops(op) / (low ? lowFlops : f32Flops);
  return secondsPerOperation + std::max(moving, computing);
}

double CostModel::castSeconds(Value v) const { return secondsPerOperation + elements(v) * (4 + 2) / bytesPerSecond; }

double CostModel::lowCopySeconds(Value v) const { return elements(v) * 2 / bytesPerSecond; }

} // namespace mpc
