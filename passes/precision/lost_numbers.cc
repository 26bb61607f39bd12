#include "passes/precision/lost_numbers.h"

#include "compiler/dialect/dialect.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mpc {

static APFloat rounded(APFloat number, FloatType low) {
  bool losesInfo = false;
  number.convert(low.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number;
}

std::optional<double> lostElement(OpOperand &use, FloatType low) {
  auto constant = use.get().getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  if (!elements)
    return std::nullopt;
  for (APFloat element : elements) {
    if (element.isFiniteNonZero() && !rounded(element, low).isFiniteNonZero())
      return element.convertToDouble();
    if (elements.isSplat())
      break;
  }
  return std::nullopt;
}

std::optional<double> lostScalar(Operation *op, FloatType low) {
  if (auto sum = dyn_cast<AddScalarOp>(op); sum && sum.getValue().isFiniteNonZero())
    return rounded(sum.getValue(), low).isFiniteNonZero() ? std::nullopt
                                                          : std::optional(sum.getValue().convertToDouble());
  if (auto product = dyn_cast<MulScalarOp>(op); product && product.getValue().isFinite())
    return rounded(product.getValue(), low).isInfinity() ? std::optional(product.getValue().convertToDouble())
                                                         : std::nullopt;
  return std::nullopt;
}

std::optional<double> lostNumber(Operation *op, FloatType low) {
  for (OpOperand &use : op->getOpOperands())
    if (std::optional<double> lost = lostElement(use, low))
      return lost;
  return lostScalar(op, low);
}

std::string constantText(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << "constant " << llvm::format("%g", number);
  return text;
}

} // namespace mpc
