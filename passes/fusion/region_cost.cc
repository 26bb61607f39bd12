#include "passes/fusion/region_cost.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace mpc {

using codegen::Availability;
using codegen::Extent;
using codegen::RegionPlan;

namespace {

/// Visits a region as its code would: sweep by sweep, phase by phase.
class Visit {
public:
  Visit(const RegionPlan &Plan, llvm::function_ref<bool(Value)> IsStored) : Plan(Plan), IsStored(IsStored) {
    Inside.insert_range(Plan.body());
  }

  RegionCost run() {
    for (Now.sweep = 0; Now.sweep < Plan.numSweeps(); ++Now.sweep) {
      Loaded.clear();
      bool Works = false;
      for (Now.phase = 0; Now.phase < Plan.numPhases(Now.sweep); ++Now.phase)
        Works |= phase();
      for (Value V : Loaded)
        Cost.Bytes += bytesOf(V);
      Cost.Launches += Works + Plan.endsInCombination(Now.sweep);
    }
    return Cost;
  }

private:
  bool phase() {
    Computed.clear();
    bool Works = false;
    for (const RegionPlan::Step &Step : Plan.steps())
      if (Step.when == Now) {
        Works = true;
        for (Value Operand : Step.op->getOperands())
          need(Operand);
      }
    for (Operation *Op : Plan.body())
      for (Value Result : Op->getResults())
        if (IsStored(Result) && Plan.available(Result) == Now) {
          Cost.Bytes += bytesOf(Result);
          // The results of a combination need no sweep of their own.
          Works |= Plan.extent(Result) == Extent::Full;
          need(Result);
        }
    return Works;
  }

  // Depth first, with a stack of its own: a region may be a long chain.
  void need(Value V) {
    SmallVector<Value> Worklist{V};
    while (!Worklist.empty())
      if (Operation *Op = computedFor(Worklist.pop_back_val()))
        llvm::append_range(Worklist, llvm::reverse(Op->getOperands()));
  }

  // The operation that computes `V` now, whose operands are needed; null where `V` is there or is loaded.
  Operation *computedFor(Value V) {
    Operation *Op = V.getDefiningOp();
    bool Full = Plan.extent(V) == Extent::Full;
    if (!Op || !Inside.contains(Op)) {
      Loaded.insert(V);
      return nullptr;
    }
    if (Full && IsStored(V) && Plan.available(V) < Now) {
      if (Plan.available(V).sweep < Now.sweep)
        Loaded.insert(V);
      return nullptr;
    }
    bool Reduced = !Full && llvm::any_of(Plan.steps(), [&](const RegionPlan::Step &Step) { return Step.op == Op; });
    if (Reduced || !Computed.insert(Op).second)
      return nullptr;
    if (!ComputedBefore.insert(Op).second && has<Property::Expensive>(Op) && !Cost.Repeated)
      Cost.Repeated = Op;
    return Op;
  }

  const RegionPlan &Plan;
  llvm::function_ref<bool(Value)> IsStored;
  llvm::DenseSet<Operation *> Inside;
  Availability Now;
  llvm::DenseSet<Value> Loaded;
  llvm::DenseSet<Operation *> Computed, ComputedBefore;
  RegionCost Cost;
};

} // namespace

RegionCost regionCost(const RegionPlan &Plan, llvm::function_ref<bool(Value)> IsStored) {
  return Visit(Plan, IsStored).run();
}

} // namespace mpc
