// The verifier of mpc.fusion: what it accepts has generated code.
#include "compiler/dialect/fusion_plan.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

static LogicalResult verifyArguments(FusionOp fusion) {
  Block &body = fusion.getBody().front();
  if (body.getNumArguments() != fusion.getInputs().size())
    return fusion.emitOpError() << "has " << fusion.getInputs().size() << " operands, its body takes "
                                << body.getNumArguments() << "; the counts must agree";
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), fusion.getInputs()))
    if (argument.getType() != operand.getType())
      return fusion.emitOpError() << "operand " << argument.getArgNumber() << " is " << operand.getType()
                                  << ", its body takes " << argument.getType();
  return success();
}

static LogicalResult verifyYield(FusionOp fusion) {
  FailureOr<YieldOp> end = yieldOf(fusion);
  if (failed(end))
    return failure();
  YieldOp yield = *end;
  if (yield.getValues().size() != fusion.getNumResults())
    return fusion.emitOpError() << "has " << fusion.getNumResults() << " results, its body yields "
                                << yield.getValues().size() << "; the counts must agree";
  for (auto [result, yielded] : llvm::zip_equal(fusion.getResults(), yield.getValues()))
    if (result.getType() != yielded.getType())
      return resultError(cast<OpResult>(result)) << ", its body yields " << yielded.getType();
  for (Value yielded : yield.getValues())
    if (auto argument = dyn_cast<BlockArgument>(yielded))
      return fusion.emitOpError() << "yields its operand " << argument.getArgNumber()
                                  << "; a region stores what its operations compute";
  return success();
}

// Sums of squares are f64; nothing inside may read them.
static LogicalResult verifyElements(FusionOp fusion) {
  auto isF64 = [](Type tensor) { return getElementTypeOrSelf(tensor).isF64(); };
  bool takesF64 = llvm::any_of(fusion.getInputs().getTypes(), isF64);
  for (Operation &op : fusion.getBody().front().without_terminator())
    takesF64 |= llvm::any_of(op.getOperandTypes(), isF64);
  if (takesF64)
    return fusion.emitOpError() << "computes in f32 and takes no f64, which is for the reference alone";
  return success();
}

LogicalResult FusionOp::verify() {
  if (getNumResults() == 0)
    return emitOpError() << "has no result; a region computes what others read";
  if (failed(verifyArguments(*this)) || failed(verifyYield(*this)) || failed(verifyElements(*this)))
    return failure();
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<FusibleOpInterface, ViewLikeOpInterface>(op))
      return (emitOpError() << "may hold only operations of FusibleOpInterface and views").attachNote(op.getLoc())
             << "'" << op.getName() << "' is neither";
  return success();
}

// Operations say how they lie over a region's space once they are valid themselves.
LogicalResult FusionOp::verifyRegions() {
  llvm::Expected<codegen::FusionPlan> plan = codegen::FusionPlan::create(*this);
  if (!plan)
    return emitOpError() << "holds operations that one kernel cannot compute: " << llvm::toString(plan.takeError());
  return success();
}

} // namespace mpc
