// Verifies what constants promise beside their types.
#include "compiler/dialect/dialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mpc {

LogicalResult ConstantOp::verify() {
  if (!isa<DenseElementsAttr>(getValue()))
    return emitOpError() << "takes a dense value, got " << getValue();
  if (getValue().getShapedType() != getType())
    return emitOpError() << "result is " << getType() << ", its value is " << getValue().getShapedType();
  return success();
}

LogicalResult IotaOp::verify() {
  ArrayRef<int64_t> extents = getType().getShape();
  int64_t axis = int64_t(getAxis()), start = int64_t(getStart()), step = int64_t(getStep()), last = 0;
  int64_t count = extents[axis < 0 ? axis + getType().getRank() : axis];
  bool overflows = llvm::MulOverflow(step, count - 1, last) || llvm::AddOverflow(start, last, last);
  bool tooNarrow = getType().getElementType().isInteger(32) && !(llvm::isInt<32>(start) && llvm::isInt<32>(last));
  if (!overflows && !tooNarrow)
    return success();
  return emitOpError() << "counts " << count << " numbers from " << start << " in steps of " << step << ", which "
                       << (overflows ? "i64" : "i32") << " does not hold";
}

} // namespace mpc
