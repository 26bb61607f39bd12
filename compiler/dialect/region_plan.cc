#include "compiler/dialect/region_plan.h"

#include "compiler/dialect/fusible_space.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc::codegen {

static int64_t elementsOf(Value V) { return cast<RankedTensorType>(V.getType()).getNumElements(); }

static StringRef describe(Extent E) {
  switch (E) {
  case Extent::Full:
    return "whole";
  case Extent::PerRow:
    return "one value a row";
  case Extent::PerColumn:
    return "one value a column";
  case Extent::Single:
    return "a single value";
  }
  llvm_unreachable("an extent");
}

/// How \p Shape, aligned at the right, is broadcast to \p Result; sets \p Columns where that splits rows from columns.
static std::optional<Extent> broadcastExtent(ArrayRef<int64_t> Shape, ArrayRef<int64_t> Result, int64_t &Columns) {
  SmallVector<int64_t> Aligned(Result.size() - Shape.size(), 1);
  Aligned.append(Shape.begin(), Shape.end());
  if (ArrayRef<int64_t>(Aligned) == Result)
    return Extent::Full;
  if (llvm::all_of(Aligned, [](int64_t Size) { return Size == 1; }))
    return Extent::Single;
  size_t Leading = 0, Trailing = Aligned.size();
  while (Leading < Aligned.size() && Aligned[Leading] == 1)
    ++Leading;
  while (Trailing > 0 && Aligned[Trailing - 1] == 1)
    --Trailing;
  auto SizeFrom = [&](size_t From) { return llvm::product_of(Result.drop_front(From)); };
  if (ArrayRef<int64_t>(Aligned).drop_front(Leading) == Result.drop_front(Leading)) {
    Columns = SizeFrom(Leading);
    return Extent::PerColumn;
  }
  if (ArrayRef<int64_t>(Aligned).take_front(Trailing) == Result.take_front(Trailing)) {
    Columns = SizeFrom(Trailing);
    return Extent::PerRow;
  }
  return std::nullopt;
}

llvm::Expected<OperationSpace> elementwiseSpace(Operation *Op) {
  OperationSpace Space;
  auto Result = cast<RankedTensorType>(Op->getResult(0).getType());
  Space.elements = Result.getNumElements();
  for (Value Operand : Op->getOperands()) {
    auto Type = cast<RankedTensorType>(Operand.getType());
    int64_t Columns = 0;
    std::optional<Extent> E;
    if (Type.getRank() <= Result.getRank())
      E = broadcastExtent(Type.getShape(), Result.getShape(), Columns);
    if (!E || (Columns != 0 && Space.columns != 0 && Columns != Space.columns)) {
      std::string Text;
      llvm::raw_string_ostream(Text) << "operand " << Type << " is broadcast to " << Result
                                     << " neither by rows nor by columns";
      return unfit(Op, Text);
    }
    if (Columns != 0)
      Space.columns = Columns;
    Space.operands.push_back(*E);
  }
  for (Value V : Op->getResults()) {
    if (elementsOf(V) != Space.elements)
      return unfit(Op, "its results differ in size");
    Space.results.push_back(Extent::Full);
  }
  return Space;
}

// A view has the elements of its operand in their order.
static llvm::Expected<OperationSpace> spaceOf(Operation *Op) {
  if (isa<ViewLikeOpInterface>(Op)) {
    OperationSpace Space;
    Space.elements = elementsOf(Op->getResult(0));
    Space.operands = {Extent::Full};
    Space.results = {Extent::Full};
    return Space;
  }
  auto Fusible = dyn_cast<FusibleOpInterface>(Op);
  if (!Fusible)
    return unfit(Op, "it is not computed element by element");
  auto IsF64 = [](Type T) { return cast<RankedTensorType>(T).getElementType().isF64(); };
  // Sums of squares are f64 wherever they are computed.
  bool GivesF64 = llvm::any_of(Op->getResultTypes(), IsF64) && !isa<SumOfSquaresOp>(Op);
  if (llvm::any_of(Op->getOperandTypes(), IsF64) || GivesF64)
    return unfit(Op, "it computes in f32, and f64 is for the reference alone");
  auto IsCastOnly = [](Value V) { return isCastOnly(elementOf(V)); };
  if (llvm::any_of(Op->getOperands(), IsCastOnly) || llvm::any_of(Op->getResults(), IsCastOnly))
    return unfit(Op, "it casts a type that generated code does not know");
  return Fusible.getSpace();
}

llvm::Error RegionPlan::unify(Operation *Op, Value V, Extent E) {
  // With one row (or column), a value a column (or row) is the whole. With one element every value is the whole.
  auto [It, New] = Extents.try_emplace(V, E);
  if (New || It->second == E)
    return llvm::Error::success();
  return unfit(Op, llvm::formatv("a value is {0} here and {1} elsewhere", describe(E), describe(It->second)));
}

