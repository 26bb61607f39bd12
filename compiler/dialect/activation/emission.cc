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

template <typename Functor> static void emitUnary(ElementContext &context, const Functor &function) {
  context.setResult(0, function.Apply(context.operand(0)));
}
template <typename Functor> static void emitBinary(ElementContext &context, const Functor &function) {
  context.setResult(0, function.Apply(context.operand(0), context.operand(1)));
}

#define MPC_EMIT(Class, emit)                                                                                          \
  void Class::emitElement(ElementContext &context) { emit(context, scalar::Class()); }
MPC_EMIT(AbsOp, emitUnary)
MPC_EMIT(FloorOp, emitUnary)
MPC_EMIT(SquareOp, emitUnary)
MPC_EMIT(Log1pOp, emitUnary)
MPC_EMIT(SiluOp, emitUnary)
MPC_EMIT(HardSwishOp, emitUnary)
MPC_EMIT(ErfOp, emitUnary)
MPC_EMIT(AbsGradOp, emitBinary)
MPC_EMIT(SquareGradOp, emitBinary)
MPC_EMIT(Log1pGradOp, emitBinary)
MPC_EMIT(SiluGradOp, emitBinary)
MPC_EMIT(HardSwishGradOp, emitBinary)
MPC_EMIT(ErfGradOp, emitBinary)
#undef MPC_EMIT

void GeluOp::emitElement(ElementContext &context) {
  if (getApproximate() == Approximation::kTanh)
    emitUnary(context, scalar::GeluTanhOp());
  else
    emitUnary(context, scalar::GeluOp());
}

void GeluGradOp::emitElement(ElementContext &context) {
  if (getApproximate() == Approximation::kTanh)
    emitBinary(context, scalar::GeluTanhGradOp());
  else
    emitBinary(context, scalar::GeluGradOp());
}

void LeakyReluOp::emitElement(ElementContext &context) {
  emitUnary(context, scalar::LeakyReluOp(getAlpha().convertToFloat()));
}
void LeakyReluGradOp::emitElement(ElementContext &context) {
  emitBinary(context, scalar::LeakyReluOp(getAlpha().convertToFloat()));
}

void ClampOp::emitElement(ElementContext &context) {
  emitUnary(context, scalar::ClampOp(getMinimum().convertToFloat(), getMaximum().convertToFloat()));
}
void ClampGradOp::emitElement(ElementContext &context) {
  emitBinary(context, scalar::ClampOp(getMinimum().convertToFloat(), getMaximum().convertToFloat()));
}

// There is one slope for all elements, or one for each channel. The slope is the last operand. All other operands and
// the first result are whole.
static FusibleSpace slopeSpace(Operation *op, Value x, Value alpha, DataFormat dataFormat) {
  codegen::OperationSpace space;
  space.elements = tensorType(x).getNumElements();
  Extent slope = Extent::Single;
  if (tensorType(alpha).getNumElements() != 1) {
    auto channels = lastAxisChannels(op, x, dataFormat);
    if (!channels)
      return channels.takeError();
    space.columns = *channels;
    slope = Extent::PerColumn;
  }
  space.operands.assign(op->getNumOperands(), Extent::Full);
  space.operands.back() = slope;
  space.results = {Extent::Full};
  return space;
}

FusibleSpace PreluOp::getSpace() { return slopeSpace(*this, getX(), getAlpha(), getDataFormat()); }

void PreluOp::emitElement(ElementContext &context) { emitBinary(context, scalar::PreluOp()); }

FusibleSpace PreluGradOp::getSpace() {
  FusibleSpace space = slopeSpace(*this, getX(), getAlpha(), getDataFormat());
  if (!space)
    return space;
  space->results.push_back(space->operands.back());
  space->reductionsBefore = {0, 1};
  return space;
}

SmallVector<Reduction> PreluGradOp::getReductions() {
  bool oneForAll = tensorType(getAlpha()).getNumElements() == 1;
  return {{oneForAll ? Axis::All : Axis::Column, {Combine::Sum}}};
}

void PreluGradOp::emitTerms(unsigned, ElementContext &context) {
  context.addTerm(scalar::PreluSlopeGradOp::Apply(context.operand(0), context.operand(1)));
}

void PreluGradOp::emitFinish(unsigned, ElementContext &context) { context.setResult(1, context.accumulated(0)); }

void PreluGradOp::emitElement(ElementContext &context) {
  Float dy = context.operand(0);
  context.setResult(0, Select(context.operand(1) > 0.0f, dy, context.operand(2) * dy));
}

} // namespace mpc
