// The verifier of mpc.fusion.
#include "compiler/dialect/dialect.h"

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
      return Fusion.emitOpError() << "result " << cast<OpResult>(Result).getResultNumber() << " is " << Result.getType()
                                  << ", its body yields " << Yielded.getType();
  return success();
}

LogicalResult FusionOp::verify() {
  if (failed(verifyArguments(*this)) || failed(verifyYield(*this)))
    return failure();
  for (Operation &Op : getBody().front().without_terminator())
    if (!isa<FusibleOpInterface, ReshapeOp>(Op))
      return (emitOpError() << "may hold only operations of FusibleOpInterface and mpc.reshape").attachNote(Op.getLoc())
             << "'" << Op.getName() << "' is neither";
  return success();
}

} // namespace mpc
