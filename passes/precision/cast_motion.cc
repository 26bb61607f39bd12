#include "passes/precision/cast_motion.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

static bool isWiderThan(Value wide, Value narrow) {
  return isFloating(wide) && isFloating(narrow) && elementOf(wide) != elementOf(narrow) &&
         widensExactly(elementOf(narrow), elementOf(wide));
}

bool isWidening(CastOp cast) { return isWiderThan(cast.getY(), cast.getX()); }

bool isNarrowing(CastOp cast) { return isWiderThan(cast.getX(), cast.getY()); }

static bool isDataMovement(Operation *op) { return has<Property::DataMovement>(op); }

// The result is one of the operands, element by element, or its negative: exact in any type that holds them.
static bool keepsValues(Operation *op) {
  if (auto pad = dyn_cast<PadOp>(op))
    return pad.getValue().isZero();
  return isDataMovement(op) || has<Property::SelectsValues>(op);
}

// The user's choice of a precision is visible in the IR: other casts do not move past it.
static bool isPinnedByUser(Operation *op) {
  PrecisionAttr precision = precisionOf(op);
  return precision && precision.getUser();
}

static void setElement(Value v, Type element) { v.setType(cast<RankedTensorType>(v.getType()).clone(element)); }

static Value createCast(OpBuilder &builder, CastOp like, Value x, Type element) {
  Value y =
      CastOp::create(builder, like.getLoc(), cast<RankedTensorType>(x.getType()).clone(element), x, like.getUser());
  y.getDefiningOp()->setDiscardableAttrs(like->getDiscardableAttrDictionary());
  return y;
}

static bool isOnlyUsedBy(Value v, Operation *op) {
  return llvm::all_of(v.getUsers(), [&](Operation *user) { return user == op; });
}

// The operation behind a widening that gives the same values from the narrow ones; null where there is none.
static Operation *readerThatKeepsValues(CastOp widening) {
  if (!isWidening(widening) || widening.getY().use_empty())
    return nullptr;
  Operation *move = *widening.getY().user_begin();
  bool mayMove = isDataMovement(move) || (!widening.getUser() && !isPinnedByUser(move));
  return keepsValues(move) && mayMove ? move : nullptr;
}

// Whether `other` widens as `cast` does.
static bool isSameWidening(CastOp other, CastOp cast) {
  return elementOf(other.getX()) == elementOf(cast.getX()) && elementOf(other.getY()) == elementOf(cast.getY()) &&
         other.getUser() == cast.getUser();
}

// How many elements the casts in front of `move` widen. nullopt: a floating operand is no cast like `cast`, or other
// operations read it.
static std::optional<int64_t> elementsWidenedBefore(Operation *move, CastOp cast) {
  llvm::SmallSetVector<Operation *, 4> casts;
  int64_t elements = 0;
  for (Value operand : move->getOperands()) {
    if (!isFloating(operand))
      continue;
    auto other = operand.getDefiningOp<CastOp>();
    if (!other || !isSameWidening(other, cast) || !isOnlyUsedBy(operand, move))
      return std::nullopt;
    if (casts.insert(other))
      elements += elementCount(operand);
  }
  return elements;
}

// How many elements casts after `move` would widen. Results are wide, or low where a narrowing has been folded into the
// operation. nullopt: a result of another type would be rounded.
static std::optional<int64_t> elementsWidenedBehind(Operation *move, CastOp cast) {
  int64_t elements = 0;
  for (Value result : move->getResults()) {
    if (!isFloating(result) || elementOf(result) == elementOf(cast.getX()))
      continue;
    if (elementOf(result) != elementOf(cast.getY()))
      return std::nullopt;
    elements += elementCount(result);
  }
  return elements;
}

// Lets `move` read what is cast in front of it, and casts its results like `cast`.
static void widenBehind(Operation *move, CastOp cast) {
  Type low = elementOf(cast.getX()), wide = elementOf(cast.getY());
  for (OpOperand &use : move->getOpOperands())
    if (isFloating(use.get()))
      use.set(use.get().getDefiningOp<CastOp>().getX());
  OpBuilder builder(move->getContext());
  builder.setInsertionPointAfter(move);
  for (Value result : move->getResults()) {
    if (!isFloating(result) || elementOf(result) == low)
      continue;
    setElement(result, low);
    if (result.use_empty())
      continue;
    Value widened = createCast(builder, cast, result, wide);
    result.replaceAllUsesExcept(widened, widened.getDefiningOp());
  }
}

bool sinkWidening(CastOp cast) {
  Operation *move = readerThatKeepsValues(cast);
  if (!move)
    return false;
  std::optional<int64_t> before = elementsWidenedBefore(move, cast), after = elementsWidenedBehind(move, cast);
  // Casts move 6 bytes an element, the operation 8 where it is wide and 4 where it is low, reads and writes together.
  if (!before || !after || *after >= 2 * *before)
    return false;
  widenBehind(move, cast);
  // Other operands' casts are dead now and go with what else is dead.
  cast.erase();
  return true;
}

bool hoistNarrowing(CastOp cast) {
  Operation *move = cast.getX().getDefiningOp();
  if (!isNarrowing(cast) || !move || !isDataMovement(move) || move->getNumResults() != 1 || !cast.getX().hasOneUse())
    return false;
  int64_t operands = 0;
  for (Value operand : move->getOperands())
    operands += isFloating(operand) ? elementCount(operand) : 0;
  if (operands >= 2 * elementCount(cast.getX()))
    return false;
  OpBuilder builder(move);
  for (OpOperand &use : move->getOpOperands())
    if (isFloating(use.get()))
      use.set(createCast(builder, cast, use.get(), elementOf(cast.getY())));
  move->getResult(0).setType(cast.getY().getType());
  cast.getY().replaceAllUsesWith(move->getResult(0));
  cast.erase();
  return true;
}

static bool readsGradient(OpOperand &use) {
  auto reader = dyn_cast<GradientReaderOpInterface>(use.getOwner());
  if (!reader || reader.getGradientOperands().empty())
    return false;
  OperandRange gradients = reader.getGradientOperands();
  unsigned first = gradients.getBeginOperandIndex(), index = use.getOperandNumber();
  return index >= first && index < first + gradients.size();
}

bool readsAnyFloat(OpOperand &use) {
  return readsGradient(use) || (has<Property::Arithmetic>(use.getOwner()) && !isPinnedByUser(use.getOwner()));
}

bool foldNarrowing(CastOp cast) {
  Operation *op = cast.getX().getDefiningOp();
  if (!isNarrowing(cast) || cast.getUser() || !op || !has<Property::Arithmetic>(op) || isPinnedByUser(op) ||
      !cast.getX().hasOneUse())
    return false;
  markFolded(op);
  op->getResult(0).setType(cast.getY().getType());
  cast.getY().replaceAllUsesWith(op->getResult(0));
  cast.erase();
  return true;
}

void markFolded(Operation *op) {
  if (PrecisionAttr precision = precisionOf(op))
    setPrecision(op, precision.withFolded());
}

} // namespace mpc
