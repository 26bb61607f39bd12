// Activation functions and their derivatives with the functors of kernels/scalar.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/activation.h"

using namespace mlir;
using mpc::codegen::ElementContext;
using mpc::codegen::Extent;

namespace mpc {

template <typename Functor> static void emitUnary(ElementContext &Context, const Functor &Function) {
  Context.setResult(0, Function.Apply(Context.operand(0)));
}
template <typename Functor> static void emitBinary(ElementContext &Context, const Functor &Function) {
  Context.setResult(0, Function.Apply(Context.operand(0), Context.operand(1)));
}

#define MPC_EMIT(Class, emit)                                                                                          \
  void Class::emitElement(ElementContext &Context) { emit(Context, scalar::Class()); }
MPC_EMIT(AbsOp, emitUnary)
MPC_EMIT(FloorOp, emitUnary)
MPC_EMIT(SquareOp, emitUnary)
MPC_EMIT(Log1pOp, emitUnary)
MPC_EMIT(SiluOp, emitUnary)
MPC_EMIT(AbsGradOp, emitBinary)
MPC_EMIT(SquareGradOp, emitBinary)
MPC_EMIT(Log1pGradOp, emitBinary)
MPC_EMIT(SiluGradOp, emitBinary)
#undef MPC_EMIT

void GeluOp::emitElement(ElementContext &Context) {
  if (getApproximate() == "tanh")
    emitUnary(Context, scalar::GeluTanhOp());
  else
    emitUnary(Context, scalar::GeluOp());
}

void GeluGradOp::emitElement(ElementContext &Context) {
  if (getApproximate() == "tanh")
    emitBinary(Context, scalar::GeluTanhGradOp());
  else
    emitBinary(Context, scalar::GeluGradOp());
}

void LeakyReluOp::emitElement(ElementContext &Context) {
  emitUnary(Context, scalar::LeakyReluOp(getAlpha().convertToFloat()));
}
void LeakyReluGradOp::emitElement(ElementContext &Context) {
  emitBinary(Context, scalar::LeakyReluOp(getAlpha().convertToFloat()));
}

void ClampOp::emitElement(ElementContext &Context) {
  emitUnary(Context, scalar::ClampOp(getMinimum().convertToFloat(), getMaximum().convertToFloat()));
}
void ClampGradOp::emitElement(ElementContext &Context) {
  emitBinary(Context, scalar::ClampOp(getMinimum().convertToFloat(), getMaximum().convertToFloat()));
}

FusibleSpace PreluOp::getSpace() {
  codegen::OperationSpace Space{
      tensorType(getX()).getNumElements(), 0, {Extent::Full, Extent::Single}, {Extent::Full}, {}};
  if (tensorType(getAlpha()).getNumElements() == 1)
    return Space;
  auto Channels = lastAxisChannels(*this, getX(), getDataFormat());
  if (!Channels)
    return Channels.takeError();
  Space.columns = *Channels;
  Space.operands[1] = Extent::PerColumn;
  return Space;
}

void PreluOp::emitElement(ElementContext &Context) { emitBinary(Context, scalar::PreluOp()); }

} // namespace mpc
