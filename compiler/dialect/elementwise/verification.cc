// Verifies what constants promise beside their types.
#include "compiler/dialect/dialect.h"

using namespace mlir;

namespace mpc {

LogicalResult ConstantOp::verify() {
  if (!isa<DenseElementsAttr>(getValue()))
    return emitOpError() << "takes a dense value, got " << getValue();
  if (getValue().getShapedType() != getType())
    return emitOpError() << "result is " << getType() << ", its value is " << getValue().getShapedType();
  return success();
}

} // namespace mpc
