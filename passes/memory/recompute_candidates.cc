#include "passes/memory/recompute_candidates.h"

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
static constexpr int64_t SmallestSaving = 4096;
/// A kept value costs next to nothing if it is at most this share of the value that it helps to give up. Statistics of
/// channels are an example.
static constexpr int64_t NegligibleShare = 16;
static constexpr unsigned LongestChain = 16;

static bool holdsInside(FusionOp Fusion, bool (*Holds)(Operation *)) {
  return llvm::all_of(Fusion.getBody().front().without_terminator(), [&](Operation &Nested) { return Holds(&Nested); });
}

static bool isRecomputable(Operation *Op) {
  if (auto Fusion = dyn_cast<FusionOp>(Op))
    return holdsInside(Fusion, isRecomputable);
  return isMemoryEffectFree(Op) && Op->getNumRegions() == 0 && !Op->hasTrait<StateUpdate>() && !isBackwardOp(Op) &&
         !has<Property::DecidesStep>(Op);
}

static bool isSimple(Operation *Op) {
  if (auto Fusion = dyn_cast<FusionOp>(Op))
    return holdsInside(Fusion, isSimple);
  return isMovementOrCast(Op) || has<Property::SimpleArithmetic>(Op);
}

// Bytes moved stand for time; an element of exp, gelu or dropout takes as long as moving a few more.
static double workOf(Operation *Op) {
  if (isa<ViewLikeOpInterface>(Op))
    return 0;
  double Bytes = 0;
  for (Value V : Op->getOperands())
    Bytes += bytesOf(V);
  for (Value V : Op->getResults())
    Bytes += bytesOf(V);
  // About 100 FLOP are done in the time of moving a byte.
  return (isSimple(Op) ? 1 : 2) * Bytes + matrixFlops(Op) / 100;
}

namespace {

/// Finds, for a value that is kept, the operations between it and other values that are there anyway.
class ChainFinder {
public:
  ChainFinder(const llvm::SetVector<Value> &Saved, const llvm::DenseSet<Value> &GivenUp)
      : Saved(Saved), GivenUp(GivenUp) {}

  /// False where there is no such chain.
  bool find(Value V) {
    Limit = bytesOf(V) / NegligibleShare;
    return visit(V, /*IsEnd=*/true);
  }
  SmallVector<Value> Chain;
  SmallVector<Value> Sources; ///< saved values that the chain begins at
  double Work = 0;

private:
  bool isAtHand(Value V) {
    if (isa<BlockArgument>(V) || V.getDefiningOp<ConstantOp>())
      return true;
    Value Source = behindViews(V);
    if (isa<BlockArgument>(Source) || Source.getDefiningOp<ConstantOp>())
      return true;
    if (Saved.contains(Source) && !GivenUp.contains(Source)) {
      Sources.push_back(Source);
      return true;
    }
    return bytesOf(V) <= Limit;
  }

  bool visit(Value V, bool IsEnd) {
    if (!IsEnd && isAtHand(V))
      return true;
    if (GivenUp.contains(V) && !IsEnd)
      return false;
    Operation *Op = V.getDefiningOp();
    if (llvm::is_contained(Chain, V))
      return true;
    if (!Op || !isRecomputable(Op) || matrixFlops(Op) > 0 || Chain.size() >= LongestChain)
      return false;
    if (llvm::none_of(Chain, [&](Value Known) { return Known.getDefiningOp() == Op; }))
      Work += workOf(Op);
    Chain.push_back(V);
    return llvm::all_of(Op->getOperands(), [&](Value Operand) { return visit(Operand, false); });
  }

  const llvm::SetVector<Value> &Saved;
  const llvm::DenseSet<Value> &GivenUp;
  int64_t Limit = 0;
};

} // namespace

CheapCandidates::CheapCandidates(Block &Body) {
  llvm::SetVector<Value> Saved = savedValues(Body);
  // The values that a chain begins at have to be kept.
  llvm::DenseSet<Value> GivenUp, Needed;
  while (true) {
    std::optional<ChainFinder> Best;
    Value BestValue;
    double BestRatio = 0;
    for (Value V : Saved) {
      if (bytesOf(V) < SmallestSaving || GivenUp.contains(V) || Needed.contains(V))
        continue;
      ChainFinder Chain(Saved, GivenUp);
      if (!Chain.find(V))
        continue;
      double Ratio = Chain.Work / static_cast<double>(bytesOf(V));
      if (!BestValue || Ratio < BestRatio) {
        Best.emplace(Chain);
        BestValue = V;
        BestRatio = Ratio;
      }
    }
    if (!BestValue)
      return;
    GivenUp.insert(BestValue);
    Needed.insert_range(Best->Sources);
    Order.push_back({BestValue, Best->Chain});
  }
}

