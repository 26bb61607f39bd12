#include "passes/step/scale_by_hand.h"

#include "compiler/dialect/dialect.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mpc {

std::optional<double> constantSplat(Value v) {
  if (auto constant = v.getDefiningOp<ConstantOp>())
    if (auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue()); elements && elements.isSplat())
      return elements.getSplatValue<APFloat>().convertToDouble();
  return std::nullopt;
}

// What a product multiplies its first operand by. None: no product; NaN: a number that is not known here.
static std::optional<double> factorOf(Operation *op) {
  if (auto product = dyn_cast<MulScalarOp>(op))
    return product.getValue().convertToDouble();
  if (!has<Property::ProductOrQuotient>(op))
    return std::nullopt;
  double factor = constantSplat(op->getOperand(1)).value_or(std::numeric_limits<double>::quiet_NaN());
  return isa<DivOp>(op) ? 1 / factor : factor;
}

bool mayBeScaledByHand(Value loss, double lossScale) {
  constexpr double rounding = 1e-6;
  double product = 1;
  while (Operation *op = loss ? loss.getDefiningOp() : nullptr) {
    std::optional<double> factor = factorOf(op);
    if (!factor)
      return false;
    product *= *factor;
    if (std::isnan(product) || std::fabs(*factor / lossScale - 1) < rounding ||
        std::fabs(product / lossScale - 1) < rounding)
      return true;
    loss = op->getOperand(0);
  }
  return false;
}

} // namespace mpc
