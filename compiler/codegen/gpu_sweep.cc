#include "compiler/codegen/gpu_sweep.h"

#include "compiler/codegen/body_emitter.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;

namespace mpc::codegen {

static bool isReduced(const RegionPlan &Plan, Value V) {
  Operation *Op = V.getDefiningOp();
  return Plan.extent(V) != Extent::Full &&
         llvm::any_of(Plan.steps(), [&](const RegionPlan::Step &S) { return S.op == Op; });
}

namespace {

/// Collects the operations that one sweep has to compute, from what it stores and adds.
class Needs {
public:
  Needs(const RegionPlan &Plan, unsigned Sweep, ArrayRef<Value> Stored) : Plan(Plan), Sweep(Sweep), Stored(Stored) {}

  void value(Value V) {
    Operation *Op = V.getDefiningOp();
    bool IsInput = !Op || !llvm::is_contained(Plan.body(), Op);
    bool IsStored = Plan.available(V).sweep < Sweep && llvm::is_contained(Stored, V);
    if (IsInput || IsStored) {
      if (Plan.extent(V) == Extent::Full)
        Elements.insert(V);
      return;
    }
    // Results of reductions of columns or of everything are in memory.
    if (!isReduced(Plan, V) || Plan.extent(V) == Extent::PerRow)
      operation(Op);
  }
  void operation(Operation *Op) {
    if (!Operations.insert(Op))
      return;
    for (Value Operand : Op->getOperands())
      value(Operand);
  }

  llvm::SetVector<Operation *> Operations;
  llvm::SetVector<Value> Elements;

private:
  const RegionPlan &Plan;
  const unsigned Sweep;
  const ArrayRef<Value> Stored;
};

} // namespace

static void planSweep(Sweep &S, const RegionPlan &Plan, ArrayRef<Value> Yielded) {
  Needs Needed(Plan, S.index, Yielded);
  for (unsigned Output : S.stores)
    Needed.value(Yielded[Output]);
  for (const RegionPlan::Step &Step : Plan.steps()) {
    if (Step.when.sweep != S.index || Step.reduction.axis == Axis::Row)
      continue;
    (Step.reduction.axis == Axis::All ? S.allSteps : S.columnSteps).push_back(&Step);
    Needed.operation(Step.op);
  }
  std::map<unsigned, Sweep::Steps> Passes;
  for (const RegionPlan::Step &Step : Plan.steps())
    if (Step.reduction.axis == Axis::Row && Needed.Operations.contains(Step.op))
      Passes[Step.when.phase].push_back(&Step);
  for (auto &[Phase, Steps] : Passes)
    S.rowPasses.push_back(std::move(Steps));
  S.elements = Needed.Elements.takeVector();
}

std::vector<Sweep> sweepsOf(FusionOp Fusion, const RegionPlan &Plan) {
  SmallVector<Value> Yielded(Fusion.getBody().front().getTerminator()->getOperands());
  std::vector<Sweep> Sweeps(Plan.numSweeps() + 1);
  for (auto [Index, V] : llvm::enumerate(Yielded)) {
    unsigned At = Plan.available(V).sweep;
    Extent E = Plan.extent(V);
    if (E == Extent::Single)
      Sweeps[std::max(At, 1u)].singleStores.push_back(Index);
    else if (E == Extent::PerColumn)
      Sweeps[std::max(At, 1u)].columnStores.push_back(Index);
    else
      Sweeps[At].stores.push_back(Index);
  }
  for (auto [Index, S] : llvm::enumerate(Sweeps)) {
    S.index = Index;
    planSweep(S, Plan, Yielded);
  }
  return Sweeps;
}

namespace {

/// Sizes that a tiling depends on.
struct Traffic {
  unsigned SmallestBytes = 16;   ///< size of the smallest element that is read or written
  unsigned ElementBytes = 0;     ///< bytes that are read for one element of the space
  unsigned AccumulatorWords = 0; ///< registers of one column's accumulators
  bool HasRowStores = false;

