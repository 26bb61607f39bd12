#include "compiler/codegen/gpu_row_sweep.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mpc::codegen {

RowSweep::RowSweep(GpuFusion &region, const Sweep &s, const Sweep &next, const SweepTiling &t)
    : region(region), s(s), next(next), t(t), rows(region.plan.rows()), columns(region.plan.getColumns()),
      f(region, t.blocks(), t.threads), b(f.builder()), lanes(t.vector > 1 ? t.vector : 0),
      columnAccumulators(accumulatorsOf(s.columnSteps)), accumulators(accumulatorsOf(s.allSteps)) {
  lane = t.teams() == 1 ? f.getThread() : b.CreateURem(f.getThread(), f.index(t.lanes));
  team = t.teams() == 1 ? f.index(0) : b.CreateUDiv(f.getThread(), f.index(t.lanes));
  tileBegin = b.CreateNUWMul(b.CreateURem(f.getBlock(), f.index(t.columnTiles)), f.index(t.width()));
  rowBlock = b.CreateUDiv(f.getBlock(), f.index(t.columnTiles));
  rowBegin = b.CreateNUWMul(rowBlock, f.index(t.rowsPerBlock));
  rowEnd = f.minimum(b.CreateNUWAdd(rowBegin, f.index(t.rowsPerBlock)), f.index(rows));
  sums = variables(accumulators);
  for (unsigned i = 0; t.resident && i < t.places; ++i)
    columnSums.push_back(variables(columnAccumulators));
  if (!columnAccumulators.empty() && (t.rowBlocks > 1 || !t.resident || !accumulators.empty())) {
    left.columnParts = t.rowBlocks;
    for (const Accumulator &a : columnAccumulators)
      left.columns.push_back(
          region.allocate(t.rowBlocks * columns * a.type()->getPrimitiveSizeInBits().getFixedValue() / 8));
  }
}

Partials RowSweep::emit() {
  if (t.resident)
    resident = placesAt(tileBegin);
  else
    clearPartials();
  // With one place, the thread keeps the same columns for the whole sweep.
  if (t.resident && t.places == 1)
    columnAnchor = f.placeAnchor();
  int64_t atOnce = int64_t{t.ahead} * t.teams();
  if (t.rowsPerBlock <= atOnce)
    visitRows(rowBegin);
  else
    f.loop(rowBegin, rowEnd, f.index(atOnce), [&](llvm::Value *first) { visitRows(first); });
  if (t.resident && !columnAccumulators.empty())
    reduceColumns();
  if (!accumulators.empty())
    reduceAll();
  f.finish();
  return std::move(left);
}

RowSweep::Variables RowSweep::variables(ArrayRef<Accumulator> of) {
  Variables made;
  for (const Accumulator &a : of) {
    llvm::Value *nothing = spread(identity(a.how), lanes);
    made.push_back(f.variable(nothing->getType(), nothing));
  }
  return made;
}

void RowSweep::add(const Accumulator &a, llvm::AllocaInst *sum, Float term, llvm::Value *mask) {
  f.set(sum, combine(a.how, f.get(sum), maskedTerm(a, term, mask, lanes)));
}

SmallVector<llvm::Value *> RowSweep::acrossTeam(ArrayRef<Accumulator> of, const Variables &sums, unsigned lanes) {
  SmallVector<llvm::Value *> values;
  for (auto [a, sum] : llvm::zip_equal(of, sums))
    values.push_back(f.acrossTeam(a.how, GpuFunction::acrossVector(a.how, f.get(sum)), lanes));
  return values;
}

// A team beyond the last row visits that once more, and what it computes is not used: barriers and shuffles take all.
RowSweep::Row RowSweep::rowAt(llvm::Value *first, unsigned number) {
  bool even = rows % t.rowsPerBlock == 0 && t.rowsPerBlock % (t.ahead * t.teams()) == 0;
  llvm::Value *index = b.CreateNUWAdd(b.CreateNUWAdd(first, f.index(number * t.teams())), team);
  Row r;
  r.inside = even ? b.getTrue() : f.isBelow(index, rowEnd);
  r.index = even ? index : f.minimum(index, f.index(rows - 1));
  r.at = std::make_unique<RowPosition>(f, r.index, f.index(0), /*lanes=*/0);
  if (t.resident)
    r.resident = rowPlacesAt(r, resident);
  return r;
}

