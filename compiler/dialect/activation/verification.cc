// Verifies what activation functions promise beside their types.
#include "compiler/dialect/dialect.h"

using namespace mlir;

namespace mpc {

LogicalResult ClampOp::verify() {
  double Minimum = getMinimum().convertToDouble(), Maximum = getMaximum().convertToDouble();
  if (Minimum <= Maximum)
    return success();
  return emitOpError() << "limits x to [" << Minimum << ", " << Maximum << "]; the minimum must not exceed the maximum";
}

} // namespace mpc
