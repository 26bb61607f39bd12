#include "passes/precision/cast_motion.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

static bool isWiderThan(Value Wide, Value Narrow) {
  return isFloating(Wide) && isFloating(Narrow) && elementOf(Wide) != elementOf(Narrow) &&
         widensExactly(elementOf(Narrow), elementOf(Wide));
}

bool isWidening(CastOp Cast) { return isWiderThan(Cast.getY(), Cast.getX()); }

bool isNarrowing(CastOp Cast) { return isWiderThan(Cast.getX(), Cast.getY()); }

static bool isDataMovement(Operation *Op) { return has<Property::DataMovement>(Op); }

// The result is one of the operands, element by element, or its negative: exact in any type that holds them.
static bool keepsValues(Operation *Op) {
  if (auto Pad = dyn_cast<PadOp>(Op))
    return Pad.getValue().isZero();
  return isDataMovement(Op) || has<Property::SelectsValues>(Op);
}

// The user's choice of a precision is visible in the IR: other casts do not move past it.
static bool isPinnedByUser(Operation *Op) {
  PrecisionAttr Precision = precisionOf(Op);
  return Precision && Precision.getUser();
}

static void setElement(Value V, Type Element) { V.setType(cast<RankedTensorType>(V.getType()).clone(Element)); }

static Value createCast(OpBuilder &Builder, CastOp Like, Value X, Type Element) {
  Value Y =
      CastOp::create(Builder, Like.getLoc(), cast<RankedTensorType>(X.getType()).clone(Element), X, Like.getUser());
  Y.getDefiningOp()->setDiscardableAttrs(Like->getDiscardableAttrDictionary());
  return Y;
}

static bool isOnlyUsedBy(Value V, Operation *Op) {
  return llvm::all_of(V.getUsers(), [&](Operation *User) { return User == Op; });
}

// The operation behind a widening that gives the same values from the narrow ones; null where there is none.
static Operation *readerThatKeepsValues(CastOp Widening) {
  if (!isWidening(Widening) || Widening.getY().use_empty())
    return nullptr;
  Operation *Move = *Widening.getY().user_begin();
  bool MayMove = isDataMovement(Move) || (!Widening.getUser() && !isPinnedByUser(Move));
  return keepsValues(Move) && MayMove ? Move : nullptr;
}

// Whether `Other` widens as `Cast` does.
static bool isSameWidening(CastOp Other, CastOp Cast) {
  return elementOf(Other.getX()) == elementOf(Cast.getX()) && elementOf(Other.getY()) == elementOf(Cast.getY()) &&
         Other.getUser() == Cast.getUser();
}

// How many elements the casts in front of `Move` widen. nullopt: a floating operand is no cast like `Cast`, or other
// operations read it.
static std::optional<int64_t> elementsWidenedBefore(Operation *Move, CastOp Cast) {
  llvm::SmallSetVector<Operation *, 4> Casts;
  int64_t Elements = 0;
  for (Value Operand : Move->getOperands()) {
    if (!isFloating(Operand))
      continue;
    auto Other = Operand.getDefiningOp<CastOp>();
    if (!Other || !isSameWidening(Other, Cast) || !isOnlyUsedBy(Operand, Move))
      return std::nullopt;
    if (Casts.insert(Other))
      Elements += elementCount(Operand);
  }
  return Elements;
}

// How many elements casts after `Move` would widen. Results are wide, or low where a narrowing has been folded into the
// operation. nullopt: a result of another type would be rounded.
static std::optional<int64_t> elementsWidenedBehind(Operation *Move, CastOp Cast) {
  int64_t Elements = 0;
  for (Value Result : Move->getResults()) {
    if (!isFloating(Result) || elementOf(Result) == elementOf(Cast.getX()))
      continue;
    if (elementOf(Result) != elementOf(Cast.getY()))
      return std::nullopt;
    Elements += elementCount(Result);
  }
  return Elements;
}

// Lets `Move` read what is cast in front of it, and casts its results like `Cast`.
static void widenBehind(Operation *Move, CastOp Cast) {
  Type Low = elementOf(Cast.getX()), Wide = elementOf(Cast.getY());
  for (OpOperand &Use : Move->getOpOperands())
    if (isFloating(Use.get()))
      Use.set(Use.get().getDefiningOp<CastOp>().getX());
  OpBuilder Builder(Move->getContext());
  Builder.setInsertionPointAfter(Move);
  for (Value Result : Move->getResults()) {
    if (!isFloating(Result) || elementOf(Result) == Low)
      continue;
    setElement(Result, Low);
    if (Result.use_empty())
      continue;
    Value Widened = createCast(Builder, Cast, Result, Wide);
    Result.replaceAllUsesExcept(Widened, Widened.getDefiningOp());
  }
}

bool sinkWidening(CastOp Cast) {
  Operation *Move = readerThatKeepsValues(Cast);
  if (!Move)
    return false;
  std::optional<int64_t> Before = elementsWidenedBefore(Move, Cast), After = elementsWidenedBehind(Move, Cast);
  // Casts move 6 bytes an element, the operation 8 where it is wide and 4 where it is low, reads and writes together.
  if (!Before || !After || *After >= 2 * *Before)
    return false;
  widenBehind(Move, Cast);
  // Other operands' casts are dead now and go with what else is dead.
  Cast.erase();
  return true;
}

bool hoistNarrowing(CastOp Cast) {
  Operation *Move = Cast.getX().getDefiningOp();
  if (!isNarrowing(Cast) || !Move || !isDataMovement(Move) || Move->getNumResults() != 1 || !Cast.getX().hasOneUse())
    return false;
  int64_t Operands = 0;
  for (Value Operand : Move->getOperands())
    Operands += isFloating(Operand) ? elementCount(Operand) : 0;
  if (Operands >= 2 * elementCount(Cast.getX()))
    return false;
  OpBuilder Builder(Move);
  for (OpOperand &Use : Move->getOpOperands())
    if (isFloating(Use.get()))
      Use.set(createCast(Builder, Cast, Use.get(), elementOf(Cast.getY())));
  Move->getResult(0).setType(Cast.getY().getType());
  Cast.getY().replaceAllUsesWith(Move->getResult(0));
  Cast.erase();
  return true;
}

static bool readsGradient(OpOperand &Use) {
  auto Reader = dyn_cast<GradientReaderOpInterface>(Use.getOwner());
  if (!Reader || Reader.getGradientOperands().empty())
    return false;
  OperandRange Gradients = Reader.getGradientOperands();
  unsigned First = Gradients.getBeginOperandIndex(), Index = Use.getOperandNumber();
  return Index >= First && Index < First + Gradients.size();
}

bool readsAnyFloat(OpOperand &Use) {
  return readsGradient(Use) || (has<Property::Arithmetic>(Use.getOwner()) && !isPinnedByUser(Use.getOwner()));
}

bool foldNarrowing(CastOp Cast) {
  Operation *Op = Cast.getX().getDefiningOp();
  if (!isNarrowing(Cast) || Cast.getUser() || !Op || !has<Property::Arithmetic>(Op) || isPinnedByUser(Op) ||
      !Cast.getX().hasOneUse())
    return false;
  markFolded(Op);
  Op->getResult(0).setType(Cast.getY().getType());
  Cast.getY().replaceAllUsesWith(Op->getResult(0));
  Cast.erase();
  return true;
}

void markFolded(Operation *Op) {
  if (PrecisionAttr Precision = precisionOf(Op))
    setPrecision(Op, Precision.withFolded());
}

} // namespace mpc
