#include "passes/memory/recompute_candidates.h"

#include "compiler/analysis/block_dependences.h"
#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/matrix_work.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/memory/recompute_marks.h"

#include <map>

using namespace mlir;

namespace mpc {

/// Values below this size are not worth an operation.
static constexpr int64_t smallestSaving = 4096;
/// A kept value costs next to nothing if it is at most this share of the value that it helps to give up. Statistics of
/// channels are an example.
static constexpr int64_t negligibleShare = 16;
static constexpr unsigned longestChain = 16;

static bool holdsInside(FusionOp fusion, bool (*holds)(Operation *)) {
  return llvm::all_of(fusion.getBody().front().without_terminator(), [&](Operation &nested) { return holds(&nested); });
}

static bool isRecomputable(Operation *op) {
  if (auto fusion = dyn_cast<FusionOp>(op))
    return holdsInside(fusion, isRecomputable);
  return mayRunAgain(op) && op->getNumRegions() == 0 && !isBackwardOp(op) && !has<Property::DecidesStep>(op) &&
         !has<Property::Collective>(op);
}

static bool isSimple(Operation *op) {
  if (auto fusion = dyn_cast<FusionOp>(op))
    return holdsInside(fusion, isSimple);
  return isMovementOrCast(op) || has<Property::SimpleArithmetic>(op);
}

// Bytes moved stand for time; an element of exp, gelu or dropout takes as long as moving a few more.
static double workOf(Operation *op) {
  if (isa<ViewLikeOpInterface>(op))
    return 0;
  double bytes = 0;
  for (Value v : op->getOperands())
    bytes += bytesOf(v);
  for (Value v : op->getResults())
    bytes += bytesOf(v);
  // About 100 FLOP are done in the time of moving a byte.
  return (isSimple(op) ? 1 : 2) * bytes + matrixFlops(op) / 100;
}

namespace {

/// Finds, for a value that is kept, the operations between it and other values that are there anyway.
class ChainFinder {
public:
  ChainFinder(const llvm::SetVector<Value> &saved, const llvm::DenseSet<Value> &givenUp)
      : saved(saved), givenUp(givenUp) {}

  /// False where there is no such chain.
  bool find(Value v) {
    limit = bytesOf(v) / negligibleShare;
    return visit(v, /*isEnd=*/true);
  }
  SmallVector<Value> chain;
  SmallVector<Value> sources; ///< saved values that the chain begins at
  double work = 0;

private:
  bool isAtHand(Value v) {
    if (isa<BlockArgument>(v) || v.getDefiningOp<ConstantOp>())
      return true;
    Value source = behindViews(v);
    if (isa<BlockArgument>(source) || source.getDefiningOp<ConstantOp>())
      return true;
    if (saved.contains(source) && !givenUp.contains(source)) {
      sources.push_back(source);
      return true;
    }
    return bytesOf(v) <= limit;
  }

  bool visit(Value v, bool isEnd) {
    if (!isEnd && isAtHand(v))
      return true;
    if (givenUp.contains(v) && !isEnd)
      return false;
    Operation *op = v.getDefiningOp();
    if (llvm::is_contained(chain, v))
      return true;
    if (!op || !isRecomputable(op) || matrixFlops(op) > 0 || chain.size() >= longestChain)
      return false;
    if (llvm::none_of(chain, [&](Value known) { return known.getDefiningOp() == op; }))
      work += workOf(op);
    chain.push_back(v);
    return llvm::all_of(op->getOperands(), [&](Value operand) { return visit(operand, false); });
  }

