// Layer normalisation over rows, batch normalisation over columns, with their gradients.
//
// emitFinish, which runs once a row or column, uses no operand: sums are formed so that it needs none.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/moments.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

static Float inverseDeviation(Float variance, const APFloat &epsilon) {
  return 1.0f / Sqrt(variance + epsilon.convertToFloat());
}

//===-- layer_norm -----------------------------------------------------------------------------------------------===//

// A space of rows as long as gamma.
static OperationSpace layerSpace(Value x, Value gamma, ArrayRef<Extent> operands, ArrayRef<Extent> results,
                                 ArrayRef<unsigned> reductionsBefore) {
  return OperationSpace{tensorType(x).getNumElements(), tensorType(gamma).getNumElements(),
                        SmallVector<Extent, 4>(operands), SmallVector<Extent, 2>(results),
                        SmallVector<unsigned, 2>(reductionsBefore)};
}

FusibleSpace LayerNormOp::getSpace() {
  return layerSpace(getX(), getGamma(), {Extent::Full, Extent::PerColumn, Extent::PerColumn},
                    {Extent::Full, Extent::PerRow, Extent::PerRow}, {2, 1, 2});
}

SmallVector<Reduction> LayerNormOp::getReductions() {
  return {{Axis::Row, {Combine::Sum}}, {Axis::Row, {Combine::Sum}}};
}

void LayerNormOp::emitTerms(unsigned step, ElementContext &context) {
  Float x = context.operand(0);
  if (step == 0)
    return context.addTerm(x);
  Float centred = x - context.kept(0);
  context.addTerm(centred * centred);
}

void LayerNormOp::emitFinish(unsigned step, ElementContext &context) {
  Float mean = context.accumulated(0) / static_cast<float>(context.count(Axis::Row));
  Float statistic = step == 0 ? mean : inverseDeviation(mean, getEpsilon());
  context.keep(statistic);
  context.setResult(step + 1, statistic);
}

void LayerNormOp::emitElement(ElementContext &context) {
  Float normal = (context.operand(0) - context.kept(0)) * context.kept(1);
  context.setResult(0, normal * context.operand(1) + context.operand(2));
}

FusibleSpace LayerNormGradOp::getSpace() {
  return layerSpace(getX(), getGamma(), {Extent::Full, Extent::Full, Extent::PerColumn, Extent::PerRow, Extent::PerRow},
                    {Extent::Full, Extent::PerColumn, Extent::PerColumn}, {1, 2, 2});
}

// Sums of g = dy * gamma and g * (x - mean) along rows, for dx. Sums of dy * x_hat and dy along columns.
SmallVector<Reduction> LayerNormGradOp::getReductions() {
  return {{Axis::Row, {Combine::Sum, Combine::Sum}}, {Axis::Column, {Combine::Sum, Combine::Sum}}};
}

void LayerNormGradOp::emitTerms(unsigned step, ElementContext &context) {
  Float dy = context.operand(0), centred = context.operand(1) - context.operand(3);
  if (step == 0) {
    Float g = dy * context.operand(2);
    context.addTerm(g);
    context.addTerm(g * centred);
  } else {
    context.addTerm(dy * (centred * context.operand(4)));
    context.addTerm(dy);
  }
}

void LayerNormGradOp::emitFinish(unsigned step, ElementContext &context) {
  for (unsigned index = 0; index < 2; ++index) {
    Float sum = context.accumulated(index);
    if (step == 0)
      context.keep(sum / static_cast<float>(context.count(Axis::Row)));
    else
      context.setResult(index + 1, sum);
  }
}

void LayerNormGradOp::emitElement(ElementContext &context) {
  Float invStd = context.operand(4);
  Float slope = context.kept(1) * invStd * invStd;
  Float centred = context.operand(1) - context.operand(3);
  context.setResult(0, invStd * (context.operand(0) * context.operand(2) - context.kept(0) - centred * slope));
}

//===-- batch_norm -----------------------------------------------------------------------------------------------===//

static FusibleSpace channelSpace(Operation *op, Value x, DataFormat dataFormat) {
  auto channels = lastAxisChannels(op, x, dataFormat);
  if (!channels)
    return channels.takeError();
  OperationSpace space;
  space.elements = tensorType(x).getNumElements();
  space.columns = *channels;
  auto extentOf = [&](Value v) {
    return tensorType(v).getShape() == tensorType(x).getShape() ? Extent::Full : Extent::PerColumn;
  };
  llvm::append_range(space.operands, llvm::map_range(op->getOperands(), extentOf));
  llvm::append_range(space.results, llvm::map_range(op->getResults(), extentOf));
  return space;
}

