// The verifier of shapes and element types, the same for every operation.
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

LogicalResult verifyShapes(Operation *op, llvm::Expected<SmallVector<RankedTensorType>> inferred) {
  if (!inferred)
    return op->emitOpError() << llvm::toString(inferred.takeError());
  if (inferred->size() != op->getNumResults())
    return op->emitOpError() << "has " << op->getNumResults() << " results, expected " << inferred->size();
  for (auto [result, expected] : llvm::zip_equal(op->getResults(), *inferred)) {
    auto actual = dyn_cast<RankedTensorType>(result.getType());
    if (isLowCopy(result) && result.getType() != expected)
      return op->emitOpError() << "shadow is " << result.getType() << ", expected " << expected;
    if (!actual || actual.getShape() != expected.getShape())
      return resultError(result) << ", its shape must be " << shapeText(expected.getShape());
    if (has<Property::DataMovement>(op) && actual.getElementType() != expected.getElementType())
      return resultError(result) << ", but it moves elements of " << expected.getElementType()
                                 << ", which keep their type; mpc.cast changes it";
    if (isTooLarge(actual.getShape()))
      return resultError(result) << ", which is too large: a tensor has at most 2^47 elements";
  }
  return success();
}

bool isLowCopy(OpResult result) {
  Operation *op = result.getOwner();
  auto lowCopy = op->getAttrOfType<LowCopyAttr>("shadow");
  return lowCopy && lowCopy.getValue() != LowCopy::kNone && result.getResultNumber() + 1 == op->getNumResults();
}

} // namespace mpc
