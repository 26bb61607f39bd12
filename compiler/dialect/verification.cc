// The verifier of shapes and element types, the same for every operation.
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

// Whether \p result holds bits of operands, so that it has the element type that shape inference gives for it.
static bool holdsOperandBits(OpResult result) {
  Operation *op = result.getOwner();
  return has<Property::DataMovement>(op) || isa<StopGradientOp>(op);
}

// Whether \p op computes integers or truth values element by element, or says that it does: \p inferred or \p actual is
// such a type. A cast gives any type.
static bool computesIntegers(Operation *op, Type inferred, Type actual) {
  return has<Property::Elementwise>(op) && !isa<CastOp>(op) && (isa<IntegerType>(inferred) || isa<IntegerType>(actual));
}

// Whether kernels write \p result as f32, whatever types the operands have.
static bool staysF32(OpResult result) {
  constexpr unsigned cellState = 1;
  if (isa<LstmCellGradOp>(result.getOwner()))
    return result.getResultNumber() == cellState;
  auto amp = dyn_cast<AmpOpInterface>(result.getOwner());
  return amp && llvm::is_contained(amp.getF32Results(), result.getResultNumber());
}

static LogicalResult verifyElement(OpResult result, Type actual, Type inferred) {
  if (staysF32(result) && !isa<Float32Type, Float64Type>(actual))
    return resultError(result) << ", but it stays f32 whatever the other types are; mpc.cast changes it";
  if (actual == inferred)
    return success();
  if (holdsOperandBits(result))
    return resultError(result) << ", but it moves elements of " << inferred
                               << ", which keep their type; mpc.cast changes it";
  if (computesIntegers(result.getOwner(), inferred, actual))
    return resultError(result) << ", but it computes in the type of its operands, " << inferred
                               << "; mpc.cast changes it";
  return success();
}

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
    if (failed(verifyElement(result, actual.getElementType(), expected.getElementType())))
      return failure();
    if (isTooLarge(actual.getShape()))
      return resultError(result) << ", which is too large: a tensor has at most 2^47 elements";
  }
  return success();
}

bool isLowCopy(OpResult result) {
  Operation *op = result.getOwner();
  auto optimizer = dyn_cast<OptimizerOpInterface>(op);
  return optimizer && optimizer.getShadow() != LowCopy::kNone && result.getResultNumber() + 1 == op->getNumResults();
}

} // namespace mpc
