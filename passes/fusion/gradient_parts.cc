#include "passes/fusion/gradient_parts.h"

#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

// Whether an element of the gradient is an element of a region's space. An operation that reduces something larger
// gives its value after a combination, and no sweep over the gradient follows. To reduce the gradient as well would
// take one more launch, for a value a row or column.
static bool isElementOfRegion(Value gradient) {
  Operation *producer = behindViews(gradient).getDefiningOp();
  if (!isa_and_nonnull<FusibleOpInterface>(producer))
    return false;
  return llvm::all_of(producer->getOperands(),
                      [&](Value operand) { return elementCount(operand) <= elementCount(gradient); });
}

// Right behind the gradient, so that the region does not keep what it reads for longer.
static void placeBehind(OpBuilder &builder, Value gradient, Value scale) {
  builder.setInsertionPointAfterValue(gradient);
  Operation *given = scale ? scale.getDefiningOp() : nullptr;
  if (given && !given->isBeforeInBlock(&*std::prev(builder.getInsertionPoint())))
    builder.setInsertionPointAfter(given);
}

GradientParts::GradientParts(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (auto check = dyn_cast<AllFiniteOp>(op))
      split(check);
    else if (auto norm = dyn_cast<GlobalNormOp>(op))
      split(norm);
  }
}

void GradientParts::split(AllFiniteOp check) {
  OpBuilder builder(check);
  bool splits = false;
  for (OpOperand &operand : check.getGradientsMutable()) {
    // A flag stands for what others have checked.
    if (getElementTypeOrSelf(operand.get().getType()).isInteger(1) || !isElementOfRegion(operand.get()))
      continue;
    placeBehind(builder, operand.get(), check.getScale());
    auto flag = RankedTensorType::get({}, builder.getI1Type());
    operand.set(CheckFiniteOp::create(builder, check.getLoc(), flag, operand.get(), check.getScale()));
    splits = true;
  }
  if (splits)
    checks.push_back(check);
}

// The norm of \p gradients, then \p sums, in the place of \p norm.
static GlobalNormOp replaceNorm(GlobalNormOp norm, ArrayRef<Value> gradients, ArrayRef<Value> sums) {
  SmallVector<Value> operands;
  if (Value scale = norm.getScale())
    operands.push_back(scale);
  llvm::append_range(operands, gradients);
  llvm::append_range(operands, sums);
  OpBuilder builder(norm);
  auto replacement = GlobalNormOp::create(builder, norm.getLoc(), norm->getResultTypes(), operands, norm->getAttrs());
  replacement.setSums(static_cast<int64_t>(sums.size()));
  norm->replaceAllUsesWith(replacement);
  norm.erase();
  return replacement;
}

void GradientParts::split(GlobalNormOp norm) {
  // A norm that was split before has no gradient of a region left.
  if (norm.getSums() != 0)
    return;
  OpBuilder builder(norm);
  SmallVector<Value> gradients, sums;
  SplitNorm split;
  for (auto [place, gradient] : llvm::enumerate(norm.getGradients())) {
    if (!isElementOfRegion(gradient)) {
      gradients.push_back(gradient);
      continue;
    }
    placeBehind(builder, gradient, norm.getScale());
    auto sum = RankedTensorType::get({}, builder.getF64Type());
    sums.push_back(SumOfSquaresOp::create(builder, norm.getLoc(), sum, gradient, norm.getScale()));
    split.places.push_back(place);
  }
  if (sums.empty())
    return;
  split.norm = replaceNorm(norm, gradients, sums);
  norms.push_back(std::move(split));
}

void GradientParts::joinLeftOver() {
  for (AllFiniteOp check : checks)
    join(check);
  for (const SplitNorm &split : norms)
    join(split);
}

void GradientParts::join(AllFiniteOp check) {
  for (OpOperand &operand : check.getGradientsMutable())
    if (auto part = operand.get().getDefiningOp<CheckFiniteOp>(); part && part.getScale() == check.getScale()) {
      operand.set(part.getGradient());
      part.erase();
    }
}

void GradientParts::join(const SplitNorm &split) {
  GlobalNormOp norm = split.norm;
  OperandRange whole = norm.getGradients(), parts = norm.getInputs().take_back(norm.getSums());
  SmallVector<Value> gradients, sums;
  SmallVector<SumOfSquaresOp> leftOver;
  size_t nextWhole = 0, nextPart = 0;
  for (size_t place = 0; place < whole.size() + parts.size(); ++place) {
    bool isPart = nextPart < split.places.size() && split.places[nextPart] == place;
    Value v = isPart ? parts[nextPart++] : whole[nextWhole++];
    auto alone = isPart ? v.getDefiningOp<SumOfSquaresOp>() : SumOfSquaresOp();
    if (alone)
      leftOver.push_back(alone);
    (isPart && !alone ? sums : gradients).push_back(alone ? alone.getGradient() : v);
  }
  replaceNorm(norm, gradients, sums);
  for (SumOfSquaresOp part : leftOver)
    part.erase();
}

} // namespace mpc
