#include "compiler/dialect/fusion_plan.h"

#include "compiler/dialect/fusible_space.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc::codegen {

static StringRef describe(Extent e) {
  switch (e) {
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

/// How \p shape, aligned at the right, is broadcast to \p result; sets \p columns where that splits rows from columns.
static std::optional<Extent> broadcastExtent(ArrayRef<int64_t> shape, ArrayRef<int64_t> result, int64_t &columns) {
  SmallVector<int64_t> aligned(result.size() - shape.size(), 1);
  aligned.append(shape.begin(), shape.end());
  if (ArrayRef<int64_t>(aligned) == result)
    return Extent::Full;
  if (llvm::all_of(aligned, [](int64_t size) { return size == 1; }))
    return Extent::Single;
  size_t leading = 0, trailing = aligned.size();
  while (leading < aligned.size() && aligned[leading] == 1)
    ++leading;
  while (trailing > 0 && aligned[trailing - 1] == 1)
    --trailing;
  auto sizeFrom = [&](size_t from) { return llvm::product_of(result.drop_front(from)); };
  if (ArrayRef<int64_t>(aligned).drop_front(leading) == result.drop_front(leading)) {
    columns = sizeFrom(leading);
    return Extent::PerColumn;
  }
  if (ArrayRef<int64_t>(aligned).take_front(trailing) == result.take_front(trailing)) {
    columns = sizeFrom(trailing);
    return Extent::PerRow;
  }
  return std::nullopt;
}

llvm::Expected<OperationSpace> elementwiseSpace(Operation *op) {
  OperationSpace space;
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  space.elements = result.getNumElements();
  for (Value operand : op->getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    int64_t columns = 0;
    std::optional<Extent> e;
    if (type.getRank() <= result.getRank())
      e = broadcastExtent(type.getShape(), result.getShape(), columns);
    if (!e || (columns != 0 && space.columns != 0 && columns != space.columns)) {
      std::string text;
      llvm::raw_string_ostream(text) << "operand " << type << " is broadcast to " << result
                                     << " neither by rows nor by columns";
      return unfit(op, text);
    }
    if (columns != 0)
      space.columns = columns;
    space.operands.push_back(*e);
  }
  for (Value v : op->getResults()) {
    if (elementCount(v) != space.elements)
      return unfit(op, "its results differ in size");
    space.results.push_back(Extent::Full);
  }
  return space;
}

// A view has the elements of its operand in their order.
static llvm::Expected<OperationSpace> spaceOf(Operation *op) {
  if (isa<ViewLikeOpInterface>(op)) {
    OperationSpace space;
    space.elements = elementCount(op->getResult(0));
    space.operands = {Extent::Full};
    space.results = {Extent::Full};
    return space;
  }
  auto fusible = dyn_cast<FusibleOpInterface>(op);
  if (!fusible)
    return unfit(op, "it is not computed element by element");
  auto isF64 = [](Type t) { return cast<RankedTensorType>(t).getElementType().isF64(); };
  // Sums of squares are f64 wherever they are computed.
  bool givesF64 = llvm::any_of(op->getResultTypes(), isF64) && !isa<SumOfSquaresOp>(op);
  if (llvm::any_of(op->getOperandTypes(), isF64) || givesF64)
    return unfit(op, "it computes in f32, and f64 is for the reference alone");
  auto hasNoCode = [](Value v) { return isCastOnly(elementOf(v)); };
  if (llvm::any_of(op->getOperands(), hasNoCode) || llvm::any_of(op->getResults(), hasNoCode))
    return unfit(op, "it casts a type that generated code does not know");
  return fusible.getSpace();
}

llvm::Error FusionPlan::unify(Operation *op, Value v, Extent e) {
  // With one row (or column), a value a column (or row) is the whole. With one element every value is the whole.
  auto [it, isNew] = extents.try_emplace(v, e);
  if (isNew || it->second == e)
    return llvm::Error::success();
  return unfit(op, llvm::formatv("a value is {0} here and {1} elsewhere", describe(e), describe(it->second)));
}

// The extent that each value has for the operations that use it. Where there are as many rows as columns, sizes do not
// tell.
static llvm::DenseMap<Value, Extent> extentsOfUses(ArrayRef<Operation *> operations, int64_t elements) {
  llvm::DenseMap<Value, Extent> uses;
  for (Operation *op : llvm::reverse(operations)) {
    OperationSpace space = llvm::cantFail(spaceOf(op));
    bool whole = space.elements == elements;
    auto used = llvm::find_if(op->getResults(), [&](Value result) { return uses.contains(result); });
    if (!whole && used == op->getResults().end())
      continue;
    Extent outer = whole ? Extent::Full : uses.lookup(*used);
    for (auto [operand, e] : llvm::zip_equal(op->getOperands(), space.operands))
      if (whole || e == Extent::Full)
        uses.try_emplace(operand, e == Extent::Full ? outer : e);
  }
  return uses;
}

// The extent of an operation on values that are smaller than the space, from a value whose extent is known.
Extent FusionPlan::outerExtent(Operation *op, const OperationSpace &space) const {
  if (space.elements == 1)
    return Extent::Single;
  for (auto [operand, e] : llvm::zip_equal(op->getOperands(), space.operands))
    if (auto it = extents.find(operand); e == Extent::Full && it != extents.end())
      return it->second;
  for (Value result : op->getResults())
    if (auto it = uses.find(result); it != uses.end())
      return it->second;
  return space.elements == columns ? Extent::PerColumn : Extent::PerRow;
}

// The extent in the region of values that are whole to an operation. Whole values of a smaller operation are rows,
// columns or single values of the region.
llvm::Expected<Extent> FusionPlan::wholeExtent(Operation *op, const OperationSpace &space, bool reduces) const {
  if (space.elements == elements)
    return Extent::Full;
  if (isa<DropoutOp>(op))
    return unfit(op, "its mask follows from places in its own operand, which is smaller than the region");
  Extent outer = outerExtent(op, space);
  int64_t size = outer == Extent::PerRow ? rows() : outer == Extent::PerColumn ? getColumns() : 1;
  if (space.elements != size || reduces)
    return unfit(
        op, llvm::formatv("it has {0} elements, the region {1} rows of {2}", space.elements, rows(), getColumns()));
  return outer;
}

// The extent in the region of a value that has extent `e` in an operation, whose whole values have extent `whole`.
static llvm::Expected<Extent> inRegion(Operation *op, Extent e, Extent whole) {
  if (whole == Extent::Full || e == Extent::Single)
    return e;
  if (e == Extent::Full)
    return whole;
  return unfit(op, "it is smaller than the region and broadcasts within itself");
}

llvm::Expected<SmallVector<Availability>> FusionPlan::addSteps(Operation *op, ArrayRef<Reduction> reductions,
                                                               Availability terms) {
  SmallVector<Availability> after = {terms};
  for (auto [index, step] : llvm::enumerate(reductions)) {
    // A row's values belong to the sweep that reduced the row.
    if (step.axis == Axis::Row && terms.sweep > 0)
      return unfit(op, "it reduces rows of what a reduction of columns gives");
    steps.push_back({op, static_cast<unsigned>(index), step, terms});
    if (step.axis == Axis::Row)
      ++terms.phase;
    else
      terms = {terms.sweep + 1, 0};
    after.push_back(terms);
    sweeps = std::max(sweeps, terms.sweep + 1);
  }
  return after;
}

llvm::Error FusionPlan::place(Operation *op) {
  llvm::Expected<OperationSpace> space = spaceOf(op);
  if (!space)
    return space.takeError();
  auto fusible = dyn_cast<FusibleOpInterface>(op);
  SmallVector<Reduction> reductions = fusible ? fusible.getReductions() : SmallVector<Reduction>();
  llvm::Expected<Extent> whole = wholeExtent(op, *space, !reductions.empty());
  if (!whole)
    return whole.takeError();

  Availability ofOperands;
  for (auto [operand, e] : llvm::zip_equal(op->getOperands(), space->operands)) {
    llvm::Expected<Extent> mapped = inRegion(op, e, *whole);
    if (!mapped)
      return mapped.takeError();
    if (llvm::Error failure = unify(op, operand, *mapped))
      return failure;
    ofOperands = std::max(ofOperands, available(operand));
  }
  llvm::Expected<SmallVector<Availability>> after = addSteps(op, reductions, ofOperands);
  if (!after)
    return after.takeError();
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    llvm::Expected<Extent> mapped = inRegion(op, space->results[index], *whole);
    if (!mapped)
      return mapped.takeError();
    extents[result] = *mapped;
    when[result] = space->reductionsBefore.empty() ? after->back() : (*after)[space->reductionsBefore[index]];
  }
  return llvm::Error::success();
}

// Whether computing \p v once more, in a later sweep, takes the reduced value of a row, which only the sweep that
// reduced it has. Stored values are read back, and results of a combination are kept.
bool FusionPlan::needsRowAgain(Value v, llvm::SmallPtrSetImpl<Value> &settled) const {
  if (isInput(v) || !settled.insert(v).second)
    return false;
  Operation *op = v.getDefiningOp();
  Extent e = extent(v);
  if (e == Extent::PerColumn || e == Extent::Single)
    return false;
  return reducesRows(op) ||
         llvm::any_of(op->getOperands(), [&](Value operand) { return needsRowAgain(operand, settled); });
}

bool FusionPlan::isReduced(Value v) const {
  Operation *op = v.getDefiningOp();
  return extent(v) != Extent::Full && llvm::any_of(steps, [&](const Step &s) { return s.op == op; });
}

bool FusionPlan::reducesRows(Operation *op) const {
  return llvm::any_of(steps, [&](const Step &s) { return s.op == op && s.reduction.axis == Axis::Row; });
}

llvm::Error FusionPlan::checkLaterSweeps(ValueRange stored) const {
  // Values that need none: those that are stored, then those that were looked at. The first that does ends the search.
  llvm::SmallPtrSet<Value, 8> settled(stored.begin(), stored.end());
  for (Operation *op : body) {
    bool later = llvm::any_of(steps, [&](const Step &s) { return s.op == op && s.when.sweep > 0; }) ||
                 llvm::any_of(op->getResults(), [&](Value result) {
                   Extent e = extent(result);
                   return (e == Extent::Full || e == Extent::PerRow) && available(result).sweep > 0;
                 });
    if (later &&
        (reducesRows(op) || llvm::any_of(op->getOperands(), [&](Value v) { return needsRowAgain(v, settled); })))
      return unfit(op, "it needs the reduced value of a row after a reduction of columns");
  }
  return llvm::Error::success();
}

llvm::Expected<FusionPlan> FusionPlan::create(ArrayRef<Operation *> operations, ValueRange stored) {
  FusionPlan plan;
  plan.body.assign(operations.begin(), operations.end());
  plan.members.insert(operations.begin(), operations.end());
  int64_t columns = 0;
  for (Operation *op : operations) {
    llvm::Expected<OperationSpace> space = spaceOf(op);
    if (!space)
      return space.takeError();
    if (space->elements < plan.elements)
      continue;
    if (space->elements > plan.elements)
      columns = 0;
    plan.elements = space->elements;
    if (space->columns != 0 && columns != 0 && space->columns != columns)
      return unfit(op, llvm::formatv("its rows have {0} elements, the region's {1}", space->columns, columns));
    if (space->columns != 0)
      columns = space->columns;
  }
  plan.columns = columns != 0 ? columns : plan.elements;
  plan.uses = extentsOfUses(operations, plan.elements);
  for (Operation *op : operations)
    if (llvm::Error failure = plan.place(op))
      return failure;
  // A row's value is at hand while its row is visited; the sweeps after a combination would have to reduce it again.
  for (Operation *op : operations)
    for (Value operand : op->getOperands()) {
      bool reduced = plan.extent(operand) == Extent::PerRow && plan.available(operand).phase > 0;
      if (reduced && plan.available(op->getResult(0)).sweep > plan.available(operand).sweep &&
          !llvm::any_of(plan.steps, [&](const Step &s) { return s.op == op && s.when.sweep == 0; }))
        return unfit(op, "it needs the reduced value of a row after a reduction of columns");
    }
  if (llvm::Error failure = plan.checkLaterSweeps(stored))
    return failure;
  llvm::stable_sort(plan.steps, [](const Step &a, const Step &b) { return a.when < b.when; });
  return plan;
}

llvm::Expected<FusionPlan> FusionPlan::create(FusionOp fusion) {
  SmallVector<Operation *> operations;
  for (Operation &op : fusion.getBody().front().without_terminator())
    operations.push_back(&op);
  return create(operations, fusion.getBody().front().getTerminator()->getOperands());
}

unsigned FusionPlan::numPhases(unsigned sweep) const {
  unsigned phases = 1;
  for (const Step &s : steps)
    if (s.when.sweep == sweep && s.reduction.axis == Axis::Row)
      phases = std::max(phases, s.when.phase + 2);
  return phases;
}

bool FusionPlan::endsInCombination(unsigned sweep) const {
  return llvm::any_of(steps, [&](const Step &s) { return s.when.sweep == sweep && s.reduction.axis != Axis::Row; });
}

} // namespace mpc::codegen
