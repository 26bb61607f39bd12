#include "compiler/codegen/host_workspace.h"

#include "compiler/codegen/body_emitter.h"

using namespace mlir;

namespace mpc::codegen {

static size_t aligned(size_t Size) { return llvm::alignTo(Size, 64); }

HostWorkspace::HostWorkspace(const RegionPlan &Plan, const HostSchedule &Schedule) : Schedule(Schedule) {
  for (unsigned Sweep = 0; Sweep < Plan.numSweeps(); ++Sweep) {
    size_t Offset = 0;
    for (const RegionPlan::Step &Step : Plan.steps()) {
      if (Step.when.sweep != Sweep || Step.reduction.axis == Axis::Row)
        continue;
      for (Combine How : Step.reduction.accumulators) {
        PartialsOf[{Step.op, Step.index}].push_back({Offset, How, Step.reduction.axis});
        size_t Count = Step.reduction.axis == Axis::All ? Schedule.tiles() : Schedule.rowTiles() * Schedule.width;
        Offset += aligned(Count * (isWide(How) ? sizeof(double) : sizeof(float)));
      }
    }
    Bytes = std::max(Bytes, Offset);
  }
}

HostWorkspace::Slot HostWorkspace::add(Extent E, size_t ElementBytes) {
  Slot Added{Bytes, E};
  Bytes += aligned((E == Extent::PerColumn ? Schedule.columns : 1) * ElementBytes);
  return Added;
}

ArrayRef<std::optional<HostWorkspace::Slot>> HostWorkspace::kept(Operation *Op) const {
  auto It = Kept.find(Op);
  return It == Kept.end() ? ArrayRef<std::optional<Slot>>() : ArrayRef(It->second);
}

HostWorkspace::Slot HostWorkspace::addKept(Operation *Op, Extent E) {
  Slot Added = add(E, sizeof(float));
  Kept[Op].push_back(Added);
  return Added;
}

std::optional<HostWorkspace::Slot> HostWorkspace::reduced(Value V) const {
  auto It = Reduced.find(V);
  return It == Reduced.end() ? std::nullopt : std::optional(It->second);
}

HostWorkspace::Slot HostWorkspace::addReduced(Value V, Extent E) {
  Slot Added = add(E, llvm::divideCeil(cast<RankedTensorType>(V.getType()).getElementTypeBitWidth(), 8));
  Reduced[V] = Added;
  return Added;
}

} // namespace mpc::codegen
