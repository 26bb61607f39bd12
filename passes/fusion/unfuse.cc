#include "passes/fusion/unfuse.h"

using namespace mlir;

namespace mpc {

void unfuse(FusionOp fusion) {
  Block &body = fusion.getBody().front();
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), fusion.getInputs()))
    argument.replaceAllUsesWith(operand);
  fusion->replaceAllUsesWith(body.getTerminator()->getOperands());
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
    op.moveBefore(fusion);
  fusion.erase();
}

} // namespace mpc
