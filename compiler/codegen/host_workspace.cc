#include "compiler/codegen/host_workspace.h"

#include "compiler/codegen/body_emitter.h"

using namespace mlir;

namespace mpc::codegen {

static size_t aligned(size_t size) { return llvm::alignTo(size, 64); }

HostWorkspace::HostWorkspace(const FusionPlan &plan, const HostSchedule &schedule) : schedule(schedule) {
  for (unsigned sweep = 0; sweep < plan.numSweeps(); ++sweep) {
    size_t offset = 0;
    for (const FusionPlan::Step &step : plan.getSteps()) {
      if (step.when.sweep != sweep || step.reduction.axis == Axis::Row)
        continue;
      for (Combine how : step.reduction.accumulators) {
        partialsOf[{step.op, step.index}].push_back({offset, how, step.reduction.axis});
        size_t count = step.reduction.axis == Axis::All ? schedule.tiles() : schedule.rowTiles() * schedule.width;
        offset += aligned(count * (isWide(how) ? sizeof(double) : sizeof(float)));
      }
    }
    bytes = std::max(bytes, offset);
  }
}

HostWorkspace::SavedValue HostWorkspace::add(Extent e, size_t elementBytes) {
  SavedValue added{bytes, e};
  bytes += aligned((e == Extent::PerColumn ? schedule.columns : 1) * elementBytes);
  return added;
}

ArrayRef<std::optional<HostWorkspace::SavedValue>> HostWorkspace::kept(Operation *op) const {
  auto it = keptValues.find(op);
  return it == keptValues.end() ? ArrayRef<std::optional<SavedValue>>() : ArrayRef(it->second);
}

HostWorkspace::SavedValue HostWorkspace::addKept(Operation *op, Extent e) {
  SavedValue added = add(e, sizeof(float));
  keptValues[op].push_back(added);
  return added;
}

std::optional<HostWorkspace::SavedValue> HostWorkspace::reduced(Value v) const {
  auto it = reducedValues.find(v);
  return it == reducedValues.end() ? std::nullopt : std::optional(it->second);
}

HostWorkspace::SavedValue HostWorkspace::addReduced(Value v, Extent e) {
  SavedValue added = add(e, llvm::divideCeil(cast<RankedTensorType>(v.getType()).getElementTypeBitWidth(), 8));
  reducedValues[v] = added;
  return added;
}

} // namespace mpc::codegen