// The extent that each value has for the operations that use it. Where there are as many rows as columns, sizes do not
// tell.
static llvm::DenseMap<Value, Extent> extentsOfUses(ArrayRef<Operation *> Operations, int64_t Elements) {
  llvm::DenseMap<Value, Extent> Uses;
  for (Operation *Op : llvm::reverse(Operations)) {
    OperationSpace Space = llvm::cantFail(spaceOf(Op));
    bool Whole = Space.elements == Elements;
    auto Used = llvm::find_if(Op->getResults(), [&](Value Result) { return Uses.contains(Result); });
    if (!Whole && Used == Op->getResults().end())
      continue;
    Extent Outer = Whole ? Extent::Full : Uses.lookup(*Used);
    for (auto [Operand, E] : llvm::zip_equal(Op->getOperands(), Space.operands))
      if (Whole || E == Extent::Full)
        Uses.try_emplace(Operand, E == Extent::Full ? Outer : E);
  }
  return Uses;
}

// The extent of an operation on values that are smaller than the space, from a value whose extent is known.
Extent RegionPlan::outerExtent(Operation *Op, const OperationSpace &Space) const {
  if (Space.elements == 1)
    return Extent::Single;
  for (auto [Operand, E] : llvm::zip_equal(Op->getOperands(), Space.operands))
    if (auto It = Extents.find(Operand); E == Extent::Full && It != Extents.end())
      return It->second;
  for (Value Result : Op->getResults())
    if (auto It = Uses.find(Result); It != Uses.end())
      return It->second;
  return Space.elements == Columns ? Extent::PerColumn : Extent::PerRow;
}

// The extent in the region of values that are whole to an operation. Whole values of a smaller operation are rows,
// columns or single values of the region.
llvm::Expected<Extent> RegionPlan::wholeExtent(Operation *Op, const OperationSpace &Space, bool Reduces) const {
  if (Space.elements == Elements)
    return Extent::Full;
  if (isa<DropoutOp>(Op))
    return unfit(Op, "its mask follows from places in its own operand, which is smaller than the region");
  Extent Outer = outerExtent(Op, Space);
  int64_t Size = Outer == Extent::PerRow ? rows() : Outer == Extent::PerColumn ? columns() : 1;
  if (Space.elements != Size || Reduces)
    return unfit(Op,
                 llvm::formatv("it has {0} elements, the region {1} rows of {2}", Space.elements, rows(), columns()));
  return Outer;
}

// The extent in the region of a value that has extent `E` in an operation, whose whole values have extent `Whole`.
static llvm::Expected<Extent> inRegion(Operation *Op, Extent E, Extent Whole) {
  if (Whole == Extent::Full || E == Extent::Single)
    return E;
  if (E == Extent::Full)
    return Whole;
  return unfit(Op, "it is smaller than the region and broadcasts within itself");
}

llvm::Expected<SmallVector<Availability>> RegionPlan::addSteps(Operation *Op, ArrayRef<Reduction> Reductions,
                                                               Availability Terms) {
  SmallVector<Availability> After = {Terms};
  for (auto [Index, Step] : llvm::enumerate(Reductions)) {
    // A row's values belong to the sweep that reduced the row.
    if (Step.axis == Axis::Row && Terms.sweep > 0)
      return unfit(Op, "it reduces rows of what a reduction of columns gives");
    Steps.push_back({Op, static_cast<unsigned>(Index), Step, Terms});
    if (Step.axis == Axis::Row)
      ++Terms.phase;
    else
      Terms = {Terms.sweep + 1, 0};
    After.push_back(Terms);
    Sweeps = std::max(Sweeps, Terms.sweep + 1);
  }
  return After;
}

llvm::Error RegionPlan::place(Operation *Op) {
  llvm::Expected<OperationSpace> Space = spaceOf(Op);
  if (!Space)
    return Space.takeError();
  auto Fusible = dyn_cast<FusibleOpInterface>(Op);
  SmallVector<Reduction> Reductions = Fusible ? Fusible.getReductions() : SmallVector<Reduction>();
  llvm::Expected<Extent> Whole = wholeExtent(Op, *Space, !Reductions.empty());
  if (!Whole)
    return Whole.takeError();

  Availability OfOperands;
  for (auto [Operand, E] : llvm::zip_equal(Op->getOperands(), Space->operands)) {
    llvm::Expected<Extent> Mapped = inRegion(Op, E, *Whole);
    if (!Mapped)
      return Mapped.takeError();
    if (llvm::Error Failure = unify(Op, Operand, *Mapped))
      return Failure;
    OfOperands = std::max(OfOperands, available(Operand));
  }
  llvm::Expected<SmallVector<Availability>> After = addSteps(Op, Reductions, OfOperands);
  if (!After)
    return After.takeError();
  for (auto [Index, Result] : llvm::enumerate(Op->getResults())) {
    llvm::Expected<Extent> Mapped = inRegion(Op, Space->results[Index], *Whole);
    if (!Mapped)
      return Mapped.takeError();
    Extents[Result] = *Mapped;
    When[Result] = Space->reductionsBefore.empty() ? After->back() : (*After)[Space->reductionsBefore[Index]];
  }
  return llvm::Error::success();
}

