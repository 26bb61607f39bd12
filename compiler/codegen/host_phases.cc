#include "compiler/codegen/host_phases.h"

using namespace mlir;

namespace mpc::codegen {

// Chains of accumulators that hide the latency of an addition.
static constexpr unsigned independentChains = 4;

// Few accumulators depend on themselves from one vector to the next; many hide each other's latency.
static unsigned chainsOf(const HostFusion &region, Availability at) {
  unsigned accumulators = 0;
  for (const FusionPlan::Step &step : region.plan.getSteps())
    if (step.when == at && step.reduction.axis != Axis::Column)
      accumulators += step.reduction.accumulators.size();
  uint64_t vectors = std::max<int64_t>(1, region.schedule.width / region.schedule.lanes);
  unsigned chains = accumulators == 0 ? 1 : std::max(1u, independentChains / llvm::bit_ceil(accumulators));
  return std::min<uint64_t>(chains, llvm::bit_floor(vectors));
}

static bool visitsByColumns(const HostFusion &region, unsigned sweep) {
  bool hasColumns = false, hasRows = false;
  for (const FusionPlan::Step &step : region.plan.getSteps())
    if (step.when.sweep == sweep)
      (step.reduction.axis == Axis::Row ? hasRows : hasColumns) |= step.reduction.axis != Axis::All;
  for (const FusionOutputs::Output &o : region.outputs.all())
    hasRows |= o.when.sweep == sweep && o.extent == Extent::PerRow;
  return hasColumns && !hasRows;
}

// Rows that are not made of whole vectors, each visited from its first element to its last.
static std::unique_ptr<HostStream> streamOf(const HostFusion &region, HostFunction &f, const FusionOutputs::Output &o) {
  constexpr int64_t leastVectors = 4;
  const HostSchedule &schedule = region.schedule;
  llvm::Type *t = storageType(o.value);
  bool hasForm = t->isFloatTy() || t->isIntegerTy(16);
  bool isRagged = schedule.width % HostStream::lanes != 0 && schedule.width >= leastVectors * HostStream::lanes;
  if (!schedule.shifts || !hasForm || !isRagged || !canStream(region, o))
    return nullptr;
  return std::make_unique<HostStream>(f, t);
}

HostPhases::HostPhases(HostFusion &region, HostFunction &f, unsigned sweep, llvm::Value *rowTile)
    : byColumns(visitsByColumns(region, sweep)) {
  for (unsigned index = 0; index < region.plan.numPhases(sweep); ++index) {
    Availability at{sweep, index};
    HostPhase &p = all.emplace_back();
    p.number = index;
    p.chains = byColumns ? 1 : chainsOf(region, at);
    for (const FusionPlan::Step &step : region.plan.getSteps()) {
      if (step.when != at)
        continue;
      if (step.reduction.axis == Axis::Row)
        p.rows.emplace_back(f, region.schedule, step, p.chains);
      else if (step.reduction.axis == Axis::All)
        p.everything.push_back(&everything.emplace_back(f, region.schedule, step, p.chains));
      else
        p.columns.push_back(&columns.emplace_back(region, f, step, rowTile));
    }
    for (const FusionOutputs::Output &o : region.outputs.all())
      if (o.when == at && o.extent == Extent::Full)
        p.elements.push_back({o, byColumns ? nullptr : streamOf(region, f, o)});
      else if (o.when == at && o.extent == Extent::PerRow)
        p.rowOutputs.push_back(o);
  }
  prefetch(region, sweep);
}

// The first phase of a row finds nothing in the caches; the second and the last one have time to fetch the next row.
// Each of them fetches half, because the last one stores around the caches: memory that reads and writes at once moves
// more bytes. A visit by columns jumps from row to row, which hides from the processor that it will read all of the
// next ones. Where there is one phase, its instructions fill the window in which a processor finds loads to begin
// early. Without prefetching, computing and reading would take turns.
void HostPhases::prefetch(const HostFusion &region, unsigned sweep) {
  auto fetch = [&](HostPhase &p, HostPhase::Fetch what) {
    p.fetch = what;
    llvm::copy_if(region.outputs.inputsRead({sweep, 0}), std::back_inserter(p.prefetched),
                  [&](Value input) { return region.plan.extent(input) == Extent::Full; });
  };
  if (byColumns)
    return fetch(all.front(), HostPhase::Fetch::All);
  SmallVector<HostPhase *> later;
  for (HostPhase &p : llvm::drop_begin(all))
    if (p.visitsElements())
      later.push_back(&p);
  if (later.empty() && region.schedule.fetches)
    return fetch(all.front(), HostPhase::Fetch::Ahead);
  if (later.size() == 1)
    return fetch(*later.front(), HostPhase::Fetch::All);
  if (later.size() > 1) {
    fetch(*later.front(), HostPhase::Fetch::FirstHalf);
    fetch(*later.back(), HostPhase::Fetch::SecondHalf);
  }
}

} // namespace mpc::codegen
