// Integer arithmetic, element by element, with the functors of kernels/scalar. Elements are computed in 64 bits.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/integer.h"

using namespace mlir;
using mpc::codegen::ElementContext;
using mpc::codegen::Long;

namespace mpc {

// What the type of \p result holds of a number.
static Long wrapped(Long x, Value result) {
  if (cast<RankedTensorType>(result.getType()).getElementType().isInteger(64))
    return x;
  const Long upper = 32;
  return (x << upper) >> upper;
}

#define MPC_EMIT_BINARY(Class)                                                                                         \
  void Class::emitElement(ElementContext &context) {                                                                   \
    context.setResult(0, wrapped(scalar::Class::Apply(context.integerOperand(0), context.integerOperand(1)), getY())); \
  }
MPC_EMIT_BINARY(IntAddOp)
MPC_EMIT_BINARY(IntSubOp)
MPC_EMIT_BINARY(IntMulOp)
MPC_EMIT_BINARY(IntFloorDivOp)
MPC_EMIT_BINARY(IntModOp)
MPC_EMIT_BINARY(IntMaximumOp)
MPC_EMIT_BINARY(IntMinimumOp)
#undef MPC_EMIT_BINARY

#define MPC_EMIT_UNARY(Class)                                                                                          \
  void Class::emitElement(ElementContext &context) {                                                                   \
    context.setResult(0, wrapped(scalar::Class::Apply(context.integerOperand(0)), getY()));                            \
  }
MPC_EMIT_UNARY(IntNegOp)
MPC_EMIT_UNARY(IntAbsOp)
#undef MPC_EMIT_UNARY

} // namespace mpc
