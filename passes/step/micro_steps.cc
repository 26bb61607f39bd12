// Accumulation over micro-steps, with accumulation-steps=2.
//
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
//   %u = mpc.unscale %dw, %scale : ...
//   return %w2 : tensor<4xf32>
// becomes, with the arguments %micro_step, %first_bad_before and %mean_before,
//   %is_first = mpc.equal %micro_step, %zero : ...
//   %is_last = mpc.equal %micro_step, %one : ...
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
//   %known = mpc.select %is_first, %none, %first_bad_before : ...
//   %first_bad_so_far = mpc.merge_checks %known, %first_bad : tensor<i32>
//   %finite_so_far = mpc.equal %first_bad_so_far, %none : ...
//   %u = mpc.unscale %dw, %scale : ...
//   %mean_so_far = mpc.accumulate_gradient %mean_before, %u, %micro_step {count = 2} : ...
//   %next = mpc.next_micro_step %micro_step {count = 2} : tensor<i32>
//   return %w2, %first_bad_so_far, %mean_so_far, %next : ...
#include "passes/step/micro_steps.h"

using namespace mlir;

namespace mpc {

/// The name of the state that an accumulator belongs to; empty for a value that is no state.
static StringRef stateName(Value v) { return isState(roleOf(v)) ? nameOf(v) : StringRef(); }

void MicroSteps::addNumber() {
  if (!accumulates())
    return;
  OpBuilder &builder = edit.builder;
  number = edit.addArgument(scalarType(builder.getI32Type()), Role::kAccumulator, "accumulator.micro_step");
  builder.setInsertionPointToStart(&edit.getBody());
  Type flag = scalarType(builder.getI1Type());
  isFirst = EqualOp::create(builder, edit.loc, flag, number, edit.constant(0));
  isLast = EqualOp::create(builder, edit.loc, flag, number, edit.constant(count - 1));
}

// The finding of a micro-step stays until the last micro-step has acted on it.
Finding MicroSteps::soFar(unsigned request, Finding found) {
  if (!accumulates())
    return found;
  OpBuilder &builder = edit.builder;
  std::string suffix = edit.getRequests().size() == 1 ? "" : std::to_string(request);
  Type position = scalarType(builder.getI32Type());
  std::string name = "accumulator.first_bad" + suffix;
  Value before = edit.addArgument(position, Role::kAccumulator, name);
  builder.setInsertionPointAfter(found.firstBad.getDefiningOp());
  Value none = edit.constant(-1);
  Value known = SelectOp::create(builder, edit.loc, position, isFirst, none, before);
  Value firstBad = MergeChecksOp::create(builder, edit.loc, position, ValueRange{known, found.firstBad});
  Value finite = EqualOp::create(builder, edit.loc, scalarType(builder.getI1Type()), firstBad, none);
  accumulators.push_back({firstBad, name});
  return {finite, firstBad};
}

Value MicroSteps::meanSoFar(unsigned request, unsigned position, Value term) {
  if (!accumulates())
    return term;
  auto type = cast<RankedTensorType>(term.getType());
  auto wide = type.clone(edit.builder.getF32Type());
  std::string name = "accumulator." + edit.flow.gradientName(request, position);
  if (llvm::any_of(accumulators, [&](const Accumulator &other) { return other.name == name; }))
    name += ".loss" + std::to_string(request);
  Value sum = edit.addArgument(wide, Role::kAccumulator, name,
                               stateName(stateBefore(edit.getRequests()[request].differentiatedBy[position])));
  Value updated = AccumulateGradientOp::create(edit.builder, edit.loc, wide, sum, term, number, /*predicate=*/Value(),
                                               uint64_t(count));
  accumulators.push_back({updated, name});
  return wide == type ? updated : CastOp::create(edit.builder, edit.loc, type, updated);
}

Value MicroSteps::beforeFirst(Value old) {
  if (!accumulates())
    return old;
  Value &backup = backups[old];
  if (backup)
    return backup;
  std::string name = "accumulator.old." + nameOf(old).str();
  Value saved = edit.addArgument(old.getType(), Role::kAccumulator, name, stateName(old));
  OpBuilder::InsertionGuard restore(edit.builder);
  Operation *definition = old.getDefiningOp();
  edit.builder.setInsertionPointAfter(definition ? definition : isFirst.getDefiningOp());
  backup = SelectOp::create(edit.builder, edit.loc, old.getType(), isFirst, old, saved);
  accumulators.push_back({backup, name});
  return backup;
}

Value MicroSteps::inLast(Value updated, Value old) {
  if (!accumulates() || updated == old)
    return updated;
  return SelectOp::create(edit.builder, edit.loc, old.getType(), isLast, updated, old);
}

void MicroSteps::appendResults() {
  if (!accumulates())
    return;
  edit.builder.setInsertionPoint(edit.returnOp);
  for (const Accumulator &kept : accumulators)
    edit.appendResult(kept.updated, Role::kAccumulator, kept.name);
  Value next =
      NextMicroStepOp::create(edit.builder, edit.loc, number.getType(), number, /*predicate=*/Value(), uint64_t(count));
  edit.appendResult(next, Role::kAccumulator, "accumulator.micro_step");
}

} // namespace mpc
