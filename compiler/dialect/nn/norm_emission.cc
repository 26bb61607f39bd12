// Layer normalisation over rows, batch normalisation over columns, with their gradients.
//
// emitFinish, which runs once a row or column, uses no operand: sums are formed so that it needs none.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/moments.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

static Float inverseDeviation(Float Variance, const APFloat &Epsilon) {
  return 1.0f / Sqrt(Variance + Epsilon.convertToFloat());
}

//===-- layer_norm -----------------------------------------------------------------------------------------------===//

// A space of rows as long as gamma.
static OperationSpace layerSpace(Value X, Value Gamma, ArrayRef<Extent> Operands, ArrayRef<Extent> Results,
                                 ArrayRef<unsigned> ReductionsBefore) {
  return OperationSpace{tensorType(X).getNumElements(), tensorType(Gamma).getNumElements(),
                        SmallVector<Extent, 4>(Operands), SmallVector<Extent, 2>(Results),
                        SmallVector<unsigned, 2>(ReductionsBefore)};
}

FusibleSpace LayerNormOp::getSpace() {
  return layerSpace(getX(), getGamma(), {Extent::Full, Extent::PerColumn, Extent::PerColumn},
                    {Extent::Full, Extent::PerRow, Extent::PerRow}, {2, 1, 2});
}

SmallVector<Reduction> LayerNormOp::getReductions() {
  return {{Axis::Row, {Combine::Sum}}, {Axis::Row, {Combine::Sum}}};
}

void LayerNormOp::emitTerms(unsigned Step, ElementContext &Context) {
  Float X = Context.operand(0);
  if (Step == 0)
    return Context.addTerm(X);
  Float Centred = X - Context.kept(0);
  Context.addTerm(Centred * Centred);
}

void LayerNormOp::emitFinish(unsigned Step, ElementContext &Context) {
  Float Mean = Context.accumulated(0) / static_cast<float>(Context.count(Axis::Row));
  Float Statistic = Step == 0 ? Mean : inverseDeviation(Mean, getEpsilon());
  Context.keep(Statistic);
  Context.setResult(Step + 1, Statistic);
}

void LayerNormOp::emitElement(ElementContext &Context) {
  Float Normal = (Context.operand(0) - Context.kept(0)) * Context.kept(1);
  Context.setResult(0, Normal * Context.operand(1) + Context.operand(2));
}

FusibleSpace LayerNormGradOp::getSpace() {
  return layerSpace(getX(), getGamma(), {Extent::Full, Extent::Full, Extent::PerColumn, Extent::PerRow, Extent::PerRow},
                    {Extent::Full, Extent::PerColumn, Extent::PerColumn}, {1, 2, 2});
}

// Sums of g = dy * gamma and g * (x - mean) along rows, for dx. Sums of dy * x_hat and dy along columns.
SmallVector<Reduction> LayerNormGradOp::getReductions() {
  return {{Axis::Row, {Combine::Sum, Combine::Sum}}, {Axis::Column, {Combine::Sum, Combine::Sum}}};
}

void LayerNormGradOp::emitTerms(unsigned Step, ElementContext &Context) {
  Float Dy = Context.operand(0), Centred = Context.operand(1) - Context.operand(3);
  if (Step == 0) {
    Float G = Dy * Context.operand(2);
    Context.addTerm(G);
    Context.addTerm(G * Centred);
  } else {
    Context.addTerm(Dy * (Centred * Context.operand(4)));
    Context.addTerm(Dy);
  }
}

void LayerNormGradOp::emitFinish(unsigned Step, ElementContext &Context) {
  for (unsigned Index = 0; Index < 2; ++Index) {
    Float Sum = Context.accumulated(Index);
    if (Step == 0)
      Context.keep(Sum / static_cast<float>(Context.count(Axis::Row)));
    else
      Context.setResult(Index + 1, Sum);
  }
}

void LayerNormGradOp::emitElement(ElementContext &Context) {
  Float InvStd = Context.operand(4);
  Float Slope = Context.kept(1) * InvStd * InvStd;
  Float Centred = Context.operand(1) - Context.operand(3);
  Context.setResult(0, InvStd * (Context.operand(0) * Context.operand(2) - Context.kept(0) - Centred * Slope));
}

//===-- batch_norm -----------------------------------------------------------------------------------------------===//

