#include "compiler/codegen/fusion_outputs.h"

#include "compiler/codegen/fusion_emitter.h"

using namespace mlir;

namespace mpc::codegen {

static bool isShared(Extent e) { return e == Extent::PerColumn || e == Extent::Single; }

FusionOutputs::FusionOutputs(FusionOp fusion, const FusionPlan &plan) : plan(plan) {
  for (auto [index, v] : llvm::enumerate(cast<YieldOp>(fusion.getBody().front().getTerminator()).getValues()))
    outputs.push_back({v, static_cast<unsigned>(index), plan.extent(v), plan.available(v)});
}

// A sum of two of the region's inputs.
static bool isSumOfInputs(const FusionPlan &plan, Value v) {
  auto sum = v.getDefiningOp<AddOp>();
  return sum && cast<RankedTensorType>(v.getType()).getElementType().isF32() &&
         llvm::all_of(sum->getOperands(), [&](Value operand) { return plan.isInput(operand); });
}

void FusionOutputs::putOffSums() {
  for (unsigned sweep = 0; sweep < plan.numSweeps(); ++sweep) {
    Availability last{sweep, plan.numPhases(sweep) - 1};
    auto isHere = [&](const Output &o) { return o.extent == Extent::Full && o.when.sweep == sweep; };
    if (llvm::all_of(outputs,
                     [&](const Output &o) { return !isHere(o) || o.when == last || isSumOfInputs(plan, o.value); }))
      for (Output &o : outputs)
        if (isHere(o))
          o.when = last;
  }
}

const FusionOutputs::Output *FusionOutputs::storedBefore(Value v, Availability now) const {
  for (const Output &o : outputs) {
    bool before = isShared(o.extent) ? o.when.sweep > 0 && o.when.sweep <= now.sweep : o.when < now;
    if (o.value == v && before)
      return &o;
  }
  return nullptr;
}

bool FusionOutputs::isCombined(const Output &o, unsigned sweep) const {
  if (!isShared(o.extent) || !plan.endsInCombination(sweep))
    return false;
  return o.when.sweep == sweep + 1 || (o.when.sweep == 0 && sweep == 0);
}

void FusionOutputs::collect(Value v, Availability at, llvm::SetVector<Value> &inputs, DenseSet<Value> &seen) const {
  if (!seen.insert(v).second)
    return;
  if (plan.isInput(v)) {
    inputs.insert(v);
    return;
  }
  if (storedBefore(v, at) || plan.isReduced(v))
    return;
  for (Value operand : v.getDefiningOp()->getOperands())
    collect(operand, at, inputs, seen);
}

llvm::SetVector<Value> FusionOutputs::inputsBehind(ArrayRef<Value> values, Availability at) const {
  llvm::SetVector<Value> inputs;
  DenseSet<Value> seen;
  for (Value v : values)
    collect(v, at, inputs, seen);
  return inputs;
}

llvm::SetVector<Value> FusionOutputs::inputsRead(Availability at) const {
  SmallVector<Value> wanted;
  for (const FusionPlan::Step &s : plan.getSteps())
    if (s.when == at)
      llvm::append_range(wanted, s.op->getOperands());
  for (const Output &o : outputs)
    if (o.when == at && (!isShared(o.extent) || (at.sweep == 0 && !plan.endsInCombination(0))))
      wanted.push_back(o.value);
  return inputsBehind(wanted, at);
}

llvm::SetVector<Value> FusionOutputs::inputsCombined(unsigned sweep) const {
  SmallVector<Value> wanted;
  for (const FusionPlan::Step &s : plan.getSteps())
    if (s.when.sweep == sweep && s.reduction.axis != Axis::Row)
      for (Value operand : s.op->getOperands())
        if (isShared(plan.extent(operand)))
          wanted.push_back(operand);
  for (const Output &o : outputs)
    if (isCombined(o, sweep))
      wanted.push_back(o.value);
  return inputsBehind(wanted, {sweep, 0});
}

} // namespace mpc::codegen
