// The verifier of shapes and element types, the same for every operation.
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

LogicalResult verifyShapes(Operation *Op, llvm::Expected<SmallVector<RankedTensorType>> Inferred) {
  if (!Inferred)
    return Op->emitOpError() << llvm::toString(Inferred.takeError());
  if (Inferred->size() != Op->getNumResults())
    return Op->emitOpError() << "has " << Op->getNumResults() << " results, expected " << Inferred->size();
  for (auto [Result, Expected] : llvm::zip_equal(Op->getResults(), *Inferred)) {
    auto Actual = dyn_cast<RankedTensorType>(Result.getType());
    if (isShadow(Result) && Result.getType() != Expected)
      return Op->emitOpError() << "shadow is " << Result.getType() << ", expected " << Expected;
    if (!Actual || Actual.getShape() != Expected.getShape())
      return resultError(Result) << ", its shape must be " << shapeText(Expected.getShape());
    if (has<Property::DataMovement>(Op) && Actual.getElementType() != Expected.getElementType())
      return resultError(Result) << ", but it moves elements of " << Expected.getElementType()
                                 << ", which keep their type; mpc.cast changes it";
    if (isTooLarge(Actual.getShape()))
      return resultError(Result) << ", which is too large: a tensor has at most 2^47 elements";
  }
  return success();
}

bool isShadow(OpResult Result) {
  Operation *Op = Result.getOwner();
  auto Shadow = Op->getAttrOfType<StringAttr>("shadow");
  return Shadow && Shadow != "none" && Result.getResultNumber() + 1 == Op->getNumResults();
}

} // namespace mpc
