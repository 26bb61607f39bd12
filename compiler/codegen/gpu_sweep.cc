#include "compiler/codegen/gpu_sweep.h"

#include "compiler/codegen/body_emitter.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;

namespace mpc::codegen {

namespace {

/// Collects the operations that one sweep has to compute, from what it stores and adds.
class Needs {
public:
  Needs(const FusionPlan &plan, unsigned sweep, ArrayRef<Value> stored) : plan(plan), sweep(sweep), stored(stored) {}

  void value(Value v) {
    bool isStored = plan.available(v).sweep < sweep && llvm::is_contained(stored, v);
    if (plan.isInput(v) || isStored) {
      if (plan.extent(v) == Extent::Full)
        elements.insert(v);
      else if (plan.extent(v) == Extent::PerRow)
        rowValues.insert(v);
      return;
    }
    // Results of reductions of columns or of everything are in memory.
    if (!plan.isReduced(v) || plan.extent(v) == Extent::PerRow)
      operation(v.getDefiningOp());
  }
  void operation(Operation *op) {
    if (!operations.insert(op))
      return;
    for (Value operand : op->getOperands())
      value(operand);
  }

  llvm::SetVector<Operation *> operations;
  llvm::SetVector<Value> elements, rowValues;

private:
  const FusionPlan &plan;
  const unsigned sweep;
  const ArrayRef<Value> stored;
};

} // namespace

static void planSweep(Sweep &s, const FusionPlan &plan, ArrayRef<Value> yielded) {
  Needs needed(plan, s.index, yielded);
  for (unsigned output : s.stores)
    needed.value(yielded[output]);
  for (const FusionPlan::Step &step : plan.getSteps()) {
    if (step.when.sweep != s.index || step.reduction.axis == Axis::Row)
      continue;
    (step.reduction.axis == Axis::All ? s.allSteps : s.columnSteps).push_back(&step);
    needed.operation(step.op);
  }
  std::map<unsigned, Sweep::Steps> passes;
  for (const FusionPlan::Step &step : plan.getSteps())
    if (step.reduction.axis == Axis::Row && needed.operations.contains(step.op))
      passes[step.when.phase].push_back(&step);
  for (auto &[phase, steps] : passes)
    s.rowPasses.push_back(std::move(steps));
  s.elements = needed.elements.takeVector();
  s.rowValues = needed.rowValues.takeVector();
}

std::vector<Sweep> sweepsOf(FusionOp fusion, const FusionPlan &plan) {
  SmallVector<Value> yielded(fusion.getBody().front().getTerminator()->getOperands());
  std::vector<Sweep> sweeps(plan.numSweeps() + 1);
  for (auto [index, v] : llvm::enumerate(yielded)) {
    unsigned at = plan.available(v).sweep;
    Extent e = plan.extent(v);
    if (e == Extent::Single)
      sweeps[std::max(at, 1u)].singleStores.push_back(index);
    else if (e == Extent::PerColumn)
      sweeps[std::max(at, 1u)].columnStores.push_back(index);
    else
      sweeps[at].stores.push_back(index);
  }
  for (auto [index, s] : llvm::enumerate(sweeps)) {
    s.index = index;
    planSweep(s, plan, yielded);
  }
  return sweeps;
}

namespace {

/// Sizes that a tiling depends on.
struct Traffic {
  unsigned smallestBytes = 16;   ///< size of the smallest element that is read or written
  unsigned elementBytes = 0;     ///< bytes that are read for one element of the space
  unsigned accumulatorWords = 0; ///< registers of one column's accumulators
  bool hasRowStores = false;

