#include "passes/fusion/unfuse.h"

using namespace mlir;

namespace mpc {

void unfuse(FusionOp Fusion) {
  Block &Body = Fusion.getBody().front();
  for (auto [Argument, Operand] : llvm::zip_equal(Body.getArguments(), Fusion.getInputs()))
    Argument.replaceAllUsesWith(Operand);
  Fusion->replaceAllUsesWith(Body.getTerminator()->getOperands());
  for (Operation &Op : llvm::make_early_inc_range(Body.without_terminator()))
    Op.moveBefore(Fusion);
  Fusion.erase();
}

} // namespace mpc
