// reduce_sum, reduce_mean and reduce_max over leading axes (columns), trailing axes (rows) or all; reduce_max_grad.
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
static llvm::Expected<ReducedAxes> reducedAxes(Operation *Op, Value X, ArrayRef<int64_t> Axes) {
  ArrayRef<int64_t> Shape = tensorType(X).getShape();
  SmallVector<std::pair<int64_t, bool>> Extents; // and whether they are reduced
  for (auto [Index, Extent] : llvm::enumerate(Shape))
    if (Extent != 1)
      Extents.push_back({Extent, Axes.empty() || llvm::is_contained(Axes, int64_t(Index))});
  if (llvm::none_of(Extents, [](auto E) { return E.second; }))
    return ReducedAxes();
  if (llvm::all_of(Extents, [](auto E) { return E.second; }))
    return ReducedAxes{Axis::All, 0};
  bool Leading = Extents.front().second;
  auto Boundary = llvm::find_if(Extents, [&](auto E) { return E.second != Leading; });
  if (std::any_of(Boundary, Extents.end(), [&](auto E) { return E.second == Leading; }))
    return unfit(Op, llvm::formatv("the axes that it reduces of {0} are neither the first nor the last ones",
                                   typeText(X.getType())));
  ReducedAxes Result{Leading ? Axis::Column : Axis::Row, 1};
  for (auto E = Boundary; E != Extents.end(); ++E)
    Result.columns *= E->first;
  return Result;
}

static Extent extentOf(std::optional<Axis> Reduced) {
  if (!Reduced)
    return Extent::Full;
  return *Reduced == Axis::Row ? Extent::PerRow : *Reduced == Axis::Column ? Extent::PerColumn : Extent::Single;
}

static FusibleSpace reductionSpace(Operation *Op, ArrayRef<int64_t> Axes) {
  Value X = Op->getOperand(0);
  auto Reduced = reducedAxes(Op, X, Axes);
  if (!Reduced)
    return Reduced.takeError();
  return OperationSpace{
      tensorType(X).getNumElements(), Reduced->columns, {Extent::Full}, {extentOf(Reduced->axis)}, {}};
}

// getSpace has reported axes that do not fit.
static std::optional<Axis> axisOf(Operation *Op, ArrayRef<int64_t> Axes) {
  return llvm::cantFail(reducedAxes(Op, Op->getOperand(0), Axes)).axis;
}

static SmallVector<Reduction> reductionsOf(Operation *Op, ArrayRef<int64_t> Axes, Combine How) {
  std::optional<Axis> Along = axisOf(Op, Axes);
  return Along ? SmallVector<Reduction>{{*Along, {How}}} : SmallVector<Reduction>{};
}

// Where nothing but extents of 1 is reduced, there is no step and elements stay.
#define MPC_EMIT_REDUCTION(Class, How)                                                                                 \
  SmallVector<Reduction> Class::getReductions() { return reductionsOf(*this, getAxes(), How); }                        \
  void Class::emitTerms(unsigned, ElementContext &Context) { Context.addTerm(Context.operand(0)); }                    \
  void Class::emitElement(ElementContext &Context) {                                                                   \
    if (!axisOf(*this, getAxes()))                                                                                     \
      Context.setResult(0, Context.operand(0));                                                                        \
  }
MPC_EMIT_REDUCTION(ReduceSumOp, Combine::Sum)
MPC_EMIT_REDUCTION(ReduceMeanOp, Combine::Sum)
MPC_EMIT_REDUCTION(ReduceMaxOp, Combine::Maximum)
#undef MPC_EMIT_REDUCTION

FusibleSpace ReduceSumOp::getSpace() { return reductionSpace(*this, getAxes()); }
void ReduceSumOp::emitFinish(unsigned, ElementContext &Context) { Context.setResult(0, Context.accumulated(0)); }

FusibleSpace ReduceMeanOp::getSpace() { return reductionSpace(*this, getAxes()); }
void ReduceMeanOp::emitFinish(unsigned, ElementContext &Context) {
  int64_t Count = Context.count(*axisOf(*this, getAxes()));
  Context.setResult(0, Context.accumulated(0) / static_cast<float>(Count));
}

FusibleSpace ReduceMaxOp::getSpace() {
  FusibleSpace Space = reductionSpace(*this, getAxes());
  if (Space && Space->results.front() != Extent::Full && Space->results.front() != Extent::PerRow)
    return unfit(*this, "it has no code but for rows: the axes that it reduces must be the last ones and not all");
  return Space;
}
void ReduceMaxOp::emitFinish(unsigned, ElementContext &Context) { Context.setResult(0, Context.accumulated(0)); }

// Elements that equal the maximum are counted in f32, which counts this far.
static constexpr int64_t CountedInF32 = int64_t(1) << 24;

FusibleSpace ReduceMaxGradOp::getSpace() {
  auto Reduced = reducedAxes(*this, getX(), getAxes());
  if (!Reduced)
    return Reduced.takeError();
  int64_t Elements = tensorType(getX()).getNumElements();
  if (Elements > CountedInF32 * tensorType(getY()).getNumElements())
    return unfit(*this, "more than 2^24 elements share a maximum, and f32 does not count them");
  Extent Shared = extentOf(Reduced->axis);
  return OperationSpace{Elements, Reduced->columns, {Shared, Extent::Full, Shared}, {Extent::Full}, {}};
}

static std::optional<Axis> axisOf(ReduceMaxGradOp Op) {
  return llvm::cantFail(reducedAxes(Op, Op.getX(), Op.getAxes())).axis;
}

SmallVector<Reduction> ReduceMaxGradOp::getReductions() {
  std::optional<Axis> Along = axisOf(*this);
  return Along ? SmallVector<Reduction>{{*Along, {Combine::Sum}}} : SmallVector<Reduction>{};
}

// No element equals a NaN.
static codegen::Bool isLargest(ElementContext &Context) { return Context.operand(1) == Context.operand(2); }

void ReduceMaxGradOp::emitTerms(unsigned, ElementContext &Context) {
  Context.addTerm(Select(isLargest(Context), Float(1.0), Float(0.0)));
}

void ReduceMaxGradOp::emitFinish(unsigned, ElementContext &Context) { Context.keep(Context.accumulated(0)); }

void ReduceMaxGradOp::emitElement(ElementContext &Context) {
  Float Dy = Context.operand(0);
  Float Share = axisOf(*this) ? Dy / Context.kept(0) : Dy;
  Context.setResult(0, Select(isLargest(Context), Share, Float(0.0)));
}

} // namespace mpc
