#include "compiler/dialect/messages.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "kernels/collective.h"
#include "kernels/known_attributes.h"

using namespace mlir;

namespace mpc {

bool sendsMessage(Operation *op) {
  return has<Property::Collective>(op) && op->getNumOperands() > 0 &&
         kernelAttributes(op).Get(attribute::kProcesses) > 1;
}

bool mayShareMessage(Operation *a, Operation *b) {
  return MayShareMessage(kernelName(a), kernelName(b)) && kernelAttributes(a) == kernelAttributes(b);
}

} // namespace mpc