  Traffic(const FusionPlan &plan, FusionOp fusion, const Sweep &s) {
    auto count = [&](Value v) {
      unsigned bytes = std::max(1u, getElementTypeOrSelf(v.getType()).getIntOrFloatBitWidth() / 8);
      smallestBytes = std::min(smallestBytes, std::max(2u, bytes));
      return bytes;
    };
    for (Value v : s.elements)
      elementBytes += count(v);
    Operation *yield = fusion.getBody().front().getTerminator();
    for (unsigned output : s.stores) {
      Value v = yield->getOperand(output);
      if (plan.extent(v) == Extent::Full)
        count(v);
      else
        hasRowStores = true;
    }
    elementBytes = std::max(elementBytes, 1u);
    for (const Sweep::Step *step : s.columnSteps)
      for (Combine how : step->reduction.accumulators)
        accumulatorWords += isWide(how) ? 2 : 1;
  }
};

} // namespace

/// The largest power of two that is at most \p most and divides \p size.
static unsigned vectorOf(int64_t size, unsigned most) {
  return std::min<uint64_t>(llvm::bit_floor(most), uint64_t{1} << llvm::countr_zero(static_cast<uint64_t>(size)));
}

// A multiprocessor's loads under way, 16 bytes a thread and a tensor, hide the memory's latency with about 64 bytes a
// thread.
static constexpr unsigned bytesUnderWay = 64;

static SweepTiling flatTiling(const FusionPlan &plan, const Sweep &s, const Traffic &bytes, unsigned multiprocessors) {
  SweepTiling t;
  t.flat = true;
  t.vector = std::min<uint64_t>(16 / bytes.smallestBytes, llvm::bit_floor(static_cast<uint64_t>(plan.getElements())));
  int64_t vectors = plan.getElements() / t.vector;
  t.lanes = t.threads;
  t.ahead = llvm::bit_floor(std::clamp(bytesUnderWay / (bytes.elementBytes * t.vector), 1u, 4u));
  if (s.allSteps.empty()) {
    // Few vectors are spread over all multiprocessors first.
    while (t.ahead > 1 && vectors < int64_t{t.ahead} * t.threads * multiprocessors * 4)
      t.ahead /= 2;
    t.rowBlocks = llvm::divideCeil(vectors, int64_t{t.threads} * t.ahead);
    return t;
  }
  // A single block saves the launch of the combination.
  constexpr int64_t alone = 32, least = 8;
  int64_t ofThread = llvm::divideCeil(vectors, t.threads);
  t.rowBlocks = ofThread <= alone ? 1 : std::min<int64_t>(ofThread / least, int64_t{multiprocessors} * 8);
  return t;
}

// Rows of the space shared out over the blocks of a grid that has `most` of them for one column tile.
static void shareRows(SweepTiling &t, int64_t rows, int64_t most) {
  constexpr int64_t alone = 32, least = 8;
  int64_t ofTeam = llvm::divideCeil(rows, t.teams());
  int64_t blocks = ofTeam <= alone ? 1 : std::clamp<int64_t>(ofTeam / least, 1, std::max<int64_t>(most, 1));
  t.rowsPerBlock = llvm::divideCeil(rows, blocks);
  t.rowBlocks = llvm::divideCeil(rows, t.rowsPerBlock);
}

static SweepTiling columnTiling(const FusionPlan &plan, const Traffic &bytes, unsigned multiprocessors) {
  constexpr unsigned mostAccumulatorWords = 64;
  SweepTiling t;
  unsigned most = 16 / bytes.smallestBytes;
  while (most > 1 && most * bytes.accumulatorWords > mostAccumulatorWords)
    most /= 2;
  t.vector = vectorOf(plan.getColumns(), most);
  int64_t vectors = plan.getColumns() / t.vector;
  t.lanes = std::min<uint64_t>(32, llvm::PowerOf2Ceil(vectors));
  t.columnTiles = llvm::divideCeil(vectors, t.lanes);
  t.ahead = llvm::bit_floor(std::clamp(2 * bytesUnderWay / (bytes.elementBytes * t.vector), 1u, 4u));
  shareRows(t, plan.rows(), int64_t{multiprocessors} * 8 / t.columnTiles);
  return t;
}

// Vectors that do not divide the rows are worth an edge where each thread of a warp has a whole one.
static void chooseRowVector(SweepTiling &t, const FusionPlan &plan, const Sweep &s, const Traffic &bytes) {
  const unsigned widest = 16 / bytes.smallestBytes;
  t.vector = vectorOf(plan.getColumns(), widest);
  unsigned ofSpace = vectorOf(plan.getElements(), widest);
  // A thread sums the same columns of all rows.
  if (ofSpace == t.vector || !s.columnSteps.empty() || plan.getColumns() < int64_t{32} * widest)
    return;
  t.vector = ofSpace;
  t.shifted = true;
}

// A row that is too long for registers: a block takes one after the other.
static void tileLongRows(SweepTiling &t, const FusionPlan &plan, const Sweep &s, const Traffic &bytes,
                         const Multiprocessors &target) {
  // What every block takes besides, and what its reductions use.
  constexpr unsigned systemBytes = 1024, scratchBytes = 512;
  t.resident = false;
  int64_t wholeColumns = plan.getColumns() / t.vector * t.vector;
  int64_t free = target.sharedBytes - systemBytes - scratchBytes;
  int64_t rowBytes = s.rowPasses.empty() ? 0 : wholeColumns * bytes.elementBytes, taken = 0;
  if (rowBytes != 0 && rowBytes <= free) {
    t.staged = true;
    taken += rowBytes;
  }
  if (int64_t sums = wholeColumns * bytes.accumulatorWords * 4; sums != 0 && taken + sums <= free) {
    t.columnsStaged = true;
    taken += sums;
  }
  int64_t fit = target.sharedBytes / (taken + systemBytes + scratchBytes);
  // While one block waits for its row, another one computes. A block alone is larger.
  t.lanes = t.threads = fit == 1 ? 1024 : 512;
  if (taken != 0 && fit > 1)
    t.blocksEach = 2;
  t.places = std::clamp(bytesUnderWay / (bytes.elementBytes * t.vector), 1u, 8u);
  if (!s.columnSteps.empty()) {
    // Sums of columns take registers too, which two f32 operands a place leave no room for.
    if (!t.columnsStaged && bytes.elementBytes >= 8)
      t.places = std::min(t.places, 2u);
    // Each block leaves sums of all columns, which is worth a few rows.
    constexpr int64_t leastRows = 4;
    t.rowsPerBlock = std::max<int64_t>(llvm::divideCeil(plan.rows(), target.number * std::clamp<int64_t>(fit, 1, 2)),
                                       std::min(plan.rows(), leastRows));
  } else {
    // Few rows a block keep all multiprocessors busy to the end. With several, the next one is on its way in time.
    constexpr int64_t mostRows = 8, blocksEach = 16;
    t.rowsPerBlock = std::clamp<int64_t>(plan.rows() / (target.number * blocksEach), 1, mostRows);
  }
  t.rowBlocks = llvm::divideCeil(plan.rows(), t.rowsPerBlock);
}

// Two rows at once hide the memory's latency where a thread has registers for both.
static void loadAhead(SweepTiling &t, const FusionPlan &plan, const Traffic &bytes) {
  constexpr unsigned mostBytes = 48, mostSums = 24;
  const unsigned ofThread = t.vector * t.places;
  if (bytes.elementBytes * ofThread > mostBytes || bytes.accumulatorWords * ofThread > mostSums ||
      t.rowsPerBlock < int64_t{4} * t.teams())
    return;
  t.ahead = 2;
  // Whole visits take no masks.
  t.rowsPerBlock = llvm::alignTo(t.rowsPerBlock, t.ahead * t.teams());
  t.rowBlocks = llvm::divideCeil(plan.rows(), t.rowsPerBlock);
}

static SweepTiling rowTiling(const FusionPlan &plan, const Sweep &s, const Traffic &bytes,
                             const Multiprocessors &target) {
  // A thread holds 32 elements of its row and 64 registers of its columns' sums. So 512 threads find room for the rest.
  constexpr unsigned mostElements = 32, mostBytes = 256, mostPlaces = 8, mostThreads = 512;
  SweepTiling t;
  chooseRowVector(t, plan, s, bytes);
  int64_t vectors = plan.getColumns() / t.vector;
  unsigned placeBytes = (bytes.elementBytes + 4 * bytes.accumulatorWords) * t.vector;
  unsigned places = std::min(std::clamp(mostBytes / placeBytes, 1u, mostPlaces), mostElements / t.vector);
  bool columns = !s.columnSteps.empty();
  uint64_t lanes =
      llvm::PowerOf2Ceil(vectors <= 32 ? vectors : std::max<int64_t>(32, llvm::divideCeil(vectors, places)));
  if (lanes > mostThreads) {
    tileLongRows(t, plan, s, bytes, target);
    return t;
  }
  t.lanes = lanes;
  t.places = llvm::divideCeil(vectors, t.lanes);
  // Small teams share a block. Columns are combined over as many as possible: that leaves fewer parts.
  t.threads = columns ? std::max(t.lanes, 256u) : t.lanes <= 32 ? 128 : t.lanes;
  if (columns || !s.allSteps.empty()) {
    shareRows(t, plan.rows(), int64_t{target.number} * (columns ? 512 : 2048) / t.threads);
    loadAhead(t, plan, bytes);
    return t;
  }
  t.rowsPerBlock = t.teams();
  t.rowBlocks = llvm::divideCeil(plan.rows(), t.rowsPerBlock);
  return t;
}

SweepTiling tilingOf(const FusionPlan &plan, FusionOp fusion, const Sweep &s, const Multiprocessors &target) {
  Traffic bytes(plan, fusion, s);
  // A value of a row is stored by the only team that visits the row.
  if (!s.rowPasses.empty() || bytes.hasRowStores)
    return rowTiling(plan, s, bytes, target);
  if (s.columnSteps.empty())
    return flatTiling(plan, s, bytes, target.number);
  return columnTiling(plan, bytes, target.number);
}

} // namespace mpc::codegen
