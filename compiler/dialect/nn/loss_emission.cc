// mse and bce_with_logits with their gradients.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/losses.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

// Per element under `none`, else one sum of everything.
static FusibleSpace lossSpace(Operation *Op, StringRef Reduction) {
  Extent Loss = Reduction == "none" ? Extent::Full : Extent::Single;
  return OperationSpace{tensorType(Op->getOperand(0)).getNumElements(), 0, {Extent::Full, Extent::Full}, {Loss}, {}};
}

static SmallVector<Reduction> lossReductions(StringRef Reduction) {
  if (Reduction == "none")
    return {};
  return {{Axis::All, {Combine::Sum}}};
}

template <typename Functor> static Float lossOf(ElementContext &Context) {
  return Functor::Loss(Context.operand(0), Context.operand(1));
}

#define MPC_EMIT_LOSS(Class, Functor)                                                                                  \
  FusibleSpace Class::getSpace() { return lossSpace(*this, getReduction()); }                                          \
  SmallVector<Reduction> Class::getReductions() { return lossReductions(getReduction()); }                             \
  void Class::emitTerms(unsigned, ElementContext &Context) { Context.addTerm(lossOf<scalar::Functor>(Context)); }      \
  void Class::emitFinish(unsigned, ElementContext &Context) {                                                          \
    Context.setResult(0, Context.accumulated(0) / lossDivisor(getReduction(), Context.count(Axis::All)));              \
  }                                                                                                                    \
  void Class::emitElement(ElementContext &Context) {                                                                   \
    if (getReduction() == "none")                                                                                      \
      Context.setResult(0, lossOf<scalar::Functor>(Context));                                                          \
  }
MPC_EMIT_LOSS(MseOp, SquaredError)
MPC_EMIT_LOSS(BceWithLogitsOp, BinaryCrossEntropy)
#undef MPC_EMIT_LOSS

// Operands dloss, prediction and target.
template <typename Functor> static void emitLossGrad(ElementContext &Context, float Divisor) {
  Float Cotangent = Functor::kFactor * Context.operand(0) / Divisor;
  Context.setResult(0, Cotangent * Functor::Slope(Context.operand(1), Context.operand(2)));
}

void MseGradOp::emitElement(ElementContext &Context) {
  int64_t Count = tensorType(getPrediction()).getNumElements();
  emitLossGrad<scalar::SquaredError>(Context, lossDivisor(getReduction(), Count));
}

void BceWithLogitsGradOp::emitElement(ElementContext &Context) {
  int64_t Count = tensorType(getLogits()).getNumElements();
  emitLossGrad<scalar::BinaryCrossEntropy>(Context, lossDivisor(getReduction(), Count));
}

} // namespace mpc
