#include "compiler/codegen/gpu_row_sweep.h"

#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mpc::codegen {

RowSweep::RowSweep(GpuFusion &region, const Sweep &s, const Sweep &next, const SweepTiling &t)
    : region(region), s(s), next(next), t(t), rows(region.plan.rows()), columns(region.plan.getColumns()),
      f(region, t.blocks(), t.threads, t.blocksEach), b(f.builder()), lanes(t.vector > 1 ? t.vector : 0),
      columnAccumulators(accumulatorsOf(s.columnSteps)), accumulators(accumulatorsOf(s.allSteps)) {
  lane = t.teams() == 1 ? f.getThread() : b.CreateURem(f.getThread(), f.index(t.lanes));
  team = t.teams() == 1 ? f.index(0) : b.CreateUDiv(f.getThread(), f.index(t.lanes));
  tileBegin = b.CreateNUWMul(b.CreateURem(f.getBlock(), f.index(t.columnTiles)), f.index(t.width()));
  rowBlock = b.CreateUDiv(f.getBlock(), f.index(t.columnTiles));
  rowBegin = b.CreateNUWMul(rowBlock, f.index(t.rowsPerBlock));
  rowEnd = f.minimum(b.CreateNUWAdd(rowBegin, f.index(t.rowsPerBlock)), f.index(rows));
  placeStages();
  sums = zeros(accumulators);
  for (unsigned i = 0; t.resident && i < t.places; ++i)
    columnSums.push_back(zeros(columnAccumulators));
  if (!columnAccumulators.empty() && (t.rowBlocks > 1 || !t.resident || !accumulators.empty())) {
    left.columnParts = t.rowBlocks;
    for (const Accumulator &a : columnAccumulators)
      left.columns.push_back(
          region.allocate(t.rowBlocks * columns * a.type()->getPrimitiveSizeInBits().getFixedValue() / 8));
  }
}

// Shared memory has whole vectors of the longest row of each element, then the sums of each column.
void RowSweep::placeStages() {
  int64_t wholeColumns = columns / t.vector * t.vector;
  SmallVector<unsigned> offsets;
  unsigned bytes = 0;
  auto place = [&](llvm::Type *type) {
    offsets.push_back(bytes);
    bytes = llvm::alignTo(bytes + wholeColumns * type->getPrimitiveSizeInBits().getFixedValue() / 8, 16);
  };
  for (unsigned i = 0; t.staged && i < s.elements.size(); ++i)
    place(storageType(s.elements[i]));
  for (unsigned i = 0; t.columnsStaged && i < columnAccumulators.size(); ++i)
    place(columnAccumulators[i].type());
  if (offsets.empty())
    return;
  llvm::Value *shared = f.reserveShared(bytes);
  for (auto [i, offset] : llvm::enumerate(offsets)) {
    llvm::Value *at = b.CreateConstGEP1_64(b.getInt8Ty(), shared, offset);
    (t.staged && i < s.elements.size() ? stages : columnStages).push_back(at);
  }
}

Partials RowSweep::emit() {
  if (!t.resident)
    clearPartials();
  else if (!t.shifted)
    resident = placesAt(tileBegin);
  // With one place, the thread keeps the same columns for the whole sweep.
  if (t.resident && !t.shifted && t.places == 1)
    columnAnchor = f.placeAnchor();
  int64_t atOnce = int64_t{t.ahead} * t.teams();
  if (t.rowsPerBlock <= atOnce)
    visitRows(rowBegin);
  else
    f.loop(rowBegin, rowEnd, f.index(atOnce), [&](llvm::Value *first) { visitRows(first); });
  if (t.resident && !columnAccumulators.empty())
    reduceColumns();
  if (t.columnsStaged)
    leaveStagedColumns();
  if (!accumulators.empty())
    reduceAll();
  f.finish();
  return std::move(left);
}

RowSweep::Sums RowSweep::zeros(ArrayRef<Accumulator> of) {
  Sums made;
  for (const Accumulator &a : of) {
    llvm::Value *nothing = identity(a.how), *ofLanes = spread(nothing, lanes);
    Sum &sum = made.emplace_back(Sum{f.variable(ofLanes->getType(), ofLanes)});
    if (t.shifted)
      sum.edge = f.variable(nothing->getType(), nothing);
  }
  return made;
}

