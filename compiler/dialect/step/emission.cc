// Emits what a training step computes of the loss and of every gradient: scale, clip, finite check and sum of squares.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/binary.h"
#include "kernels/scalar/clip.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

void ScaleLossOp::emitElement(ElementContext &Context) {
  Context.setResult(0, scalar::MulOp::Apply(Context.operand(0), Context.operand(1)));
}

void UnscaleOp::emitElement(ElementContext &Context) {
  Context.setResult(0, Context.operand(0) * (1.0f / Context.operand(1)));
}

void ClipByNormOp::emitElement(ElementContext &Context) {
  Double Norm = ToDouble(Context.operand(1));
  Context.setResult(0, Context.operand(0) * scalar::ClipFactor(Norm, getMaxNorm().convertToFloat()));
}

// The space of an operation that reduces everything: its first operand is whole, and all other values are single.
static OperationSpace wholeSpace(Operation *Op) {
  OperationSpace Space;
  Space.elements = tensorType(Op->getOperand(0)).getNumElements();
  Space.operands.assign(Op->getNumOperands(), Extent::Single);
  Space.operands.front() = Extent::Full;
  Space.results = {Extent::Single};
  return Space;
}

static Float unscaled(ElementContext &Context) { return Context.operand(0) * (1.0f / Context.operand(1)); }

FusibleSpace CheckFiniteOp::getSpace() { return wholeSpace(*this); }
SmallVector<Reduction> CheckFiniteOp::getReductions() { return {{Axis::All, {Combine::Sum}}}; }
// Zero times a finite number is a zero, times any other NaN, and a sum of zeros is a zero in any order.
void CheckFiniteOp::emitTerms(unsigned, ElementContext &Context) { Context.addTerm(unscaled(Context) * 0.0f); }
void CheckFiniteOp::emitFinish(unsigned, ElementContext &Context) {
  Context.setResult(0, Context.accumulated(0) == 0.0f);
}
void CheckFiniteOp::emitElement(ElementContext &) {}

FusibleSpace SumOfSquaresOp::getSpace() { return wholeSpace(*this); }
SmallVector<Reduction> SumOfSquaresOp::getReductions() { return {{Axis::All, {Combine::SquaresF64}}}; }
void SumOfSquaresOp::emitTerms(unsigned, ElementContext &Context) {
  Context.addTerm(getScale() ? unscaled(Context) : Context.operand(0));
}
void SumOfSquaresOp::emitFinish(unsigned, ElementContext &Context) {
  // The number of an f64 result is f64.
  bool IsF64 = tensorType(getSum()).getElementType().isF64();
  Context.setResult(0, IsF64 ? Float(Context.accumulatedF64(0).value()) : Context.accumulated(0));
}
void SumOfSquaresOp::emitElement(ElementContext &) {}

} // namespace mpc
