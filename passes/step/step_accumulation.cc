// Accumulation over micro-steps: one function, run once a micro-step, whose optimizers and scalers act in the last one.
#include "passes/step/step_wrap.h"

using namespace mlir;

namespace mpc {

static RankedTensorType scalar(Type Element) { return RankedTensorType::get({}, Element); }

/// The name of the state that an accumulator belongs to; empty for a value that is no state.
static StringRef stateName(Value V) { return isState(roleOf(V)) ? nameOf(V) : StringRef(); }

Value StepWrap::constant(int32_t Number) {
  auto Type = scalar(Builder.getI32Type());
  return ConstantOp::create(Builder, Loc, Type, DenseElementsAttr::get(Type, Builder.getI32IntegerAttr(Number)));
}

void StepWrap::addMicroStep() {
  MicroStep = addArgument(scalar(Builder.getI32Type()), Role::kAccumulator, "accumulator.micro_step");
  Builder.setInsertionPointToStart(&Function.getBody().front());
  Type Flag = scalar(Builder.getI1Type());
  IsFirst = EqualOp::create(Builder, Loc, Flag, MicroStep, constant(0));
  IsLast = EqualOp::create(Builder, Loc, Flag, MicroStep, constant(Options.AccumulationSteps - 1));
}

// The finding of a micro-step stays until the last micro-step has acted on it.
void StepWrap::accumulateCheck(unsigned Request, Operation *Check) {
  std::string Suffix = Flow.requests().size() == 1 ? "" : std::to_string(Request);
  Type Position = scalar(Builder.getI32Type());
  std::string Name = "accumulator.first_bad" + Suffix;
  Value Before = addArgument(Position, Role::kAccumulator, Name);
  Builder.setInsertionPointAfter(Check);
  Value Finite = constant(-1);
  Value Known = SelectOp::create(Builder, Loc, Position, IsFirst, Finite, Before);
  FirstBad[Request] =
      MergeChecksOp::create(Builder, Loc, Position, ValueRange{Known, cast<AllFiniteOp>(Check).getFirstBad()});
  Flags[Request] = EqualOp::create(Builder, Loc, scalar(Builder.getI1Type()), FirstBad[Request], Finite);
  Accumulators.push_back({FirstBad[Request], Name});
}

// The mean of the unscaled gradients of the micro-steps so far.
Value StepWrap::accumulate(unsigned Request, unsigned Position) {
  Value Gradient = Flow.requests()[Request].Gradients[Position];
  auto Type = cast<RankedTensorType>(Gradient.getType());
  auto Wide = Type.clone(Builder.getF32Type());
  std::string Name = "accumulator." + Flow.gradientName(Request, Position);
  if (llvm::any_of(Accumulators, [&](const Accumulator &Other) { return Other.Name == Name; }))
    Name += ".loss" + std::to_string(Request);
  Value Sum = addArgument(Wide, Role::kAccumulator, Name,
                          stateName(stateBefore(Flow.requests()[Request].DifferentiatedBy[Position])));
  Value Term = unscale(Request, Gradient);
  Value New = AccumulateGradientOp::create(Builder, Loc, Wide, Sum, Term, MicroStep, /*predicate=*/Value(),
                                           uint64_t(Options.AccumulationSteps));
  Accumulators.push_back({New, Name});
  return Wide == Type ? New : CastOp::create(Builder, Loc, Type, New);
}

// State that every micro-step moves falls back to what it was before the first one.
Value StepWrap::fallback(Value Old, const UpdateKey &Key) {
  if (!accumulates() || Key.Last)
    return Old;
  Value &Backup = Backups[Old];
  if (Backup)
    return Backup;
  std::string Name = "accumulator.old." + nameOf(Old).str();
  Value Saved = addArgument(Old.getType(), Role::kAccumulator, Name, stateName(Old));
  OpBuilder::InsertionGuard Restore(Builder);
  Builder.setInsertionPointAfter(IsFirst.getDefiningOp());
  if (Operation *Definition = Old.getDefiningOp())
    Builder.setInsertionPointAfter(Definition);
  Backup = SelectOp::create(Builder, Loc, Old.getType(), IsFirst, Old, Saved);
  Accumulators.push_back({Backup, Name});
  return Backup;
}

void StepWrap::appendAccumulation() {
  for (const Accumulator &Kept : Accumulators)
    appendResult(Kept.New, Role::kAccumulator, Kept.Name);
  Value Next = NextMicroStepOp::create(Builder, Loc, MicroStep.getType(), MicroStep, /*predicate=*/Value(),
                                       uint64_t(Options.AccumulationSteps));
  appendResult(Next, Role::kAccumulator, "accumulator.micro_step");
}

} // namespace mpc
