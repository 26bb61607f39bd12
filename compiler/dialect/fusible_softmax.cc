// softmax, log_softmax and their gradients along the last axis; softmax_cross_entropy and its gradient.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/losses.h"
#include "kernels/scalar/softmax.h"

#include <limits>

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

static FusibleSpace rowSpace(Operation *Op, int64_t Axis) {
  auto Columns = lastAxisLength(Op, Op->getOperand(0), Axis);
  if (!Columns)
    return Columns.takeError();
  SmallVector<Extent, 4> Operands(Op->getNumOperands(), Extent::Full);
  return OperationSpace{tensorType(Op->getOperand(0)).getNumElements(), *Columns, Operands, {Extent::Full}, {}};
}

//===-- softmax --------------------------------------------------------------------------------------------------===//

static SmallVector<Reduction> maximumThenSum() {
  return {{Axis::Row, {Combine::Maximum}}, {Axis::Row, {Combine::Sum}}};
}

// Keeps the row's maximum, then what Functor makes of the sum of exp(x - maximum).
template <typename Functor> struct SoftmaxEmitter {
  static void emitTerms(unsigned Step, ElementContext &Context) {
    Float X = Context.operand(0);
    Context.addTerm(Step == 0 ? X : scalar::ShareExp(X - Context.kept(0)));
  }
  static void emitFinish(unsigned Step, ElementContext &Context) {
    Float Value = Context.accumulated(0);
    Context.keep(Step == 0 ? Value : Functor::Normaliser(Value));
  }
  static void emitElement(ElementContext &Context) {
    Context.setResult(0, Functor::Result(Context.operand(0) - Context.kept(0), Context.kept(1)));
  }
};

template <typename Functor> struct SoftmaxGradEmitter {
  static void emitTerms(unsigned, ElementContext &Context) {
    Context.addTerm(Functor::Term(Context.operand(0), Context.operand(1)));
  }
  static void emitFinish(unsigned, ElementContext &Context) { Context.keep(Context.accumulated(0)); }
  static void emitElement(ElementContext &Context) {
    Context.setResult(0, Functor::Result(Context.operand(0), Context.operand(1), Context.kept(0)));
  }
};

#define MPC_EMIT_ROWS(Class, Emitter, Reductions)                                                                      \
  FusibleSpace Class::getSpace() { return rowSpace(*this, getAxis()); }                                                \
  SmallVector<Reduction> Class::getReductions() { return Reductions; }                                                 \
  void Class::emitTerms(unsigned Step, ElementContext &Context) { Emitter<scalar::Class>::emitTerms(Step, Context); }  \
  void Class::emitFinish(unsigned Step, ElementContext &Context) {                                                     \
    Emitter<scalar::Class>::emitFinish(Step, Context);                                                                 \
  }                                                                                                                    \
  void Class::emitElement(ElementContext &Context) { Emitter<scalar::Class>::emitElement(Context); }
MPC_EMIT_ROWS(SoftmaxOp, SoftmaxEmitter, maximumThenSum())
MPC_EMIT_ROWS(LogSoftmaxOp, SoftmaxEmitter, maximumThenSum())
MPC_EMIT_ROWS(SoftmaxGradOp, SoftmaxGradEmitter, (SmallVector<Reduction>{{Axis::Row, {Combine::Sum}}}))
MPC_EMIT_ROWS(LogSoftmaxGradOp, SoftmaxGradEmitter, (SmallVector<Reduction>{{Axis::Row, {Combine::Sum}}}))
#undef MPC_EMIT_ROWS

//===-- Cross-entropy --------------------------------------------------------------------------------------------===//

static Extent labelExtent(Value Labels) { return isFloating(Labels) ? Extent::Full : Extent::PerRow; }

FusibleSpace SoftmaxCrossEntropyOp::getSpace() {
  RankedTensorType Logits = tensorType(getLogits());
  Extent Loss = getReduction() == "none" ? Extent::PerRow : Extent::Single;
  return OperationSpace{Logits.getNumElements(),
                        Logits.getDimSize(1),
                        {Extent::Full, labelExtent(getLabels())},
                        {Loss, Extent::PerRow},
                        {3, 2}};
}

