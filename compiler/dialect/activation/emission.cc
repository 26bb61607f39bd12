// Activation functions and their derivatives with the functors of kernels/scalar.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/activation.h"

using namespace mlir;
using mpc::codegen::Axis;
using mpc::codegen::Combine;
using mpc::codegen::ElementContext;
using mpc::codegen::Extent;
using mpc::codegen::Float;
using mpc::codegen::Reduction;

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
MPC_EMIT(HardSwishOp, emitUnary)
MPC_EMIT(AbsGradOp, emitBinary)
MPC_EMIT(SquareGradOp, emitBinary)
MPC_EMIT(Log1pGradOp, emitBinary)
MPC_EMIT(SiluGradOp, emitBinary)
MPC_EMIT(HardSwishGradOp, emitBinary)
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

// There is one slope for all elements, or one for each channel. The slope is the last operand. All other operands and
// the first result are whole.
static FusibleSpace slopeSpace(Operation *Op, Value X, Value Alpha, StringRef DataFormat) {
  codegen::OperationSpace Space;
  Space.elements = tensorType(X).getNumElements();
  Extent Slope = Extent::Single;
  if (tensorType(Alpha).getNumElements() != 1) {
    auto Channels = lastAxisChannels(Op, X, DataFormat);
    if (!Channels)
      return Channels.takeError();
    Space.columns = *Channels;
    Slope = Extent::PerColumn;
  }
  Space.operands.assign(Op->getNumOperands(), Extent::Full);
  Space.operands.back() = Slope;
  Space.results = {Extent::Full};
  return Space;
}

FusibleSpace PreluOp::getSpace() { return slopeSpace(*this, getX(), getAlpha(), getDataFormat()); }

void PreluOp::emitElement(ElementContext &Context) { emitBinary(Context, scalar::PreluOp()); }

FusibleSpace PreluGradOp::getSpace() {
  FusibleSpace Space = slopeSpace(*this, getX(), getAlpha(), getDataFormat());
  if (!Space)
    return Space;
  Space->results.push_back(Space->operands.back());
  Space->reductionsBefore = {0, 1};
  return Space;
}

SmallVector<Reduction> PreluGradOp::getReductions() {
  bool OneForAll = tensorType(getAlpha()).getNumElements() == 1;
  return {{OneForAll ? Axis::All : Axis::Column, {Combine::Sum}}};
}

void PreluGradOp::emitTerms(unsigned, ElementContext &Context) {
  Context.addTerm(scalar::PreluSlopeGradOp::Apply(Context.operand(0), Context.operand(1)));
}

void PreluGradOp::emitFinish(unsigned, ElementContext &Context) { Context.setResult(1, Context.accumulated(0)); }

void PreluGradOp::emitElement(ElementContext &Context) {
  Float Dy = Context.operand(0);
  Context.setResult(0, Select(Context.operand(1) > 0.0f, Dy, Context.operand(2) * Dy));
}

} // namespace mpc