static FusibleSpace channelSpace(Operation *Op, Value X, StringRef DataFormat) {
  auto Channels = lastAxisChannels(Op, X, DataFormat);
  if (!Channels)
    return Channels.takeError();
  OperationSpace Space;
  Space.elements = tensorType(X).getNumElements();
  Space.columns = *Channels;
  auto ExtentOf = [&](Value V) {
    return tensorType(V).getShape() == tensorType(X).getShape() ? Extent::Full : Extent::PerColumn;
  };
  llvm::append_range(Space.operands, llvm::map_range(Op->getOperands(), ExtentOf));
  llvm::append_range(Space.results, llvm::map_range(Op->getResults(), ExtentOf));
  return Space;
}

FusibleSpace BatchNormTrainOp::getSpace() { return channelSpace(*this, getX(), getDataFormat()); }

SmallVector<Reduction> BatchNormTrainOp::getReductions() {
  return {{Axis::Column, {Combine::SumF64, Combine::SquaresF64}}};
}

void BatchNormTrainOp::emitTerms(unsigned, ElementContext &Context) {
  Context.addTerm(Context.operand(0));
  Context.addTerm(Context.operand(0));
}

void BatchNormTrainOp::emitFinish(unsigned, ElementContext &Context) {
  auto Moments = scalar::Moments<Float>::FromSums(Context.accumulatedF64(0), Context.accumulatedF64(1),
                                                  static_cast<double>(Context.count(Axis::Column)));
  Float InvStd = inverseDeviation(Moments.variance, getEpsilon());
  Context.keep(Moments.mean);
  Context.keep(InvStd);
  Context.setResult(1, Moments.mean);
  Context.setResult(2, Moments.variance);
  Context.setResult(3, InvStd);
}

void BatchNormTrainOp::emitElement(ElementContext &Context) {
  Float Scale = Context.kept(1) * Context.operand(1);
  Context.setResult(0, (Context.operand(0) - Context.kept(0)) * Scale + Context.operand(2));
}

FusibleSpace BatchNormTrainGradOp::getSpace() { return channelSpace(*this, getX(), getDataFormat()); }

// Sums of dy * x_hat and dy.
SmallVector<Reduction> BatchNormTrainGradOp::getReductions() { return {{Axis::Column, {Combine::Sum, Combine::Sum}}}; }

static Float normalised(ElementContext &Context) {
  return (Context.operand(1) - Context.operand(3)) * Context.operand(4);
}

void BatchNormTrainGradOp::emitTerms(unsigned, ElementContext &Context) {
  Float Dy = Context.operand(0);
  Context.addTerm(Dy * normalised(Context));
  Context.addTerm(Dy);
}

void BatchNormTrainGradOp::emitFinish(unsigned, ElementContext &Context) {
  for (unsigned Index = 0; Index < 2; ++Index) {
    Float Sum = Context.accumulated(Index);
    Context.setResult(Index + 1, Sum);
    Context.keep(Sum / static_cast<float>(Context.count(Axis::Column)));
  }
}

void BatchNormTrainGradOp::emitElement(ElementContext &Context) {
  Float Scale = Context.operand(2) * Context.operand(4);
  Context.setResult(0, Scale * (Context.operand(0) - Context.kept(1) - normalised(Context) * Context.kept(0)));
}

FusibleSpace BatchNormInferOp::getSpace() { return channelSpace(*this, getX(), getDataFormat()); }

void BatchNormInferOp::emitElement(ElementContext &Context) {
  Float Scale = Context.operand(1) / Sqrt(Context.operand(4) + getEpsilon().convertToFloat());
  Context.setResult(0, (Context.operand(0) - Context.operand(3)) * Scale + Context.operand(2));
}

FusibleSpace BatchNormInferGradOp::getSpace() {
  FusibleSpace Space = channelSpace(*this, getX(), getDataFormat());
  if (Space)
    Space->reductionsBefore = {0, 1, 1};
  return Space;
}

// Sums of dy * x_hat and dy.
SmallVector<Reduction> BatchNormInferGradOp::getReductions() { return {{Axis::Column, {Combine::Sum, Combine::Sum}}}; }

void BatchNormInferGradOp::emitTerms(unsigned, ElementContext &Context) {
  Float Dy = Context.operand(0);
  Float InvStd = inverseDeviation(Context.operand(4), getEpsilon());
  Context.addTerm(Dy * ((Context.operand(1) - Context.operand(3)) * InvStd));
  Context.addTerm(Dy);
}

void BatchNormInferGradOp::emitFinish(unsigned, ElementContext &Context) {
  for (unsigned Index = 0; Index < 2; ++Index)
    Context.setResult(Index + 1, Context.accumulated(Index));
}

void BatchNormInferGradOp::emitElement(ElementContext &Context) {
  Context.setResult(0, Context.operand(0) * (Context.operand(2) * inverseDeviation(Context.operand(4), getEpsilon())));
}

} // namespace mpc
