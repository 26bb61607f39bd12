#include "passes/step/update_agreement.h"

#include "compiler/dialect/attribute_conversion.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace mpc {

static bool sameTypes(ValueRange some, ValueRange others) {
  return llvm::equal(some, others, [](Value a, Value b) {
    return getElementTypeOrSelf(a.getType()) == getElementTypeOrSelf(b.getType());
  });
}

bool mayShareKernel(Operation *a, Operation *b) {
  return a->getName() == b->getName() && sameTypes(a->getOperands(), b->getOperands()) &&
         sameTypes(a->getResults(), b->getResults()) &&
         llvm::equal(a->getResults(), b->getResults(),
                     [](Value some, Value other) { return some.use_empty() == other.use_empty(); }) &&
         kernelAttributes(a) == kernelAttributes(b);
}

} // namespace mpc
