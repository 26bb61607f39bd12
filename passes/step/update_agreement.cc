#include "passes/step/update_agreement.h"

#include "compiler/dialect/attribute_conversion.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace mpc {

static bool sameTypes(ValueRange Some, ValueRange Others) {
  return llvm::equal(Some, Others, [](Value A, Value B) {
    return getElementTypeOrSelf(A.getType()) == getElementTypeOrSelf(B.getType());
  });
}

bool mayShareKernel(Operation *A, Operation *B) {
  return A->getName() == B->getName() && sameTypes(A->getOperands(), B->getOperands()) &&
         sameTypes(A->getResults(), B->getResults()) &&
         llvm::equal(A->getResults(), B->getResults(),
                     [](Value Some, Value Other) { return Some.use_empty() == Other.use_empty(); }) &&
         kernelAttributes(A) == kernelAttributes(B);
}

} // namespace mpc
