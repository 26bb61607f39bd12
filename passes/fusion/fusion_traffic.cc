#include "passes/fusion/fusion_traffic.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace mpc {

using codegen::Availability;
using codegen::Extent;
using codegen::FusionPlan;

namespace {

/// Visits a region as its code would: sweep by sweep, phase by phase.
class Visit {
public:
  Visit(const FusionPlan &plan, llvm::function_ref<bool(Value)> isStored) : plan(plan), isStored(isStored) {
    inside.insert_range(plan.getBody());
  }

  FusionTraffic run() {
    for (now.sweep = 0; now.sweep < plan.numSweeps(); ++now.sweep) {
      loaded.clear();
      bool works = false;
      for (now.phase = 0; now.phase < plan.numPhases(now.sweep); ++now.phase)
        works |= phase();
      for (Value v : loaded)
        cost.bytes += bytesOf(v);
      cost.launches += works + plan.endsInCombination(now.sweep);
    }
    return cost;
  }

private:
  bool phase() {
    computed.clear();
    bool works = false;
    for (const FusionPlan::Step &step : plan.getSteps())
      if (step.when == now) {
        works = true;
        for (Value operand : step.op->getOperands())
          need(operand);
      }
    for (Operation *op : plan.getBody())
      for (Value result : op->getResults())
        if (isStored(result) && plan.available(result) == now) {
          cost.bytes += bytesOf(result);
          // The results of a combination need no sweep of their own.
          works |= plan.extent(result) == Extent::Full;
          need(result);
        }
    return works;
  }

  // Depth first, with a stack of its own: a region may be a long chain.
  void need(Value v) {
    SmallVector<Value> worklist{v};
    while (!worklist.empty())
      if (Operation *op = computedFor(worklist.pop_back_val()))
        llvm::append_range(worklist, llvm::reverse(op->getOperands()));
  }

  // The operation that computes `v` now, whose operands are needed; null where `v` is there or is loaded.
  Operation *computedFor(Value v) {
    Operation *op = v.getDefiningOp();
    bool full = plan.extent(v) == Extent::Full;
    if (!op || !inside.contains(op)) {
      loaded.insert(v);
      return nullptr;
    }
    if (full && isStored(v) && plan.available(v) < now) {
      if (plan.available(v).sweep < now.sweep)
        loaded.insert(v);
      return nullptr;
    }
    bool reduced = !full && llvm::any_of(plan.getSteps(), [&](const FusionPlan::Step &step) { return step.op == op; });
    if (reduced || !computed.insert(op).second)
      return nullptr;
    if (!computedBefore.insert(op).second && has<Property::Expensive>(op) && !cost.repeated)
      cost.repeated = op;
    return op;
  }

  const FusionPlan &plan;
  llvm::function_ref<bool(Value)> isStored;
  llvm::DenseSet<Operation *> inside;
  Availability now;
  llvm::DenseSet<Value> loaded;
  llvm::DenseSet<Operation *> computed, computedBefore;
  FusionTraffic cost;
};

} // namespace

FusionTraffic fusionTraffic(const FusionPlan &plan, llvm::function_ref<bool(Value)> isStored) {
  return Visit(plan, isStored).run();
}

} // namespace mpc
