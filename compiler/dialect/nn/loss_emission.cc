// mse and bce_with_logits with their gradients.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/losses.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

// Per element under `none`, else one sum of everything.
static FusibleSpace lossSpace(Operation *op, LossReduction reduction) {
  Extent loss = reduction == LossReduction::kNone ? Extent::Full : Extent::Single;
  return OperationSpace{tensorType(op->getOperand(0)).getNumElements(), 0, {Extent::Full, Extent::Full}, {loss}, {}};
}

static SmallVector<Reduction> lossReductions(LossReduction reduction) {
  if (reduction == LossReduction::kNone)
    return {};
  return {{Axis::All, {Combine::Sum}}};
}

template <typename Functor> static Float lossOf(ElementContext &context) {
  return Functor::Loss(context.operand(0), context.operand(1));
}

#define MPC_EMIT_LOSS(Class, Functor)                                                                                  \
  FusibleSpace Class::getSpace() { return lossSpace(*this, getReduction()); }                                          \
  SmallVector<Reduction> Class::getReductions() { return lossReductions(getReduction()); }                             \
  void Class::emitTerms(unsigned, ElementContext &context) { context.addTerm(lossOf<scalar::Functor>(context)); }      \
  void Class::emitFinish(unsigned, ElementContext &context) {                                                          \
    context.setResult(0, context.accumulated(0) / lossDivisor(getReduction(), context.count(Axis::All)));              \
  }                                                                                                                    \
  void Class::emitElement(ElementContext &context) {                                                                   \
    if (getReduction() == LossReduction::kNone)                                                                        \
      context.setResult(0, lossOf<scalar::Functor>(context));                                                          \
  }
MPC_EMIT_LOSS(MseOp, SquaredError)
MPC_EMIT_LOSS(BceWithLogitsOp, BinaryCrossEntropy)
#undef MPC_EMIT_LOSS

// Operands dloss, prediction and target.
template <typename Functor> static void emitLossGrad(ElementContext &context, float divisor) {
  Float cotangent = Functor::kFactor * context.operand(0) / divisor;
  context.setResult(0, cotangent * Functor::Slope(context.operand(1), context.operand(2)));
}

void MseGradOp::emitElement(ElementContext &context) {
  int64_t count = tensorType(getPrediction()).getNumElements();
  emitLossGrad<scalar::SquaredError>(context, lossDivisor(getReduction(), count));
}

void BceWithLogitsGradOp::emitElement(ElementContext &context) {
  int64_t count = tensorType(getLogits()).getNumElements();
  emitLossGrad<scalar::BinaryCrossEntropy>(context, lossDivisor(getReduction(), count));
}

} // namespace mpc