FusibleSpace BatchNormTrainOp::getSpace() { return channelSpace(*this, getX(), getDataFormat()); }

SmallVector<Reduction> BatchNormTrainOp::getReductions() {
  return {{Axis::Column, {Combine::SumF64, Combine::SquaresF64}}};
}

void BatchNormTrainOp::emitTerms(unsigned, ElementContext &context) {
  context.addTerm(context.operand(0));
  context.addTerm(context.operand(0));
}

void BatchNormTrainOp::emitFinish(unsigned, ElementContext &context) {
  auto moments = scalar::Moments<Float>::FromSums(context.accumulatedF64(0), context.accumulatedF64(1),
                                                  static_cast<double>(context.count(Axis::Column)));
  Float invStd = inverseDeviation(moments.variance, getEpsilon());
  context.keep(moments.mean);
  context.keep(invStd);
  context.setResult(1, moments.mean);
  context.setResult(2, moments.variance);
  context.setResult(3, invStd);
}

// Of operands x, gamma and beta.
static void applyStatistics(ElementContext &context, const Float &mean, const Float &invStd) {
  context.setResult(0, (context.operand(0) - mean) * (invStd * context.operand(1)) + context.operand(2));
}

void BatchNormTrainOp::emitElement(ElementContext &context) {
  applyStatistics(context, context.kept(0), context.kept(1));
}

FusibleSpace BatchNormApplyOp::getSpace() { return channelSpace(*this, getX(), getDataFormat()); }

void BatchNormApplyOp::emitElement(ElementContext &context) {
  applyStatistics(context, context.operand(3), context.operand(4));
}

FusibleSpace BatchNormTrainGradOp::getSpace() { return channelSpace(*this, getX(), getDataFormat()); }

// Sums of dy * x_hat and dy.
SmallVector<Reduction> BatchNormTrainGradOp::getReductions() { return {{Axis::Column, {Combine::Sum, Combine::Sum}}}; }

static Float normalised(ElementContext &context) {
  return (context.operand(1) - context.operand(3)) * context.operand(4);
}

void BatchNormTrainGradOp::emitTerms(unsigned, ElementContext &context) {
  Float dy = context.operand(0);
  context.addTerm(dy * normalised(context));
  context.addTerm(dy);
}

void BatchNormTrainGradOp::emitFinish(unsigned, ElementContext &context) {
  for (unsigned index = 0; index < 2; ++index) {
    Float sum = context.accumulated(index);
    context.setResult(index + 1, sum);
    context.keep(sum / static_cast<float>(context.count(Axis::Column)));
  }
}

void BatchNormTrainGradOp::emitElement(ElementContext &context) {
  Float scale = context.operand(2) * context.operand(4);
  context.setResult(0, scale * (context.operand(0) - context.kept(1) - normalised(context) * context.kept(0)));
}

FusibleSpace BatchNormInferOp::getSpace() { return channelSpace(*this, getX(), getDataFormat()); }

void BatchNormInferOp::emitElement(ElementContext &context) {
  Float scale = context.operand(1) / Sqrt(context.operand(4) + getEpsilon().convertToFloat());
  context.setResult(0, (context.operand(0) - context.operand(3)) * scale + context.operand(2));
}

FusibleSpace BatchNormInferGradOp::getSpace() {
  FusibleSpace space = channelSpace(*this, getX(), getDataFormat());
  if (space)
    space->reductionsBefore = {0, 1, 1};
  return space;
}

// Sums of dy * x_hat and dy.
SmallVector<Reduction> BatchNormInferGradOp::getReductions() { return {{Axis::Column, {Combine::Sum, Combine::Sum}}}; }

void BatchNormInferGradOp::emitTerms(unsigned, ElementContext &context) {
  Float dy = context.operand(0);
  Float invStd = inverseDeviation(context.operand(4), getEpsilon());
  context.addTerm(dy * ((context.operand(1) - context.operand(3)) * invStd));
  context.addTerm(dy);
}

void BatchNormInferGradOp::emitFinish(unsigned, ElementContext &context) {
  for (unsigned index = 0; index < 2; ++index)
    context.setResult(index + 1, context.accumulated(index));
}

void BatchNormInferGradOp::emitElement(ElementContext &context) {
  context.setResult(0, context.operand(0) * (context.operand(2) * inverseDeviation(context.operand(4), getEpsilon())));
}

} // namespace mpc