// The backward pass may read it under other shapes.
static void addWithViews(Value V, StringRef Why, Recomputation &Chosen) {
  if (!Chosen.contains(V))
    Chosen.add(V, Why);
  for (Operation *User : V.getUsers())
    if (auto View = dyn_cast<ViewLikeOpInterface>(User); View && !isBackwardOp(User))
      addWithViews(View.getViewDest(), Why, Chosen);
}

void CheapCandidates::add(unsigned Count, Recomputation &Chosen) const {
  for (const Candidate &Given : llvm::ArrayRef(Order).take_front(Count))
    for (Value V : Given.Chain)
      addWithViews(V, pathOf(Given.Saved.getDefiningOp()), Chosen);
}

//===-- Cells -----------------------------------------------------------------------------------------------------===//

/// The call that stands for a Cell: its operations, without those that recomputing has no use for.
static std::optional<int64_t> callIn(Operation *Op, ArrayRef<StringRef> Cells) {
  if (!isRecomputable(Op))
    return std::nullopt;
  for (auto [Index, Cell] : llvm::enumerate(Cells))
    if (liesInCell(pathOf(Op), Cell))
      return static_cast<int64_t>(Index);
  return std::nullopt;
}

namespace {

struct CellCost {
  int64_t Saved = 0;
  double Work = 0;
};

/// The bytes that a Cell would save, and the work of computing it again.
CellCost costOf(Block &Body, StringRef Cell, const llvm::SetVector<Value> &Saved) {
  Recomputation Chosen(Body);
  addCalls(
      Body, [&](Operation *Op) { return callIn(Op, {Cell}); }, Chosen);
  CellCost Cost;
  for (Value V : Saved)
    if (Chosen.contains(V))
      Cost.Saved += bytesOf(V);
  for (Operation &Op : Body)
    if (callIn(&Op, {Cell}))
      Cost.Work += workOf(&Op);
  return Cost;
}

} // namespace

CellCandidates::CellCandidates(Block &Body) {
  llvm::SetVector<Value> Saved = savedValues(Body);
  // The deepest Cells come last.
  std::map<StringRef, CellCost> Costs;
  for (Operation &Op : Body.without_terminator())
    if (!isBackwardOp(&Op) && isRecomputable(&Op))
      for (StringRef Path = pathOf(&Op); !Path.empty(); Path = Path.contains('/') ? Path.rsplit('/').first : "")
        Costs.try_emplace(Path);
  for (auto &[Path, Cost] : Costs)
    Cost = costOf(Body, Path, Saved);
  auto IsOutermostThatPays = [&](StringRef Path) {
    // The Cells inside are better where they save half of what this one saves. They are computed again one after the
    // other, at a lower peak.
    int64_t Inside = 0;
    for (const auto &[Other, Cost] : Costs)
      if (Other != Path && liesInCell(Other, Path) && !Other.drop_front(Path.size() + 1).contains('/'))
        Inside += Cost.Saved;
    return Costs[Path].Saved >= SmallestSaving && 2 * Inside < Costs[Path].Saved;
  };
  for (const auto &[Path, Cost] : Costs) {
    StringRef Candidate = Path;
    if (IsOutermostThatPays(Candidate) &&
        llvm::none_of(Paths, [&](StringRef Other) { return liesInCell(Candidate, Other); }))
      Paths.push_back(Candidate);
  }
  llvm::stable_sort(Paths, [&](StringRef L, StringRef R) {
    return Costs[L].Work * static_cast<double>(Costs[R].Saved) < Costs[R].Work * static_cast<double>(Costs[L].Saved);
  });
}

void CellCandidates::add(Block &Body, unsigned Count, Recomputation &Chosen) const {
  ArrayRef<StringRef> Cells = ArrayRef(Paths).take_front(Count);
  addCalls(
      Body, [&](Operation *Op) { return callIn(Op, Cells); }, Chosen);
}

} // namespace mpc