  Traffic(const RegionPlan &Plan, FusionOp Fusion, const Sweep &S) {
    auto Count = [&](Value V) {
      unsigned Bytes = std::max(1u, getElementTypeOrSelf(V.getType()).getIntOrFloatBitWidth() / 8);
      SmallestBytes = std::min(SmallestBytes, std::max(2u, Bytes));
      return Bytes;
    };
    for (Value V : S.elements)
      ElementBytes += Count(V);
    Operation *Yield = Fusion.getBody().front().getTerminator();
    for (unsigned Output : S.stores) {
      Value V = Yield->getOperand(Output);
      if (Plan.extent(V) == Extent::Full)
        Count(V);
      else
        HasRowStores = true;
    }
    ElementBytes = std::max(ElementBytes, 1u);
    for (const Sweep::Step *Step : S.columnSteps)
      for (Combine How : Step->reduction.accumulators)
        AccumulatorWords += isWide(How) ? 2 : 1;
  }
};

} // namespace

/// The largest power of two that is at most \p Most and divides \p Size.
static unsigned vectorOf(int64_t Size, unsigned Most) {
  return std::min<uint64_t>(llvm::bit_floor(Most), uint64_t{1} << llvm::countr_zero(static_cast<uint64_t>(Size)));
}

// A multiprocessor's loads under way, 16 bytes a thread and a tensor, hide the memory's latency with about 64 bytes a
// thread.
static constexpr unsigned BytesUnderWay = 64;

static SweepTiling flatTiling(const RegionPlan &Plan, const Sweep &S, const Traffic &Bytes, unsigned Multiprocessors) {
  SweepTiling T;
  T.flat = true;
  T.vector = std::min<uint64_t>(16 / Bytes.SmallestBytes, llvm::bit_floor(static_cast<uint64_t>(Plan.elements())));
  int64_t Vectors = Plan.elements() / T.vector;
  T.lanes = T.threads;
  T.ahead = llvm::bit_floor(std::clamp(BytesUnderWay / (Bytes.ElementBytes * T.vector), 1u, 4u));
  if (S.allSteps.empty()) {
    // Few vectors are spread over all multiprocessors first.
    while (T.ahead > 1 && Vectors < int64_t{T.ahead} * T.threads * Multiprocessors * 4)
      T.ahead /= 2;
    T.rowBlocks = llvm::divideCeil(Vectors, int64_t{T.threads} * T.ahead);
    return T;
  }
  // A single block saves the launch of the combination.
  constexpr int64_t Alone = 32, Least = 8;
  int64_t OfThread = llvm::divideCeil(Vectors, T.threads);
  T.rowBlocks = OfThread <= Alone ? 1 : std::min<int64_t>(OfThread / Least, int64_t{Multiprocessors} * 8);
  return T;
}

// Rows of the space shared out over the blocks of a grid that has `Most` of them for one column tile.
static void shareRows(SweepTiling &T, int64_t Rows, int64_t Most) {
  constexpr int64_t Alone = 32, Least = 8;
  int64_t OfTeam = llvm::divideCeil(Rows, T.teams());
  int64_t Blocks = OfTeam <= Alone ? 1 : std::clamp<int64_t>(OfTeam / Least, 1, std::max<int64_t>(Most, 1));
  T.rowsPerBlock = llvm::divideCeil(Rows, Blocks);
  T.rowBlocks = llvm::divideCeil(Rows, T.rowsPerBlock);
}

static SweepTiling columnTiling(const RegionPlan &Plan, const Traffic &Bytes, unsigned Multiprocessors) {
  constexpr unsigned MostAccumulatorWords = 64;
  SweepTiling T;
  unsigned Most = 16 / Bytes.SmallestBytes;
  while (Most > 1 && Most * Bytes.AccumulatorWords > MostAccumulatorWords)
    Most /= 2;
  T.vector = vectorOf(Plan.columns(), Most);
  int64_t Vectors = Plan.columns() / T.vector;
  T.lanes = std::min<uint64_t>(32, llvm::PowerOf2Ceil(Vectors));
  T.columnTiles = llvm::divideCeil(Vectors, T.lanes);
  T.ahead = llvm::bit_floor(std::clamp(2 * BytesUnderWay / (Bytes.ElementBytes * T.vector), 1u, 4u));
  shareRows(T, Plan.rows(), int64_t{Multiprocessors} * 8 / T.columnTiles);
  return T;
}

static SweepTiling rowTiling(const RegionPlan &Plan, const Sweep &S, const Traffic &Bytes, unsigned Multiprocessors) {
  // A thread holds 32 elements of its row and 64 registers of its columns' sums. So 512 threads find room for the rest.
  constexpr unsigned MostElements = 32, MostBytes = 256, MostSlots = 8, MostThreads = 512;
  SweepTiling T;
  T.vector = vectorOf(Plan.columns(), 16 / Bytes.SmallestBytes);
  int64_t Vectors = Plan.columns() / T.vector;
  unsigned SlotBytes = (Bytes.ElementBytes + 4 * Bytes.AccumulatorWords) * T.vector;
  unsigned Slots = std::min(std::clamp(MostBytes / SlotBytes, 1u, MostSlots), MostElements / T.vector);
  bool Columns = !S.columnSteps.empty();
  uint64_t Lanes =
      llvm::PowerOf2Ceil(Vectors <= 32 ? Vectors : std::max<int64_t>(32, llvm::divideCeil(Vectors, Slots)));
  if (Lanes > MostThreads) {
    T.resident = false;
    T.lanes = T.threads = MostThreads;
    T.slots = std::min(Slots, 2u);
  } else {
    T.lanes = Lanes;
    T.slots = llvm::divideCeil(Vectors, T.lanes);
    // Small teams share a block. Columns are combined over as many as possible: that leaves fewer parts.
    T.threads = Columns ? std::max(T.lanes, 256u) : T.lanes <= 32 ? 128 : T.lanes;
  }
  if (Columns || !S.allSteps.empty()) {
    shareRows(T, Plan.rows(), int64_t{Multiprocessors} * (Columns ? 512 : 2048) / T.threads);
    return T;
  }
  T.rowsPerBlock = T.teams();
  T.rowBlocks = llvm::divideCeil(Plan.rows(), T.rowsPerBlock);
  return T;
}

SweepTiling tilingOf(const RegionPlan &Plan, FusionOp Fusion, const Sweep &S, unsigned Multiprocessors) {
  Traffic Bytes(Plan, Fusion, S);
  // A value of a row is stored by the only team that visits the row.
  if (!S.rowPasses.empty() || Bytes.HasRowStores)
    return rowTiling(Plan, S, Bytes, Multiprocessors);
  if (S.columnSteps.empty())
    return flatTiling(Plan, S, Bytes, Multiprocessors);
  return columnTiling(Plan, Bytes, Multiprocessors);
}

} // namespace mpc::codegen
