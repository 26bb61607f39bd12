// Verifies what activation functions promise beside their types.
#include "compiler/dialect/dialect.h"

using namespace mlir;

namespace mpc {

LogicalResult ClampOp::verify() {
  double minimum = getMinimum().convertToDouble(), maximum = getMaximum().convertToDouble();
  if (minimum <= maximum)
    return success();
  return emitOpError() << "limits x to [" << minimum << ", " << maximum << "]; the minimum must not exceed the maximum";
}

} // namespace mpc
