// The verifier of mpc.fusion: what it accepts has generated code.
#include "compiler/dialect/inference_support.h"
#include "compiler/dialect/region_plan.h"

using namespace mlir;

namespace mpc {

static LogicalResult verifyArguments(FusionOp Fusion) {
  Block &Body = Fusion.getBody().front();
  if (Body.getNumArguments() != Fusion.getInputs().size())
    return Fusion.emitOpError() << "has " << Fusion.getInputs().size() << " operands, its body takes "
                                << Body.getNumArguments() << "; the counts must agree";
  for (auto [Argument, Operand] : llvm::zip_equal(Body.getArguments(), Fusion.getInputs()))
    if (Argument.getType() != Operand.getType())
      return Fusion.emitOpError() << "operand " << Argument.getArgNumber() << " is " << Operand.getType()
                                  << ", its body takes " << Argument.getType();
  return success();
}

static LogicalResult verifyYield(FusionOp Fusion) {
  auto Yield = cast<YieldOp>(Fusion.getBody().front().getTerminator());
  if (Yield.getValues().size() != Fusion.getNumResults())
    return Fusion.emitOpError() << "has " << Fusion.getNumResults() << " results, its body yields "
                                << Yield.getValues().size() << "; the counts must agree";
  for (auto [Result, Yielded] : llvm::zip_equal(Fusion.getResults(), Yield.getValues()))
    if (Result.getType() != Yielded.getType())
      return resultError(cast<OpResult>(Result)) << ", its body yields " << Yielded.getType();
  for (Value Yielded : Yield.getValues())
    if (auto Argument = dyn_cast<BlockArgument>(Yielded))
      return Fusion.emitOpError() << "yields its operand " << Argument.getArgNumber()
                                  << "; a region stores what its operations compute";
  return success();
}

// Sums of squares are f64; nothing inside may read them.
static LogicalResult verifyElements(FusionOp Fusion) {
  auto IsF64 = [](Type Tensor) { return getElementTypeOrSelf(Tensor).isF64(); };
  bool TakesF64 = llvm::any_of(Fusion.getInputs().getTypes(), IsF64);
  for (Operation &Op : Fusion.getBody().front().without_terminator())
    TakesF64 |= llvm::any_of(Op.getOperandTypes(), IsF64);
  if (TakesF64)
    return Fusion.emitOpError() << "computes in f32 and takes no f64, which is for the reference alone";
  return success();
}

LogicalResult FusionOp::verify() {
  if (getNumResults() == 0)
    return emitOpError() << "has no result; a region computes what others read";
  if (failed(verifyArguments(*this)) || failed(verifyYield(*this)) || failed(verifyElements(*this)))
    return failure();
  for (Operation &Op : getBody().front().without_terminator())
    if (!isa<FusibleOpInterface, ViewLikeOpInterface>(Op))
      return (emitOpError() << "may hold only operations of FusibleOpInterface and views").attachNote(Op.getLoc())
             << "'" << Op.getName() << "' is neither";
  return success();
}

// Operations say how they lie over a region's space once they are valid themselves.
LogicalResult FusionOp::verifyRegions() {
  llvm::Expected<codegen::RegionPlan> Plan = codegen::RegionPlan::of(*this);
  if (!Plan)
    return emitOpError() << "holds operations that one kernel cannot compute: " << llvm::toString(Plan.takeError());
  return success();
}

} // namespace mpc
