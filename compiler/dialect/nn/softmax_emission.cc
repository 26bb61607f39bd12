// softmax, log_softmax and their gradients along the last axis; softmax_cross_entropy and its gradient.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/losses.h"
#include "kernels/scalar/softmax.h"

#include <limits>

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

static FusibleSpace rowSpace(Operation *op, int64_t axis) {
  auto columns = lastAxisLength(op, op->getOperand(0), axis);
  if (!columns)
    return columns.takeError();
  SmallVector<Extent, 4> operands(op->getNumOperands(), Extent::Full);
  return OperationSpace{tensorType(op->getOperand(0)).getNumElements(), *columns, operands, {Extent::Full}, {}};
}

//===-- softmax --------------------------------------------------------------------------------------------------===//

static SmallVector<Reduction> maximumThenSum() { return {{Axis::Row, {Combine::MaxNum}}, {Axis::Row, {Combine::Sum}}}; }

static SmallVector<Reduction> sumAlone() { return {{Axis::Row, {Combine::Sum}}}; }

// Keeps the row's maximum, then what Functor makes of the sum of exp(x - maximum).
template <typename Functor> struct SoftmaxEmitter {
  static Float shifted(ElementContext &context) { return context.operand(0) - context.kept(0); }
  static void emitTerms(unsigned step, ElementContext &context) {
    context.addTerm(step == 0 ? context.operand(0) : scalar::SoftmaxTerm(shifted(context)));
  }
  static void emitFinish(unsigned step, ElementContext &context) {
    Float value = context.accumulated(0);
    context.keep(step == 0 ? value : Functor::Normaliser(value));
  }
  static void emitElement(ElementContext &context) {
    context.setResult(0, Functor::Result(shifted(context), context.kept(1)));
  }
};

// Its results are the terms of its sum, too, times what is kept.
struct SharesEmitter : SoftmaxEmitter<scalar::SoftmaxOp> {
  static Float term(ElementContext &context) {
    return context.once([&] { return scalar::SoftmaxTerm(shifted(context)); });
  }
  static void emitTerms(unsigned step, ElementContext &context) {
    context.addTerm(step == 0 ? context.operand(0) : term(context));
  }
  static void emitElement(ElementContext &context) {
    context.setResult(0, scalar::SoftmaxOp::Share(term(context), context.kept(1)));
  }
};

template <typename Functor> struct SoftmaxGradEmitter {
  static void emitTerms(unsigned, ElementContext &context) {
    context.addTerm(Functor::Term(context.operand(0), context.operand(1)));
  }
  static void emitFinish(unsigned, ElementContext &context) { context.keep(context.accumulated(0)); }
  static void emitElement(ElementContext &context) {
    context.setResult(0, Functor::Result(context.operand(0), context.operand(1), context.kept(0)));
  }
};

#define MPC_EMIT_ROWS(Class, Emitter, Reductions)                                                                      \
  FusibleSpace Class::getSpace() { return rowSpace(*this, getAxis()); }                                                \
  SmallVector<Reduction> Class::getReductions() { return Reductions; }                                                 \
  void Class::emitTerms(unsigned step, ElementContext &context) { Emitter::emitTerms(step, context); }                 \
  void Class::emitFinish(unsigned step, ElementContext &context) { Emitter::emitFinish(step, context); }               \
  void Class::emitElement(ElementContext &context) { Emitter::emitElement(context); }
MPC_EMIT_ROWS(SoftmaxOp, SharesEmitter, maximumThenSum())
MPC_EMIT_ROWS(LogSoftmaxOp, SoftmaxEmitter<scalar::LogSoftmaxOp>, maximumThenSum())
MPC_EMIT_ROWS(SoftmaxGradOp, SoftmaxGradEmitter<scalar::SoftmaxGradOp>, sumAlone())
MPC_EMIT_ROWS(LogSoftmaxGradOp, SoftmaxGradEmitter<scalar::LogSoftmaxGradOp>, sumAlone())
#undef MPC_EMIT_ROWS

//===-- Cross-entropy --------------------------------------------------------------------------------------------===//

static Extent labelExtent(Value labels) { return isFloating(labels) ? Extent::Full : Extent::PerRow; }

static Extent lossExtent(LossReduction reduction) {
  return reduction == LossReduction::kNone ? Extent::PerRow : Extent::Single;
}

// A space with a row for each of the logits' samples and a column for each class.
static OperationSpace classSpace(Value logits, ArrayRef<Extent> operands, ArrayRef<Extent> results) {
  RankedTensorType type = tensorType(logits);
  return OperationSpace{
      type.getNumElements(), type.getDimSize(1), SmallVector<Extent, 4>(operands), SmallVector<Extent, 2>(results), {}};
}