// Whether computing \p V once more, in a later sweep, takes the reduced value of a row, which only the sweep that
// reduced it has. Stored values are read back, and results of a combination are kept.
bool RegionPlan::needsRowAgain(Value V, llvm::SmallPtrSetImpl<Value> &Settled) const {
  Operation *Op = V.getDefiningOp();
  if (!Op || !llvm::is_contained(Body, Op) || !Settled.insert(V).second)
    return false;
  Extent E = extent(V);
  if (E == Extent::PerColumn || E == Extent::Single)
    return false;
  return reducesRows(Op) ||
         llvm::any_of(Op->getOperands(), [&](Value Operand) { return needsRowAgain(Operand, Settled); });
}

bool RegionPlan::reducesRows(Operation *Op) const {
  return llvm::any_of(Steps, [&](const Step &S) { return S.op == Op && S.reduction.axis == Axis::Row; });
}

llvm::Error RegionPlan::checkLaterSweeps(ValueRange Stored) const {
  // Values that need none: those that are stored, then those that were looked at. The first that does ends the search.
  llvm::SmallPtrSet<Value, 8> Settled(Stored.begin(), Stored.end());
  for (Operation *Op : Body) {
    bool Later = llvm::any_of(Steps, [&](const Step &S) { return S.op == Op && S.when.sweep > 0; }) ||
                 llvm::any_of(Op->getResults(), [&](Value Result) {
                   Extent E = extent(Result);
                   return (E == Extent::Full || E == Extent::PerRow) && available(Result).sweep > 0;
                 });
    if (Later &&
        (reducesRows(Op) || llvm::any_of(Op->getOperands(), [&](Value V) { return needsRowAgain(V, Settled); })))
      return unfit(Op, "it needs the reduced value of a row after a reduction of columns");
  }
  return llvm::Error::success();
}

llvm::Expected<RegionPlan> RegionPlan::of(ArrayRef<Operation *> Operations, ValueRange Stored) {
  RegionPlan Plan;
  Plan.Body.assign(Operations.begin(), Operations.end());
  int64_t Columns = 0;
  for (Operation *Op : Operations) {
    llvm::Expected<OperationSpace> Space = spaceOf(Op);
    if (!Space)
      return Space.takeError();
    if (Space->elements < Plan.Elements)
      continue;
    if (Space->elements > Plan.Elements)
      Columns = 0;
    Plan.Elements = Space->elements;
    if (Space->columns != 0 && Columns != 0 && Space->columns != Columns)
      return unfit(Op, llvm::formatv("its rows have {0} elements, the region's {1}", Space->columns, Columns));
    if (Space->columns != 0)
      Columns = Space->columns;
  }
  Plan.Columns = Columns != 0 ? Columns : Plan.Elements;
  Plan.Uses = extentsOfUses(Operations, Plan.Elements);
  for (Operation *Op : Operations)
    if (llvm::Error Failure = Plan.place(Op))
      return Failure;
  // A row's value is at hand while its row is visited; the sweeps after a combination would have to reduce it again.
  for (Operation *Op : Operations)
    for (Value Operand : Op->getOperands()) {
      bool Reduced = Plan.extent(Operand) == Extent::PerRow && Plan.available(Operand).phase > 0;
      if (Reduced && Plan.available(Op->getResult(0)).sweep > Plan.available(Operand).sweep &&
          !llvm::any_of(Plan.Steps, [&](const Step &S) { return S.op == Op && S.when.sweep == 0; }))
        return unfit(Op, "it needs the reduced value of a row after a reduction of columns");
    }
  if (llvm::Error Failure = Plan.checkLaterSweeps(Stored))
    return Failure;
  llvm::stable_sort(Plan.Steps, [](const Step &A, const Step &B) { return A.when < B.when; });
  return Plan;
}

llvm::Expected<RegionPlan> RegionPlan::of(FusionOp Fusion) {
  SmallVector<Operation *> Operations;
  for (Operation &Op : Fusion.getBody().front().without_terminator())
    Operations.push_back(&Op);
  return of(Operations, Fusion.getBody().front().getTerminator()->getOperands());
}

unsigned RegionPlan::numPhases(unsigned Sweep) const {
  unsigned Phases = 1;
  for (const Step &S : Steps)
    if (S.when.sweep == Sweep && S.reduction.axis == Axis::Row)
      Phases = std::max(Phases, S.when.phase + 2);
  return Phases;
}

bool RegionPlan::endsInCombination(unsigned Sweep) const {
  return llvm::any_of(Steps, [&](const Step &S) { return S.when.sweep == Sweep && S.reduction.axis != Axis::Row; });
}

} // namespace mpc::codegen
