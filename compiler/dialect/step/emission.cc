// Emits what a training step computes of the loss and of every gradient: scale, clip, finite check and sum of squares.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/binary.h"
#include "kernels/scalar/clip.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

void ScaleLossOp::emitElement(ElementContext &context) {
  context.setResult(0, scalar::MulOp::Apply(context.operand(0), context.operand(1)));
}

void UnscaleOp::emitElement(ElementContext &context) {
  context.setResult(0, context.operand(0) * (1.0f / context.operand(1)));
}

void ClipByNormOp::emitElement(ElementContext &context) {
  Double norm = ToDouble(context.operand(1));
  context.setResult(0, context.operand(0) * scalar::ClipFactor(norm, getMaxNorm().convertToFloat()));
}

// The space of an operation that reduces everything: its first operand is whole, and all other values are single.
static OperationSpace wholeSpace(Operation *op) {
  OperationSpace space;
  space.elements = tensorType(op->getOperand(0)).getNumElements();
  space.operands.assign(op->getNumOperands(), Extent::Single);
  space.operands.front() = Extent::Full;
  space.results = {Extent::Single};
  return space;
}

static Float unscaled(ElementContext &context) { return context.operand(0) * (1.0f / context.operand(1)); }

FusibleSpace CheckFiniteOp::getSpace() { return wholeSpace(*this); }
SmallVector<Reduction> CheckFiniteOp::getReductions() { return {{Axis::All, {Combine::Sum}}}; }
// Zero times a finite number is a zero, times any other NaN, and a sum of zeros is a zero in any order.
void CheckFiniteOp::emitTerms(unsigned, ElementContext &context) { context.addTerm(unscaled(context) * 0.0f); }
void CheckFiniteOp::emitFinish(unsigned, ElementContext &context) {
  context.setResult(0, context.accumulated(0) == 0.0f);
}
void CheckFiniteOp::emitElement(ElementContext &) {}

FusibleSpace SumOfSquaresOp::getSpace() { return wholeSpace(*this); }
SmallVector<Reduction> SumOfSquaresOp::getReductions() { return {{Axis::All, {Combine::SquaresF64}}}; }
void SumOfSquaresOp::emitTerms(unsigned, ElementContext &context) {
  context.addTerm(getScale() ? unscaled(context) : context.operand(0));
}
void SumOfSquaresOp::emitFinish(unsigned, ElementContext &context) {
  // The number of an f64 result is f64.
  bool isF64 = tensorType(getSum()).getElementType().isF64();
  context.setResult(0, isF64 ? Float(context.accumulatedF64(0).value()) : context.accumulated(0));
}
void SumOfSquaresOp::emitElement(ElementContext &) {}

} // namespace mpc
