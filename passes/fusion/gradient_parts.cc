#include "passes/fusion/gradient_parts.h"

using namespace mlir;

namespace mpc {

static int64_t elementsOf(Value V) { return cast<RankedTensorType>(V.getType()).getNumElements(); }

// Whether an element of the gradient is an element of a region's space. An operation that reduces something larger
// gives its value after a combination, and no sweep over the gradient follows. To reduce the gradient as well would
// take one more launch, for a value a row or column.
static bool isElementOfRegion(Value Gradient) {
  Operation *Producer = behindViews(Gradient).getDefiningOp();
  if (!isa_and_nonnull<FusibleOpInterface>(Producer))
    return false;
  return llvm::all_of(Producer->getOperands(),
                      [&](Value Operand) { return elementsOf(Operand) <= elementsOf(Gradient); });
}

// Right behind the gradient, so that the region does not keep what it reads for longer.
static void placeBehind(OpBuilder &Builder, Value Gradient, Value Scale) {
  Builder.setInsertionPointAfterValue(Gradient);
  Operation *Given = Scale ? Scale.getDefiningOp() : nullptr;
  if (Given && !Given->isBeforeInBlock(&*std::prev(Builder.getInsertionPoint())))
    Builder.setInsertionPointAfter(Given);
}

GradientParts::GradientParts(Block &Body) {
  for (Operation &Op : llvm::make_early_inc_range(Body)) {
    if (auto Check = dyn_cast<AllFiniteOp>(Op))
      split(Check);
    else if (auto Norm = dyn_cast<GlobalNormOp>(Op))
      split(Norm);
  }
}

void GradientParts::split(AllFiniteOp Check) {
  OpBuilder Builder(Check);
  bool Splits = false;
  for (OpOperand &Operand : Check.getGradientsMutable()) {
    // A flag stands for what others have checked.
    if (getElementTypeOrSelf(Operand.get().getType()).isInteger(1) || !isElementOfRegion(Operand.get()))
      continue;
    placeBehind(Builder, Operand.get(), Check.getScale());
    auto Flag = RankedTensorType::get({}, Builder.getI1Type());
    Operand.set(CheckFiniteOp::create(Builder, Check.getLoc(), Flag, Operand.get(), Check.getScale()));
    Splits = true;
  }
  if (Splits)
    Checks.push_back(Check);
}

// The norm of \p Gradients, then \p Sums, in the place of \p Norm.
static GlobalNormOp replaceNorm(GlobalNormOp Norm, ArrayRef<Value> Gradients, ArrayRef<Value> Sums) {
  SmallVector<Value> Operands;
  if (Value Scale = Norm.getScale())
    Operands.push_back(Scale);
  llvm::append_range(Operands, Gradients);
  llvm::append_range(Operands, Sums);
  OpBuilder Builder(Norm);
  auto New = GlobalNormOp::create(Builder, Norm.getLoc(), Norm->getResultTypes(), Operands, Norm->getAttrs());
  New.setSums(static_cast<int64_t>(Sums.size()));
  Norm->replaceAllUsesWith(New);
  Norm.erase();
  return New;
}

void GradientParts::split(GlobalNormOp Norm) {
  // A norm that was split before has no gradient of a region left.
  if (Norm.getSums() != 0)
    return;
  OpBuilder Builder(Norm);
  SmallVector<Value> Gradients, Sums;
  SplitNorm Split;
  for (auto [Place, Gradient] : llvm::enumerate(Norm.getGradients())) {
    if (!isElementOfRegion(Gradient)) {
      Gradients.push_back(Gradient);
      continue;
    }
    placeBehind(Builder, Gradient, Norm.getScale());
    auto Sum = RankedTensorType::get({}, Builder.getF64Type());
    Sums.push_back(SumOfSquaresOp::create(Builder, Norm.getLoc(), Sum, Gradient, Norm.getScale()));
    Split.Places.push_back(Place);
  }
  if (Sums.empty())
    return;
  Split.Norm = replaceNorm(Norm, Gradients, Sums);
  Norms.push_back(std::move(Split));
}

void GradientParts::joinLeftOver() {
  for (AllFiniteOp Check : Checks)
    join(Check);
  for (const SplitNorm &Split : Norms)
    join(Split);
}

void GradientParts::join(AllFiniteOp Check) {
  for (OpOperand &Operand : Check.getGradientsMutable())
    if (auto Part = Operand.get().getDefiningOp<CheckFiniteOp>(); Part && Part.getScale() == Check.getScale()) {
      Operand.set(Part.getGradient());
      Part.erase();
    }
}

void GradientParts::join(const SplitNorm &Split) {
  GlobalNormOp Norm = Split.Norm;
  OperandRange Whole = Norm.getGradients(), Parts = Norm.getInputs().take_back(Norm.getSums());
  SmallVector<Value> Gradients, Sums;
  SmallVector<SumOfSquaresOp> LeftOver;
  size_t NextWhole = 0, NextPart = 0;
  for (size_t Place = 0; Place < Whole.size() + Parts.size(); ++Place) {
    bool IsPart = NextPart < Split.Places.size() && Split.Places[NextPart] == Place;
    Value V = IsPart ? Parts[NextPart++] : Whole[NextWhole++];
    auto Alone = IsPart ? V.getDefiningOp<SumOfSquaresOp>() : SumOfSquaresOp();
    if (Alone)
      LeftOver.push_back(Alone);
    (IsPart && !Alone ? Sums : Gradients).push_back(Alone ? Alone.getGradient() : V);
  }
  replaceNorm(Norm, Gradients, Sums);
  for (SumOfSquaresOp Part : LeftOver)
    Part.erase();
}

} // namespace mpc