SmallVector<Reduction> SoftmaxCrossEntropyOp::getReductions() {
  SmallVector<Reduction> Steps = maximumThenSum();
  Steps.push_back({getReduction() == "none" ? Axis::Row : Axis::All, {Combine::Sum}});
  return Steps;
}

static Bool isOutside(Long Label, int64_t Classes) { return (Label < 0) | (Label >= Classes); }

/// Whether the element is that of the row's label; never where that is outside of the classes.
static Bool isLabel(ElementContext &Context, Long Label, int64_t Classes) {
  return Context.column() == Select(isOutside(Label, Classes), Unsigned(-1), Low(Label));
}

/// What one class adds to the loss of its row. Where the label is outside of the classes, that is NaN.
static Float sparseTerm(ElementContext &Context, int64_t Classes, Float Loss) {
  Long Label = Context.integerOperand(1);
  Float Other = Select(isOutside(Label, Classes), Float(std::numeric_limits<float>::quiet_NaN()), Float(0.0f));
  return Select(isLabel(Context, Label, Classes), Loss, Other);
}

void SoftmaxCrossEntropyOp::emitTerms(unsigned Step, ElementContext &Context) {
  if (Step < 2)
    return SoftmaxEmitter<scalar::LogSoftmaxOp>::emitTerms(Step, Context);
  Float Logit = Context.operand(0), LogSumExp = Context.kept(1);
  if (isFloating(getLabels()))
    Context.addTerm(scalar::CrossEntropyTerm(Context.operand(1), Logit, LogSumExp));
  else
    Context.addTerm(sparseTerm(Context, tensorType(getLogits()).getDimSize(1), LogSumExp - Logit));
}

void SoftmaxCrossEntropyOp::emitFinish(unsigned Step, ElementContext &Context) {
  Float Value = Context.accumulated(0);
  if (Step == 0)
    return Context.keep(Value);
  if (Step == 1) {
    Float LogSumExp = Context.kept(0) + scalar::LogSoftmaxOp::Normaliser(Value);
    Context.keep(LogSumExp);
    return Context.setResult(1, LogSumExp);
  }
  Context.setResult(0, Value / lossDivisor(getReduction(), Context.count(Axis::Column)));
}

void SoftmaxCrossEntropyOp::emitElement(ElementContext &) {}

FusibleSpace SoftmaxCrossEntropyGradOp::getSpace() {
  RankedTensorType Logits = tensorType(getLogits());
  Extent Loss = getReduction() == "none" ? Extent::PerRow : Extent::Single;
  return OperationSpace{Logits.getNumElements(),
                        Logits.getDimSize(1),
                        {Loss, Extent::Full, labelExtent(getLabels()), Extent::PerRow},
                        {Extent::Full},
                        {}};
}

// Dense labels are summed first; sparse ones are worth 1.
SmallVector<Reduction> SoftmaxCrossEntropyGradOp::getReductions() {
  if (!isFloating(getLabels()))
    return {};
  return {{Axis::Row, {Combine::Sum}}};
}

void SoftmaxCrossEntropyGradOp::emitTerms(unsigned, ElementContext &Context) { Context.addTerm(Context.operand(2)); }

void SoftmaxCrossEntropyGradOp::emitFinish(unsigned, ElementContext &Context) { Context.keep(Context.accumulated(0)); }

void SoftmaxCrossEntropyGradOp::emitElement(ElementContext &Context) {
  bool Dense = isFloating(getLabels());
  int64_t Classes = tensorType(getLogits()).getDimSize(1);
  Float Weight = Dense ? Context.operand(2)
                       : Select(isLabel(Context, Context.integerOperand(2), Classes), Float(1.0f), Float(0.0f));
  Float LabelSum = Dense ? Context.kept(0) : Float(1.0f);
  Float Cotangent = Context.operand(0) / lossDivisor(getReduction(), Context.count(Axis::Column));
  Context.setResult(0, Cotangent * scalar::CrossEntropySlope(Weight, Context.operand(1), Context.operand(3), LabelSum));
}

} // namespace mpc
