// reduce_sum, reduce_mean, reduce_max and reduce_min over leading axes (columns), trailing axes (rows) or all;
// reduce_max_grad.
#include "compiler/dialect/fusible_space.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

namespace {
struct ReducedAxes {
  std::optional<Axis> axis; ///< none: only extents of 1 are reduced
  int64_t columns = 0;
};
} // namespace

/// Extents of 1 belong to either side.
static llvm::Expected<ReducedAxes> reducedAxes(Operation *op, Value x, ArrayRef<int64_t> axes) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  SmallVector<std::pair<int64_t, bool>> extents; // and whether they are reduced
  for (auto [index, extent] : llvm::enumerate(shape))
    if (extent != 1)
      extents.push_back({extent, axes.empty() || llvm::is_contained(axes, int64_t(index))});
  if (llvm::none_of(extents, [](auto e) { return e.second; }))
    return ReducedAxes();
  if (llvm::all_of(extents, [](auto e) { return e.second; }))
    return ReducedAxes{Axis::All, 0};
  bool leading = extents.front().second;
  auto boundary = llvm::find_if(extents, [&](auto e) { return e.second != leading; });
  if (std::any_of(boundary, extents.end(), [&](auto e) { return e.second == leading; }))
    return unfit(op, llvm::formatv("the axes that it reduces of {0} are neither the first nor the last ones",
                                   typeText(x.getType())));
  ReducedAxes result{leading ? Axis::Column : Axis::Row, 1};
  for (auto e = boundary; e != extents.end(); ++e)
    result.columns *= e->first;
  return result;
}

static Extent extentOf(std::optional<Axis> reduced) {
  if (!reduced)
    return Extent::Full;
  return *reduced == Axis::Row ? Extent::PerRow : *reduced == Axis::Column ? Extent::PerColumn : Extent::Single;
}

static FusibleSpace reductionSpace(Operation *op, ArrayRef<int64_t> axes) {
  Value x = op->getOperand(0);
  auto reduced = reducedAxes(op, x, axes);
  if (!reduced)
    return reduced.takeError();
  return OperationSpace{
      tensorType(x).getNumElements(), reduced->columns, {Extent::Full}, {extentOf(reduced->axis)}, {}};
}

// getSpace has reported axes that do not fit.
static std::optional<Axis> axisOf(Operation *op, ArrayRef<int64_t> axes) {
  return llvm::cantFail(reducedAxes(op, op->getOperand(0), axes)).axis;
}

static SmallVector<Reduction> reductionsOf(Operation *op, ArrayRef<int64_t> axes, Combine how) {
  std::optional<Axis> along = axisOf(op, axes);
  return along ? SmallVector<Reduction>{{*along, {how}}} : SmallVector<Reduction>{};
}

// Where nothing but extents of 1 is reduced, there is no step and elements stay.
#define MPC_EMIT_REDUCTION(Class, How)                                                                                 \
  SmallVector<Reduction> Class::getReductions() { return reductionsOf(*this, getAxes(), How); }                        \
  void Class::emitTerms(unsigned, ElementContext &context) { context.addTerm(context.operand(0)); }                    \
  void Class::emitElement(ElementContext &context) {                                                                   \
    if (!axisOf(*this, getAxes()))                                                                                     \
      context.setResult(0, context.operand(0));                                                                        \
  }
MPC_EMIT_REDUCTION(ReduceSumOp, Combine::Sum)
MPC_EMIT_REDUCTION(ReduceMeanOp, Combine::Sum)
MPC_EMIT_REDUCTION(ReduceMaxOp, Combine::Maximum)
#undef MPC_EMIT_REDUCTION

FusibleSpace ReduceSumOp::getSpace() { return reductionSpace(*this, getAxes()); }
void ReduceSumOp::emitFinish(unsigned, ElementContext &context) { context.setResult(0, context.accumulated(0)); }

FusibleSpace ReduceMeanOp::getSpace() { return reductionSpace(*this, getAxes()); }
void ReduceMeanOp::emitFinish(unsigned, ElementContext &context) {
  int64_t count = context.count(*axisOf(*this, getAxes()));
  context.setResult(0, context.accumulated(0) / static_cast<float>(count));
}

// The space of a maximum or minimum.
static FusibleSpace extremumSpace(Operation *op, ArrayRef<int64_t> axes) {
  FusibleSpace space = reductionSpace(op, axes);
  if (space && space->results.front() != Extent::Full && space->results.front() != Extent::PerRow)
    return unfit(op, "it has no code but for rows: the axes that it reduces must be the last ones and not all");
  return space;
}

FusibleSpace ReduceMaxOp::getSpace() { return extremumSpace(*this, getAxes()); }
void ReduceMaxOp::emitFinish(unsigned, ElementContext &context) { context.setResult(0, context.accumulated(0)); }

FusibleSpace ReduceMinOp::getSpace() { return extremumSpace(*this, getAxes()); }
// The smallest is the negative of the largest negative: no negation rounds, and a NaN wins.
SmallVector<Reduction> ReduceMinOp::getReductions() { return reductionsOf(*this, getAxes(), Combine::Maximum); }
void ReduceMinOp::emitTerms(unsigned, ElementContext &context) { context.addTerm(-context.operand(0)); }
void ReduceMinOp::emitFinish(unsigned, ElementContext &context) { context.setResult(0, -context.accumulated(0)); }
void ReduceMinOp::emitElement(ElementContext &context) {
  if (!axisOf(*this, getAxes()))
    context.setResult(0, context.operand(0));
}

// Elements that equal the maximum are counted in f32, which counts this far.
static constexpr int64_t countedInF32 = int64_t(1) << 24;

FusibleSpace ReduceMaxGradOp::getSpace() {
  auto reduced = reducedAxes(*this, getX(), getAxes());
  if (!reduced)
    return reduced.takeError();
  int64_t elements = tensorType(getX()).getNumElements();
  if (elements > countedInF32 * tensorType(getY()).getNumElements())
    return unfit(*this, "more than 2^24 elements share a maximum, and f32 does not count them");
  Extent shared = extentOf(reduced->axis);
  return OperationSpace{elements, reduced->columns, {shared, Extent::Full, shared}, {Extent::Full}, {}};
}

static std::optional<Axis> axisOf(ReduceMaxGradOp op) {
  return llvm::cantFail(reducedAxes(op, op.getX(), op.getAxes())).axis;
}

SmallVector<Reduction> ReduceMaxGradOp::getReductions() {
  std::optional<Axis> along = axisOf(*this);
  return along ? SmallVector<Reduction>{{*along, {Combine::Sum}}} : SmallVector<Reduction>{};
}

// No element equals a NaN.
static codegen::Bool isLargest(ElementContext &context) { return context.operand(1) == context.operand(2); }

void ReduceMaxGradOp::emitTerms(unsigned, ElementContext &context) {
  context.addTerm(Select(isLargest(context), Float(1.0), Float(0.0)));
}

void ReduceMaxGradOp::emitFinish(unsigned, ElementContext &context) { context.keep(context.accumulated(0)); }

void ReduceMaxGradOp::emitElement(ElementContext &context) {
  Float dy = context.operand(0);
  Float share = axisOf(*this) ? dy / context.kept(0) : dy;
  context.setResult(0, Select(isLargest(context), share, Float(0.0)));
}

} // namespace mpc
