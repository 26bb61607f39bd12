#include "compiler/codegen/host_phases.h"

using namespace mlir;

namespace mpc::codegen {

// Chains of accumulators that hide the latency of an addition.
static constexpr unsigned IndependentChains = 4;

// Few accumulators depend on themselves from one vector to the next; many hide each other's latency.
static unsigned chainsOf(const HostRegion &Region, Availability At) {
  unsigned Accumulators = 0;
  for (const RegionPlan::Step &Step : Region.plan.steps())
    if (Step.when == At && Step.reduction.axis != Axis::Column)
      Accumulators += Step.reduction.accumulators.size();
  uint64_t Vectors = std::max<int64_t>(1, Region.schedule.width / Region.schedule.lanes);
  unsigned Chains = Accumulators == 0 ? 1 : std::max(1u, IndependentChains / llvm::bit_ceil(Accumulators));
  return std::min<uint64_t>(Chains, llvm::bit_floor(Vectors));
}

static bool visitsByColumns(const HostRegion &Region, unsigned Sweep) {
  bool HasColumns = false, HasRows = false;
  for (const RegionPlan::Step &Step : Region.plan.steps())
    if (Step.when.sweep == Sweep)
      (Step.reduction.axis == Axis::Row ? HasRows : HasColumns) |= Step.reduction.axis != Axis::All;
  for (const RegionOutputs::Output &O : Region.outputs.all())
    HasRows |= O.when.sweep == Sweep && O.extent == Extent::PerRow;
  return HasColumns && !HasRows;
}

// Rows that are not made of whole vectors, each visited from its first element to its last.
static std::unique_ptr<HostStream> streamOf(const HostRegion &Region, HostFunction &F, const RegionOutputs::Output &O) {
  constexpr int64_t LeastVectors = 4;
  const HostSchedule &Schedule = Region.schedule;
  llvm::Type *T = storageType(O.value);
  bool HasForm = T->isFloatTy() || T->isIntegerTy(16);
  bool IsRagged = Schedule.width % HostStream::Lanes != 0 && Schedule.width >= LeastVectors * HostStream::Lanes;
  if (!Schedule.shifts || !HasForm || !IsRagged || !canStream(Region, O))
    return nullptr;
  return std::make_unique<HostStream>(F, T);
}

HostPhases::HostPhases(HostRegion &Region, HostFunction &F, unsigned Sweep, llvm::Value *RowTile)
    : byColumns(visitsByColumns(Region, Sweep)) {
  for (unsigned Index = 0; Index < Region.plan.numPhases(Sweep); ++Index) {
    Availability At{Sweep, Index};
    HostPhase &P = all.emplace_back();
    P.number = Index;
    P.chains = byColumns ? 1 : chainsOf(Region, At);
    for (const RegionPlan::Step &Step : Region.plan.steps()) {
      if (Step.when != At)
        continue;
      if (Step.reduction.axis == Axis::Row)
        P.rows.emplace_back(F, Region.schedule, Step, P.chains);
      else if (Step.reduction.axis == Axis::All)
        P.everything.push_back(&everything.emplace_back(F, Region.schedule, Step, P.chains));
      else
        P.columns.push_back(&columns.emplace_back(Region, F, Step, RowTile));
    }
    for (const RegionOutputs::Output &O : Region.outputs.all())
      if (O.when == At && O.extent == Extent::Full)
        P.elements.push_back({O, byColumns ? nullptr : streamOf(Region, F, O)});
      else if (O.when == At && O.extent == Extent::PerRow)
        P.rowOutputs.push_back(O);
  }
  prefetch(Region, Sweep);
}

// The first phase of a row finds nothing in the caches; the second and the last one have time to fetch the next row.
// Each of them fetches half, because the last one stores around the caches: memory that reads and writes at once moves
// more bytes. A visit by columns jumps from row to row, which hides from the processor that it will read all of the
// next ones. Where there is one phase, its instructions fill the window in which a processor finds loads to begin
// early. Without prefetching, computing and reading would take turns.
void HostPhases::prefetch(const HostRegion &Region, unsigned Sweep) {
  auto Fetch = [&](HostPhase &P, HostPhase::Fetch What) {
    P.fetch = What;
    llvm::copy_if(Region.outputs.inputsRead({Sweep, 0}), std::back_inserter(P.prefetched),
                  [&](Value Input) { return Region.plan.extent(Input) == Extent::Full; });
  };
  if (byColumns)
    return Fetch(all.front(), HostPhase::Fetch::All);
  SmallVector<HostPhase *> Later;
  for (HostPhase &P : llvm::drop_begin(all))
    if (P.visitsElements())
      Later.push_back(&P);
  if (Later.empty() && Region.schedule.fetches)
    return Fetch(all.front(), HostPhase::Fetch::Ahead);
  if (Later.size() == 1)
    return Fetch(*Later.front(), HostPhase::Fetch::All);
  if (Later.size() > 1) {
    Fetch(*Later.front(), HostPhase::Fetch::FirstHalf);
    Fetch(*Later.back(), HostPhase::Fetch::SecondHalf);
  }
}

} // namespace mpc::codegen
