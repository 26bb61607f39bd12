// Accumulation over micro-steps: one function, run once a micro-step, whose optimizers and scalers act in the last one.
#include "passes/step/step_wrap.h"

using namespace mlir;

namespace mpc {

static RankedTensorType scalar(Type element) { return RankedTensorType::get({}, element); }

/// The name of the state that an accumulator belongs to; empty for a value that is no state.
static StringRef stateName(Value v) { return isState(roleOf(v)) ? nameOf(v) : StringRef(); }

Value StepWrap::constant(int32_t number) {
  auto type = scalar(builder.getI32Type());
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, builder.getI32IntegerAttr(number)));
}

void StepWrap::addMicroStep() {
  microStep = addArgument(scalar(builder.getI32Type()), Role::kAccumulator, "accumulator.micro_step");
  builder.setInsertionPointToStart(&function.getBody().front());
  Type flag = scalar(builder.getI1Type());
  isFirst = EqualOp::create(builder, loc, flag, microStep, constant(0));
  isLast = EqualOp::create(builder, loc, flag, microStep, constant(options.accumulationSteps - 1));
}

// The finding of a micro-step stays until the last micro-step has acted on it.
void StepWrap::accumulateCheck(unsigned request, Operation *check) {
  std::string suffix = flow.getRequests().size() == 1 ? "" : std::to_string(request);
  Type position = scalar(builder.getI32Type());
  std::string name = "accumulator.first_bad" + suffix;
  Value before = addArgument(position, Role::kAccumulator, name);
  builder.setInsertionPointAfter(check);
  Value finite = constant(-1);
  Value known = SelectOp::create(builder, loc, position, isFirst, finite, before);
  firstBad[request] =
      MergeChecksOp::create(builder, loc, position, ValueRange{known, cast<AllFiniteOp>(check).getFirstBad()});
  flags[request] = EqualOp::create(builder, loc, scalar(builder.getI1Type()), firstBad[request], finite);
  accumulators.push_back({firstBad[request], name});
}

// The mean of the unscaled gradients of the micro-steps so far.
Value StepWrap::accumulate(unsigned request, unsigned position) {
  Value gradient = flow.getRequests()[request].gradients[position];
  auto type = cast<RankedTensorType>(gradient.getType());
  auto wide = type.clone(builder.getF32Type());
  std::string name = "accumulator." + flow.gradientName(request, position);
  if (llvm::any_of(accumulators, [&](const Accumulator &other) { return other.name == name; }))
    name += ".loss" + std::to_string(request);
  Value sum = addArgument(wide, Role::kAccumulator, name,
                          stateName(stateBefore(flow.getRequests()[request].differentiatedBy[position])));
  Value term = unscale(request, gradient);
  Value updated = AccumulateGradientOp::create(builder, loc, wide, sum, term, microStep, /*predicate=*/Value(),
                                               uint64_t(options.accumulationSteps));
  accumulators.push_back({updated, name});
  return wide == type ? updated : CastOp::create(builder, loc, type, updated);
}

// State that every micro-step moves falls back to what it was before the first one.
Value StepWrap::fallback(Value old, const UpdateKey &key) {
  if (!accumulates() || key.last)
    return old;
  Value &backup = backups[old];
  if (backup)
    return backup;
  std::string name = "accumulator.old." + nameOf(old).str();
  Value saved = addArgument(old.getType(), Role::kAccumulator, name, stateName(old));
  OpBuilder::InsertionGuard restore(builder);
  builder.setInsertionPointAfter(isFirst.getDefiningOp());
  if (Operation *definition = old.getDefiningOp())
    builder.setInsertionPointAfter(definition);
  backup = SelectOp::create(builder, loc, old.getType(), isFirst, old, saved);
  accumulators.push_back({backup, name});
  return backup;
}

void StepWrap::appendAccumulation() {
  for (const Accumulator &kept : accumulators)
    appendResult(kept.updated, Role::kAccumulator, kept.name);
  Value next = NextMicroStepOp::create(builder, loc, microStep.getType(), microStep, /*predicate=*/Value(),
                                       uint64_t(options.accumulationSteps));
  appendResult(next, Role::kAccumulator, "accumulator.micro_step");
}

} // namespace mpc