RowSweep::Places RowSweep::placesAt(llvm::Value *begin) {
  Places made;
  for (unsigned i = 0; i < t.places; ++i) {
    int64_t first = int64_t{i} * t.lanes * t.vector;
    int64_t past = first + int64_t{t.lanes} * t.vector;
    bool whole = columns % t.width() == 0 || (t.resident && t.columnTiles == 1 && past <= columns);
    llvm::Value *column =
        b.CreateNUWAdd(b.CreateNUWAdd(begin, f.index(first)), b.CreateNUWMul(lane, f.index(t.vector)));
    llvm::Value *inside = whole ? b.getTrue() : f.isBelow(column, f.index(columns));
    made.push_back({whole ? column : f.minimum(column, f.index(columns - t.vector)), inside, i});
  }
  return made;
}

RowSweep::RowPlaces RowSweep::rowPlacesAt(const Row &r, ArrayRef<Place> at) {
  RowPlaces made;
  for (const Place &p : at) {
    made.push_back({p, std::make_unique<RowPosition>(f, r.index, p.column, lanes, columnAnchor)});
    made.back().at->preload(s.elements);
  }
  return made;
}

void RowSweep::eachRowPlace(const Row &r, llvm::function_ref<void(const RowPlace &)> visit) {
  if (t.resident) {
    for (const RowPlace &at : r.resident)
      visit(at);
    return;
  }
  f.loop(f.index(0), f.index(columns), f.index(t.width()), [&](llvm::Value *begin) {
    for (const RowPlace &at : rowPlacesAt(r, placesAt(begin)))
      visit(at);
  });
}

void RowSweep::visitRows(llvm::Value *first) {
  SmallVector<Row, 4> visited;
  for (unsigned i = 0; i < t.ahead; ++i)
    visited.push_back(rowAt(first, i));
  for (const Row &r : visited) {
    for (const Sweep::Steps &steps : s.rowPasses)
      reduceRow(r, steps);
    eachRowPlace(r, [&](const RowPlace &at) { lastPass(r, at); });
    storeOfRow(r);
  }
}

void RowSweep::reduceRow(const Row &r, ArrayRef<const Sweep::Step *> steps) {
  BodyEmitter &body = f.getBody();
  SmallVector<Accumulator> ofRow = accumulatorsOf(steps);
  Variables rowSums = variables(ofRow);
  eachRowPlace(r, [&](const RowPlace &at) {
    body.moveTo(*at.at);
    eachTerm(body, steps, [&](unsigned number, Float term) { add(ofRow[number], rowSums[number], term, at.inside); });
  });
  SmallVector<llvm::Value *> values = acrossTeam(ofRow, rowSums, t.lanes);
  body.moveTo(*r.at);
  finishSteps(body, steps, values);
  for (const Sweep::Step *step : steps) {
    auto &kept = region.kept[step->op];
    while (body.firstKept(step->op) == 0 && kept.size() < body.kept(step->op).size())
      kept.push_back({Extent::PerRow});
  }
}

void RowSweep::lastPass(const Row &r, const RowPlace &at) {
  BodyEmitter &body = f.getBody();
  body.moveTo(*at.at);
  addToColumns(r, at);
  llvm::Value *inside = b.CreateAnd(r.inside, at.inside);
  eachTerm(body, s.allSteps,
           [&](unsigned number, Float term) { add(accumulators[number], sums[number], term, inside); });
  auto stores = storesOf(Extent::Full);
  f.when(inside, [&] {
    for (auto [base, v] : stores)
      at.at->storeTo(base, v, Extent::Full);
  });
}

SmallVector<std::pair<llvm::Value *, llvm::Value *>> RowSweep::storesOf(Extent e) {
  SmallVector<std::pair<llvm::Value *, llvm::Value *>> stores;
  for (unsigned output : s.stores)
    if (Value v = region.yielded(output); region.plan.extent(v) == e)
      stores.push_back({f.operand(region.numInputs() + output), f.getBody().stored(v)});
  return stores;
}

void RowSweep::storeOfRow(const Row &r) {
  f.getBody().moveTo(*r.at);
  auto stores = storesOf(Extent::PerRow);
  if (stores.empty())
    return;
  // The place may be that of an input, which other threads of the team read.
  f.barrier();
  f.when(b.CreateAnd(r.inside, b.CreateICmpEQ(lane, f.index(0))), [&] {
    for (auto [base, v] : stores)
      r.at->storeTo(base, v, Extent::PerRow);
  });
}

void RowSweep::reduceAll() {
  SmallVector<llvm::Value *> values = acrossTeam(accumulators, sums, t.threads);
  if (t.blocks() == 1 && columnAccumulators.empty())
    return finishAll(f, s.allSteps, next, values);
  leaveAll(f, t.blocks(), values, left);
}

Partials emitRowSweep(GpuFusion &region, const Sweep &s, const Sweep &next, const SweepTiling &t) {
  return RowSweep(region, s, next, t).emit();
}

} // namespace mpc::codegen
