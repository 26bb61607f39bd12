// Accumulation over micro-steps, with accumulation-steps=2. With 3 or 4 the sum has two levels:
//   %level0 = mpc.accumulate_gradient %mean_before, %u, %micro_step {count = 4} : ...
//   %mean_so_far = mpc.accumulate_gradient %level1_before, %level0, %micro_step {count = 4, level = 1} : ...
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
//
// With processes=2, too, the sum stays local and the findings are merged. The last of a process's micro-steps adds
//   %agreed = ... mpc.all_reduce_max ... {processes = 2} : ...
//   %sum_so_far = mpc.accumulate_gradient %sum_before, %u, %micro_step {count = 4} : ...
//   %mean = mpc.all_reduce %sum_so_far {processes = 2} : ...
//
// With communication-dtype=f16 the scaled gradients are added. Each share of them and each sum is rounded.
//   %low = mpc.cast %sum_so_far : (tensor<4xf32>) -> tensor<4xf16>
//   %rounded = mpc.cast %low : (tensor<4xf16>) -> tensor<4xf32>
#include "passes/step/micro_steps.h"

#include "compiler/dialect/accumulation_levels.h"
#include "passes/step/micro_batches.h"

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
  if (tellsLast())
    isLast = EqualOp::create(builder, edit.loc, flag, number, edit.constant(count - 1));
}

Value MicroSteps::batchNumber(OpBuilder &builder, Location loc) const {
  return numberInUpdate(builder, loc, processes.size(), count, number);
}

// The finding of a micro-step stays until the last micro-step has acted on it.
Finding MicroSteps::soFar(unsigned request, Finding found, bool hasNorms) {
  if (!takesMeans())
    return found;
  OpBuilder &builder = edit.builder;
  builder.setInsertionPointAfter(found.firstBad.getDefiningOp());
  int64_t gradients = edit.getRequests()[request].gradients.size();
  FindingBesideNorms own(builder, edit.loc, found.firstBad, gradients, hasNorms);
  Value firstBad = own.getOfGradients();
  if (accumulates()) {
    std::string suffix = edit.getRequests().size() == 1 ? "" : std::to_string(request);
    Type position = scalarType(builder.getI32Type());
    std::string name = "accumulator.first_bad" + suffix;
    Value before = edit.addArgument(position, Role::kAccumulator, name);
    Value known = SelectOp::create(builder, edit.loc, position, isFirst, edit.constant(-1), before);
    firstBad = MergeChecksOp::create(builder, edit.loc, position, ValueRange{known, firstBad});
    accumulators.push_back({firstBad, name});
  }
  if (reduces && !processes.isAlone())
    firstBad = processes.agree(builder, edit.loc, firstBad);
  return findingOf(builder, edit.loc, own.withNorms(builder, edit.loc, firstBad));
}

Value MicroSteps::meanSoFar(unsigned request, unsigned position, Value term) {
  if (!accumulates())
    return processes.mean(edit.builder, edit.loc, term);
  StringRef of = stateName(stateBefore(edit.getRequests()[request].differentiatedBy[position]));
  Value sum = sumSoFar(processes, accumulatorName(request, position), of, term);
  return sum.getType() == term.getType() ? sum : CastOp::create(edit.builder, edit.loc, term.getType(), sum).getY();
}

Value MicroSteps::meanOfWeights(StringRef name, Value weight) {
  ProcessMean wide = processes.inF32();
  return accumulates() ? sumSoFar(wide, name, /*of=*/"", weight) : wide.mean(edit.builder, edit.loc, weight);
}

// The share is rounded as where it is exchanged. The divisor is a power of two, so both products are exact.
Value MicroSteps::withRoundedShare(Value term, int64_t divisor) {
  Type wide = cast<RankedTensorType>(term.getType()).clone(edit.builder.getF32Type());
  if (term.getType() != wide)
    term = CastOp::create(edit.builder, edit.loc, wide, term);
  Value share = MulScalarOp::create(edit.builder, edit.loc, wide, term, APFloat(1.0f / float(divisor)));
  Value rounded = processes.rounded(edit.builder, edit.loc, share);
  return MulScalarOp::create(edit.builder, edit.loc, wide, rounded, APFloat(float(divisor)));
}

// A chain of levels, each of which holds the sum of twice as many micro-steps as the one below. The micro-steps of a
// process are a subtree of the update's, so that its own levels are the lowest of them.
Value MicroSteps::sumSoFar(const ProcessMean &by, StringRef name, StringRef of, Value term) {
  auto wide = cast<RankedTensorType>(term.getType()).clone(edit.builder.getF32Type());
  // Where processes do not divide, each of them adds a mean of its own micro-steps.
  int64_t divisor = by.divides() ? batchesOfUpdate() : count;
  Value sum = by.addsLow() ? withRoundedShare(term, divisor) : term;
  for (int64_t level = 0; level < accumulationLevels(count); ++level) {
    std::string levelName = level == 0 ? name.str() : name.str() + ".level" + std::to_string(level);
    Value before = edit.addArgument(wide, Role::kAccumulator, levelName, of);
    sum = AccumulateGradientOp::create(edit.builder, edit.loc, wide, before, sum, number, /*predicate=*/Value(),
                                       uint64_t(divisor), uint64_t(level));
    sum = by.rounded(edit.builder, edit.loc, sum);
    accumulators.push_back({sum, levelName});
  }
  return reduces && !by.isAlone() ? by.sum(edit.builder, edit.loc, sum) : sum;
}

std::string MicroSteps::accumulatorName(unsigned request, unsigned position) const {
  std::string name = "accumulator." + edit.flow.gradientName(request, position);
  if (llvm::any_of(accumulators, [&](const Accumulator &other) { return other.name == name; }))
    name += ".loss" + std::to_string(request);
  return name;
}

Value MicroSteps::ofAllBatches(OpBuilder &builder, Location loc, Value batch, Value state) {
  Value own = batch;
  if (accumulates()) {
    auto type = cast<RankedTensorType>(batch.getType());
    SmallVector<int64_t> shape{count};
    llvm::append_range(shape, type.getShape());
    std::string name = "accumulator.batches." + nameOf(state).str();
    Value before = edit.addArgument(type.clone(shape), Role::kAccumulator, name, stateName(state));
    own = shiftIn(builder, loc, before, batch);
    accumulators.push_back({own, name});
  }
  if (!reduces)
    return {};
  return accumulates() ? gatherRows(builder, loc, own, processes.size()) : gather(builder, loc, own, processes.size());
}

Value MicroSteps::beforeFirst(Value old) {
  if (!tellsLast())
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
  if (!tellsLast() || updated == old)
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