  const llvm::SetVector<Value> &saved;
  const llvm::DenseSet<Value> &givenUp;
  int64_t limit = 0;
};

} // namespace

CheapCandidates::CheapCandidates(Block &body) {
  llvm::SetVector<Value> saved = savedValues(body);
  // The values that a chain begins at have to be kept.
  llvm::DenseSet<Value> givenUp, needed;
  // A chain costs the same for as long as there is one.
  SmallVector<std::pair<double, Value>> byRatio;
  for (Value v : saved)
    if (ChainFinder chain(saved, givenUp); bytesOf(v) >= smallestSaving && chain.find(v))
      byRatio.push_back({chain.work / static_cast<double>(bytesOf(v)), v});
  llvm::stable_sort(byRatio, llvm::less_first());
  for (auto [ratio, v] : byRatio) {
    ChainFinder chain(saved, givenUp);
    if (needed.contains(v) || !chain.find(v))
      continue;
    givenUp.insert(v);
    needed.insert_range(chain.sources);
    order.push_back({v, chain.chain});
  }
}

// The backward pass may read it under other shapes.
static void addWithViews(Value v, StringRef why, Recomputation &chosen) {
  if (!chosen.contains(v))
    chosen.add(v, why);
  for (Operation *user : v.getUsers())
    if (auto view = dyn_cast<ViewLikeOpInterface>(user); view && !isBackwardOp(user))
      addWithViews(view.getViewDest(), why, chosen);
}

void CheapCandidates::add(unsigned count, Recomputation &chosen) const {
  for (const Candidate &given : llvm::ArrayRef(order).take_front(count))
    for (Value v : given.chain)
      addWithViews(v, pathOf(given.saved.getDefiningOp()), chosen);
}

//===-- Cells -----------------------------------------------------------------------------------------------------===//

/// The call that stands for a Cell: its operations, without those that recomputing has no use for.
static std::optional<int64_t> callIn(Operation *op, ArrayRef<StringRef> cells) {
  if (!isRecomputable(op))
    return std::nullopt;
  for (auto [index, cell] : llvm::enumerate(cells))
    if (liesInCell(pathOf(op), cell))
      return static_cast<int64_t>(index);
  return std::nullopt;
}

namespace {

struct CellCost {
  int64_t saved = 0;
  double work = 0;
};

/// The bytes that a Cell would save, and the work of computing it again.
CellCost costOf(Block &body, StringRef cell, const llvm::SetVector<Value> &saved) {
  Recomputation chosen(body);
  addCalls(
      body, [&](Operation *op) { return callIn(op, {cell}); }, chosen);
  CellCost cost;
  for (Value v : saved)
    if (chosen.contains(v))
      cost.saved += bytesOf(v);
  for (Operation &op : body)
    if (callIn(&op, {cell}))
      cost.work += workOf(&op);
  return cost;
}

} // namespace

CellCandidates::CellCandidates(Block &body) {
  llvm::SetVector<Value> saved = savedValues(body);
  // The deepest Cells come last.
  std::map<StringRef, CellCost> costs;
  for (Operation &op : body.without_terminator())
    if (!isBackwardOp(&op) && isRecomputable(&op))
      for (StringRef path = pathOf(&op); !path.empty(); path = path.contains('/') ? path.rsplit('/').first : "")
        costs.try_emplace(path);
  for (auto &[path, cost] : costs)
    cost = costOf(body, path, saved);
  auto isOutermostThatPays = [&](StringRef path) {
    // The Cells inside are better where they save half of what this one saves. They are computed again one after the
    // other, at a lower peak.
    int64_t inside = 0;
    for (const auto &[other, cost] : costs)
      if (other != path && liesInCell(other, path) && !other.drop_front(path.size() + 1).contains('/'))
        inside += cost.saved;
    return costs[path].saved >= smallestSaving && 2 * inside < costs[path].saved;
  };
  for (const auto &[path, cost] : costs) {
    StringRef candidate = path;
    if (isOutermostThatPays(candidate) &&
        llvm::none_of(paths, [&](StringRef other) { return liesInCell(candidate, other); }))
      paths.push_back(candidate);
  }
  llvm::stable_sort(paths, [&](StringRef l, StringRef r) {
    return costs[l].work * static_cast<double>(costs[r].saved) < costs[r].work * static_cast<double>(costs[l].saved);
  });
}

void CellCandidates::add(Block &body, unsigned count, Recomputation &chosen) const {
  ArrayRef<StringRef> cells = ArrayRef(paths).take_front(count);
  addCalls(
      body, [&](Operation *op) { return callIn(op, cells); }, chosen);
}

} // namespace mpc
