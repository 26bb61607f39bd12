// Verifies what activation functions promise beside their types.
#include "compiler/dialect/dialect.h"

using namespace mlir;

namespace mpc {

// An exponent that f32 cannot hold is an infinity here.
static LogicalResult verifyExponent(Operation *op, const APFloat &exponent) {
  if (exponent.isFinite())
    return success();
  SmallString<8> given;
  exponent.toString(given);
  return op->emitOpError() << "takes an exponent that is finite in f32, got " << given;
}

LogicalResult PowOp::verify() { return verifyExponent(*this, getExponent()); }

LogicalResult PowGradOp::verify() { return verifyExponent(*this, getExponent()); }

LogicalResult ClampOp::verify() {
  double minimum = getMinimum().convertToDouble(), maximum = getMaximum().convertToDouble();
  if (minimum <= maximum)
    return success();
  return emitOpError() << "limits x to [" << minimum << ", " << maximum << "]; the minimum must not exceed the maximum";
}

} // namespace mpc
