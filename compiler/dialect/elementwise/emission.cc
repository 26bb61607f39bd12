// Element-wise arithmetic with the functors of kernels/scalar.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/binary.h"
#include "kernels/scalar/unary.h"

using namespace mlir;
using mpc::codegen::ElementContext;
using mpc::codegen::Float;

namespace mpc {

#define MPC_EMIT_UNARY(Class)                                                                                          \
  void Class::emitElement(ElementContext &context) { context.setResult(0, scalar::Class::Apply(context.operand(0))); }
MPC_EMIT_UNARY(ReluOp)
MPC_EMIT_UNARY(SigmoidOp)
MPC_EMIT_UNARY(TanhOp)
MPC_EMIT_UNARY(ExpOp)
MPC_EMIT_UNARY(LogOp)
MPC_EMIT_UNARY(SqrtOp)
MPC_EMIT_UNARY(NegOp)
#undef MPC_EMIT_UNARY

#define MPC_EMIT_BINARY(Class)                                                                                         \
  void Class::emitElement(ElementContext &context) {                                                                   \
    context.setResult(0, scalar::Class::Apply(context.operand(0), context.operand(1)));                                \
  }
MPC_EMIT_BINARY(ReluGradOp)
MPC_EMIT_BINARY(SigmoidGradOp)
MPC_EMIT_BINARY(TanhGradOp)
MPC_EMIT_BINARY(SqrtGradOp)
MPC_EMIT_BINARY(AddOp)
MPC_EMIT_BINARY(SubOp)
MPC_EMIT_BINARY(MulOp)
MPC_EMIT_BINARY(DivOp)
MPC_EMIT_BINARY(MaximumOp)
MPC_EMIT_BINARY(MinimumOp)
#undef MPC_EMIT_BINARY

#define MPC_EMIT_SCALAR(Class)                                                                                         \
  void Class::emitElement(ElementContext &context) {                                                                   \
    context.setResult(0, scalar::Class::Apply(context.operand(0), getValue().convertToFloat()));                       \
  }
MPC_EMIT_SCALAR(AddScalarOp)
MPC_EMIT_SCALAR(MulScalarOp)
#undef MPC_EMIT_SCALAR

void DivGradOp::emitElement(ElementContext &context) {
  context.setResult(0, scalar::DivGradOp::First(context.operand(0), context.operand(1), context.operand(2)));
}

#define MPC_EMIT_PAIR_GRAD(Class)                                                                                      \
  void Class::emitElement(ElementContext &context) {                                                                   \
    Float dy = context.operand(0), a = context.operand(1), b = context.operand(2);                                     \
    if (context.isUsed(0))                                                                                             \
      context.setResult(0, scalar::Class::First(dy, a, b));                                                            \
    if (context.isUsed(1))                                                                                             \
      context.setResult(1, scalar::Class::Second(dy, a, b));                                                           \
  }
MPC_EMIT_PAIR_GRAD(MaximumGradOp)
MPC_EMIT_PAIR_GRAD(MinimumGradOp)
#undef MPC_EMIT_PAIR_GRAD

void SumNOp::emitElement(ElementContext &context) {
  Float sum = context.operand(0);
  for (unsigned index = 1; index < getInputs().size(); ++index)
    sum = sum + context.operand(index);
  context.setResult(0, sum);
}

void StopGradientOp::emitElement(ElementContext &context) { handOnElement(context, getX(), 0); }

void BroadcastToOp::emitElement(ElementContext &context) { handOnElement(context, getX(), 0); }

} // namespace mpc
