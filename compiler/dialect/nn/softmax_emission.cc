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

static SmallVector<Reduction> maximumThenSum() { return {{Axis::Row, {Combine::MaxNum}}, {Axis::Row, {Combine::Sum}}}; }

static SmallVector<Reduction> sumAlone() { return {{Axis::Row, {Combine::Sum}}}; }

// Keeps the row's maximum, then what Functor makes of the sum of exp(x - maximum).
template <typename Functor> struct SoftmaxEmitter {
  static Float shifted(ElementContext &Context) { return Context.operand(0) - Context.kept(0); }
  static void emitTerms(unsigned Step, ElementContext &Context) {
    Context.addTerm(Step == 0 ? Context.operand(0) : scalar::SoftmaxTerm(shifted(Context)));
  }
  static void emitFinish(unsigned Step, ElementContext &Context) {
    Float Value = Context.accumulated(0);
    Context.keep(Step == 0 ? Value : Functor::Normaliser(Value));
  }
  static void emitElement(ElementContext &Context) {
    Context.setResult(0, Functor::Result(shifted(Context), Context.kept(1)));
  }
};

// Its results are the terms of its sum, too, times what is kept.
struct SharesEmitter : SoftmaxEmitter<scalar::SoftmaxOp> {
  static Float term(ElementContext &Context) {
    return Context.once([&] { return scalar::SoftmaxTerm(shifted(Context)); });
  }
  static void emitTerms(unsigned Step, ElementContext &Context) {
    Context.addTerm(Step == 0 ? Context.operand(0) : term(Context));
  }
  static void emitElement(ElementContext &Context) {
    Context.setResult(0, scalar::SoftmaxOp::Share(term(Context), Context.kept(1)));
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
  void Class::emitTerms(unsigned Step, ElementContext &Context) { Emitter::emitTerms(Step, Context); }                 \
  void Class::emitFinish(unsigned Step, ElementContext &Context) { Emitter::emitFinish(Step, Context); }               \
  void Class::emitElement(ElementContext &Context) { Emitter::emitElement(Context); }
MPC_EMIT_ROWS(SoftmaxOp, SharesEmitter, maximumThenSum())
MPC_EMIT_ROWS(LogSoftmaxOp, SoftmaxEmitter<scalar::LogSoftmaxOp>, maximumThenSum())
MPC_EMIT_ROWS(SoftmaxGradOp, SoftmaxGradEmitter<scalar::SoftmaxGradOp>, sumAlone())
MPC_EMIT_ROWS(LogSoftmaxGradOp, SoftmaxGradEmitter<scalar::LogSoftmaxGradOp>, sumAlone())
#undef MPC_EMIT_ROWS

//===-- Cross-entropy --------------------------------------------------------------------------------------------===//

static Extent labelExtent(Value Labels) { return isFloating(Labels) ? Extent::Full : Extent::PerRow; }

static Extent lossExtent(StringRef Reduction) { return Reduction == "none" ? Extent::PerRow : Extent::Single; }

// A space with a row for each of the logits' samples and a column for each class.
static OperationSpace classSpace(Value Logits, ArrayRef<Extent> Operands, ArrayRef<Extent> Results) {
  RankedTensorType Type = tensorType(Logits);
  return OperationSpace{
      Type.getNumElements(), Type.getDimSize(1), SmallVector<Extent, 4>(Operands), SmallVector<Extent, 2>(Results), {}};
}

FusibleSpace SoftmaxCrossEntropyOp::getSpace() {
  OperationSpace Space =
      classSpace(getLogits(), {Extent::Full, labelExtent(getLabels())}, {lossExtent(getReduction()), Extent::PerRow});
  Space.reductionsBefore = {3, 2};
  return Space;
}

SmallVector<Reduction> SoftmaxCrossEntropyOp::getReductions() {
  SmallVector<Reduction> Steps = maximumThenSum();
  Steps.push_back({getReduction() == "none" ? Axis::Row : Axis::All, {Combine::Sum}});
  return Steps;
}

static Bool isOutside(Long Label, int64_t Classes) { return (Label < 0) | (Label >= Classes); }

/// The term that one class adds to the loss of its row. The label's class adds the whole loss; the others add -0, which
/// changes no sum. Where the label is outside of the classes, the loss is NaN, and the first class adds it.
static Float sparseTerm(ElementContext &Context, int64_t Classes, Float Logit, Float LogSumExp) {
  Long Label = Context.integerOperand(1);
  Bool Outside = isOutside(Label, Classes);
  Float From = Select(Outside, Float(std::numeric_limits<float>::quiet_NaN()), LogSumExp);
  return Context.atColumn(Select(Outside, Unsigned(std::int64_t{0}), Low(Label)), From - Logit, -0.0f);
}

/// The probability of a class less its label's weight, 1 or 0; where that is outside of the classes, of all 0.
static Float sparseSlope(ElementContext &Context, int64_t Classes, Float Probability) {
  Long Label = Context.integerOperand(2);
  Unsigned Column = Select(isOutside(Label, Classes), Unsigned(-1), Low(Label));
  return Context.atColumn(Column, Probability - 1.0f, Probability);
}

void SoftmaxCrossEntropyOp::emitTerms(unsigned Step, ElementContext &Context) {
  if (Step < 2)
    return SoftmaxEmitter<scalar::LogSoftmaxOp>::emitTerms(Step, Context);
  Float Logit = Context.operand(0), LogSumExp = Context.kept(1);
  if (isFloating(getLabels()))
    Context.addTerm(scalar::CrossEntropyTerm(Context.operand(1), Logit, LogSumExp));
  else
    Context.addTerm(sparseTerm(Context, tensorType(getLogits()).getDimSize(1), Logit, LogSumExp));
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
  return classSpace(getLogits(), {lossExtent(getReduction()), Extent::Full, labelExtent(getLabels()), Extent::PerRow},
                    {Extent::Full});
}

// Dense labels are summed first; sparse ones are worth 1.
SmallVector<Reduction> SoftmaxCrossEntropyGradOp::getReductions() {
  if (!isFloating(getLabels()))
    return {};
  return sumAlone();
}

void SoftmaxCrossEntropyGradOp::emitTerms(unsigned, ElementContext &Context) { Context.addTerm(Context.operand(2)); }

void SoftmaxCrossEntropyGradOp::emitFinish(unsigned, ElementContext &Context) { Context.keep(Context.accumulated(0)); }

/// exp(logit - log_sum_exp). In the region that computes it of the same logits, log_sum_exp is in no f32 below the
/// largest.
static Float probability(SoftmaxCrossEntropyGradOp Op, ElementContext &Context) {
  auto Loss = Op.getLogSumExp().getDefiningOp<SoftmaxCrossEntropyOp>();
  Float Shifted = Context.operand(1) - Context.operand(3);
  return Loss && Loss.getLogits() == Op.getLogits() ? scalar::SoftmaxTerm(Shifted) : scalar::ShareExp(Shifted);
}

void SoftmaxCrossEntropyGradOp::emitElement(ElementContext &Context) {
  Float Slope = 0.0f;
  if (isFloating(getLabels()))
    Slope = scalar::CrossEntropySlope(Context.operand(2), probability(*this, Context), Context.kept(0));
  else
    Slope = sparseSlope(Context, tensorType(getLogits()).getDimSize(1), probability(*this, Context));
  Float Cotangent = Context.operand(0) / lossDivisor(getReduction(), Context.count(Axis::Column));
  Context.setResult(0, Cotangent * Slope);
}

} // namespace mpc