FusibleSpace SoftmaxCrossEntropyOp::getSpace() {
  OperationSpace space =
      classSpace(getLogits(), {Extent::Full, labelExtent(getLabels())}, {lossExtent(getReduction()), Extent::PerRow});
  space.reductionsBefore = {3, 2};
  return space;
}

SmallVector<Reduction> SoftmaxCrossEntropyOp::getReductions() {
  SmallVector<Reduction> steps = maximumThenSum();
  steps.push_back({getReduction() == LossReduction::kNone ? Axis::Row : Axis::All, {Combine::Sum}});
  return steps;
}

/// Whether rows of the logits are longer than the operation's classes.
template <typename Op> static bool isPadded(Op op) {
  return op.countClasses() < tensorType(op.getLogits()).getDimSize(1);
}

/// \p there at an element that is one of the operation's classes, \p behind at those behind them. It is chosen, never
/// multiplied: what lies behind the classes may be anything.
template <typename Op> static Float ofClass(Op op, ElementContext &context, Float there, Float behind) {
  return isPadded(op) ? Select(context.column() < Unsigned(op.countClasses()), there, behind) : there;
}

static Bool isOutside(Long label, int64_t classes) { return (label < 0) | (label >= classes); }

/// The term that one class adds to the loss of its row. The label's class adds the whole loss; the others add -0, which
/// changes no sum. Where the label is outside of the classes, the loss is NaN, and the first class adds it.
static Float sparseTerm(ElementContext &context, int64_t classes, Float logit, Float logSumExp) {
  Long label = context.integerOperand(1);
  Bool outside = isOutside(label, classes);
  Float from = Select(outside, Float(std::numeric_limits<float>::quiet_NaN()), logSumExp);
  return context.atColumn(Select(outside, Unsigned(std::int64_t{0}), Low(label)), from - logit, -0.0f);
}

/// The probability of a class less its label's weight, 1 or 0; where that is outside of the classes, of all 0.
static Float sparseSlope(ElementContext &context, int64_t classes, Float probability) {
  Long label = context.integerOperand(2);
  Unsigned column = Select(isOutside(label, classes), Unsigned(-1), Low(label));
  return context.atColumn(column, probability - 1.0f, probability);
}

void SoftmaxCrossEntropyOp::emitTerms(unsigned step, ElementContext &context) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Float logit = context.operand(0);
  if (step == 0)
    return context.addTerm(ofClass(*this, context, logit, -kInfinity));
  if (step == 1)
    return context.addTerm(ofClass(*this, context, scalar::SoftmaxTerm(logit - context.kept(0)), 0.0f));
  Float logSumExp = context.kept(1);
  if (isFloating(getLabels()))
    context.addTerm(scalar::CrossEntropyTerm(context.operand(1), logit, logSumExp));
  else
    context.addTerm(sparseTerm(context, countClasses(), logit, logSumExp));
}

void SoftmaxCrossEntropyOp::emitFinish(unsigned step, ElementContext &context) {
  Float value = context.accumulated(0);
  if (step == 0)
    return context.keep(value);
  if (step == 1) {
    Float logSumExp = context.kept(0) + scalar::LogSoftmaxOp::Normaliser(value);
    context.keep(logSumExp);
    return context.setResult(1, logSumExp);
  }
  context.setResult(0, value / lossDivisor(getReduction(), context.count(Axis::Column)));
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

void SoftmaxCrossEntropyGradOp::emitTerms(unsigned, ElementContext &context) { context.addTerm(context.operand(2)); }

void SoftmaxCrossEntropyGradOp::emitFinish(unsigned, ElementContext &context) { context.keep(context.accumulated(0)); }

/// exp(logit - log_sum_exp). In the region that computes it of the same logits, log_sum_exp is in no f32 below the
/// largest.
static Float probability(SoftmaxCrossEntropyGradOp op, ElementContext &context) {
  auto loss = op.getLogSumExp().getDefiningOp<SoftmaxCrossEntropyOp>();
  Float shifted = context.operand(1) - context.operand(3);
  return loss && loss.getLogits() == op.getLogits() ? scalar::SoftmaxTerm(shifted) : scalar::ShareExp(shifted);
}

void SoftmaxCrossEntropyGradOp::emitElement(ElementContext &context) {
  Float slope = 0.0f;
  if (isFloating(getLabels()))
    slope = scalar::CrossEntropySlope(context.operand(2), probability(*this, context), context.kept(0));
  else
    slope = sparseSlope(context, countClasses(), probability(*this, context));
  Float cotangent = context.operand(0) / lossDivisor(getReduction(), context.count(Axis::Column));
  context.setResult(0, ofClass(*this, context, cotangent * slope, 0.0f));
}

} // namespace mpc