// A maximum is one instruction of a GPU. It differs from that of `combine` in the sign of a zero alone. Users subtract
// the maximum from numbers, or add a logarithm of 1 or more to it. Neither shows the sign.
static llvm::Value *combined(Combine how, llvm::Value *sum, llvm::Value *term) {
  return how == Combine::MaxNum ? EmissionScope::builder().CreateMaxNum(sum, term) : combine(how, sum, term);
}

/// The block of a rare branch in which alone \p term is another number than -0, and the number there. Null: there is
/// none.
static std::pair<llvm::BasicBlock *, llvm::Value *> rareTerm(llvm::Value *term) {
  auto *phi = dyn_cast<llvm::PHINode>(term);
  for (unsigned i = 0; phi && phi->getNumIncomingValues() == 2 && i < 2; ++i)
    if (llvm::PatternMatch::match(phi->getIncomingValue(i), llvm::PatternMatch::m_NegZeroFP()))
      return {phi->getIncomingBlock(1 - i), phi->getIncomingValue(1 - i)};
  return {};
}

void RowSweep::add(const Accumulator &a, const Sum &sum, const RowPlace &at, Float term, llvm::Value *mask) {
  unsigned width = at.at->getLanes();
  llvm::AllocaInst *into = t.shifted && width == 0 ? sum.edge : sum.vectors;
  auto *known = dyn_cast<llvm::ConstantInt>(mask);
  // Adding -0 changes no sum, so the common way adds nothing.
  if (auto [block, rare] = rareTerm(term.value()); block && a.how == Combine::Sum && known && known->isOne()) {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(block->getTerminator());
    return f.set(into, combine(a.how, f.get(into), rare));
  }
  f.set(into, combined(a.how, f.get(into), maskedTerm(a, term, mask, width)));
}

SmallVector<llvm::Value *> RowSweep::acrossTeam(ArrayRef<Accumulator> of, const Sums &sums, unsigned lanes) {
  SmallVector<llvm::Value *> values;
  for (auto [a, sum] : llvm::zip_equal(of, sums)) {
    llvm::Value *mine = GpuFunction::acrossVector(a.how, f.get(sum.vectors));
    if (sum.edge)
      mine = combine(a.how, mine, f.get(sum.edge));
    values.push_back(f.acrossTeam(a.how, mine, lanes));
  }
  return values;
}

void RowSweep::visitRows(llvm::Value *first) {
  SmallVector<Row, 4> visited;
  for (unsigned i = 0; i < t.ahead; ++i)
    visited.push_back(rowAt(first, i));
  for (Row &r : visited) {
    // The row before kept values of its own.
    for (const Sweep::Steps &steps : s.rowPasses)
      for (const Sweep::Step *step : steps)
        f.getBody().forgetKept(step->op);
    Pass pass = Pass::First;
    for (const Sweep::Steps &steps : s.rowPasses) {
      beginPass(r);
      reduceRow(r, steps, pass);
      if (t.staged && pass == Pass::First && t.rowsPerBlock > 1)
        prefetchAfter(r);
      pass = Pass::Later;
    }
    beginPass(r);
    eachRowPlace(r, pass, [&](const RowPlace &at) { lastPass(r, at); });
    storeOfRow(r);
  }
}

// Values of the row are computed once for all places of a pass. Those of a row in registers have no loop around them.
void RowSweep::beginPass(Row &r) {
  if (t.resident)
    return;
  f.getBody().forget(Extent::PerRow);
  r.anchor = f.placeAnchor();
  if (t.shifted)
    r.edge.at->setAnchors({r.anchor, nullptr});
}

void RowSweep::reduceRow(const Row &r, ArrayRef<const Sweep::Step *> steps, Pass pass) {
  BodyEmitter &body = f.getBody();
  SmallVector<Accumulator> ofRow = accumulatorsOf(steps);
  Sums rowSums = zeros(ofRow);
  eachRowPlace(r, pass, [&](const RowPlace &at) {
    body.moveTo(*at.at);
    eachTerm(body, steps,
             [&](unsigned number, Float term) { add(ofRow[number], rowSums[number], at, term, at.inside); });
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
           [&](unsigned number, Float term) { add(accumulators[number], sums[number], at, term, inside); });
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
