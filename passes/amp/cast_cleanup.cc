// Casts where no value changes: folded, merged, bypassed, moved towards fewer bytes.
#include "compiler/dialect/dialect.h"
#include "passes/passes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_CASTCLEANUPPASS
#include "passes/passes.h.inc"

namespace {

Type elementOf(Value V) { return getElementTypeOrSelf(V.getType()); }

unsigned widthOf(Value V) { return elementOf(V).getIntOrFloatBitWidth(); }

bool isFloatCast(CastOp Cast) {
  return isa<FloatType>(elementOf(Cast.getX())) && isa<FloatType>(elementOf(Cast.getY()));
}

// low -> f32: every value of the operand is a value of the result.
bool isWidening(CastOp Cast) { return isFloatCast(Cast) && widthOf(Cast.getX()) < widthOf(Cast.getY()); }

bool isNarrowing(CastOp Cast) { return isFloatCast(Cast) && widthOf(Cast.getX()) > widthOf(Cast.getY()); }

// Equality of operations up to locations and discardable attributes: scopes and reasons do not change a value.
struct ComputationInfo : llvm::DenseMapInfo<Operation *> {
  static constexpr auto Flags =
      OperationEquivalence::Flags::IgnoreLocations | OperationEquivalence::Flags::IgnoreDiscardableAttrs;
  static unsigned getHashValue(const Operation *Op) {
    auto *Mutable = const_cast<Operation *>(Op);
    // One cast for each (value, type), the user's or not.
    if (auto Cast = dyn_cast<CastOp>(Mutable))
      return llvm::hash_combine(Cast.getX(), Cast.getY().getType());
    return OperationEquivalence::computeHash(Mutable, OperationEquivalence::directHashValue,
                                             OperationEquivalence::ignoreHashValue, Flags);
  }
  static bool isEqual(const Operation *A, const Operation *B) {
    if (A == B)
      return true;
    if (A == getTombstoneKey() || A == getEmptyKey() || B == getTombstoneKey() || B == getEmptyKey())
      return false;
    auto *Left = const_cast<Operation *>(A), *Right = const_cast<Operation *>(B);
    if (isa<CastOp>(Left) && isa<CastOp>(Right))
      return Left->getOperand(0) == Right->getOperand(0) &&
             Left->getResult(0).getType() == Right->getResult(0).getType();
    return OperationEquivalence::isEquivalentTo(Left, Right, OperationEquivalence::exactValueMatch,
                                                /*markEquivalent=*/nullptr, Flags);
  }
};

// Operand positions where an operation reads a gradient (or a loss) of any floating type, exactly.
bool readsAnyFloat(OpOperand &Use) {
  Operation *Op = Use.getOwner();
  unsigned Index = Use.getOperandNumber();
  if (isa<UnscaleOp>(Op))
    return Index == 0;
  if (isa<AllFiniteOp>(Op))
    return Index > 0;
  if (isa<SgdOp, MomentumOp>(Op))
    return Index == 2;
  if (isa<AdamOp, AdamWeightDecayOp>(Op))
    return Index == 3;
  return false;
}

class CastCleanupPass : public impl::CastCleanupPassBase<CastCleanupPass> {
public:
  using CastCleanupPassBase::CastCleanupPassBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    // Other blocks are unreachable: nothing branches. There, definitions may form cycles that never stop folding.
    Block &Body = getOperation().getBody().front();
    bool Changed = true;
    while (Changed) {
      Changed = rewriteCasts(Body);
      Changed |= mergeEqual(Body);
      Changed |= eraseDead(Body);
    }
  }

private:
  static bool rewriteCasts(Block &Block) {
    bool Changed = false;
    for (auto Cast : llvm::make_early_inc_range(Block.getOps<CastOp>())) {
      if (foldCast(Cast) || sinkWidening(Cast) || hoistNarrowing(Cast)) {
        Changed = true;
        continue;
      }
      Changed |= bypassWidening(Cast);
    }
    return Changed;
  }

  static bool foldCast(CastOp Cast) {
    Value Folded;
    auto Inner = Cast.getX().getDefiningOp<CastOp>();
    if (Cast.getX().getType() == Cast.getY().getType())
      Folded = Cast.getX();
    else if (Inner && isWidening(Inner) && Inner.getX().getType() == Cast.getY().getType())
      Folded = Inner.getX();
    if (!Folded)
      return false;
    Cast.getY().replaceAllUsesWith(Folded);
    Cast.erase();
    return true;
  }

  static bool bypassWidening(CastOp Cast) {
    if (!isWidening(Cast))
      return false;
    bool Changed = false;
    for (OpOperand &Use : llvm::make_early_inc_range(Cast.getY().getUses()))
      if (readsAnyFloat(Use)) {
        Use.set(Cast.getX());
        Changed = true;
      }
    return Changed;
  }

  static bool isDataMovement(Operation *Op) { return isa_and_nonnull<ReshapeOp, TransposeOp>(Op); }

  static Value createCast(OpBuilder &Builder, CastOp Like, Value X, Type Element) {
    Value Y =
        CastOp::create(Builder, Like.getLoc(), cast<RankedTensorType>(X.getType()).clone(Element), X, Like.getUser());
    Y.getDefiningOp()->setDiscardableAttrs(Like->getDiscardableAttrDictionary());
    return Y;
  }

  // move(ext(x)) becomes ext(move(x)): the low value moves.
  static bool sinkWidening(CastOp Cast) {
    if (!isWidening(Cast) || !Cast.getY().hasOneUse())
      return false;
    Operation *Move = *Cast.getY().user_begin();
    if (!isDataMovement(Move))
      return false;
    Value Moved = Move->getResult(0);
    auto Type = cast<RankedTensorType>(Moved.getType());
    Move->setOperand(0, Cast.getX());
    Moved.setType(Type.clone(elementOf(Cast.getX())));
    OpBuilder Builder(Move->getContext());
    Builder.setInsertionPointAfter(Move);
    Value Widened = createCast(Builder, Cast, Moved, Type.getElementType());
    Moved.replaceAllUsesExcept(Widened, Widened.getDefiningOp());
    Cast.erase();
    return true;
  }

  // trunc(move(x)) becomes move(trunc(x)).
  static bool hoistNarrowing(CastOp Cast) {
    Operation *Move = Cast.getX().getDefiningOp();
    if (!isNarrowing(Cast) || !isDataMovement(Move) || !Cast.getX().hasOneUse())
      return false;
    OpBuilder Builder(Move);
    Value Narrowed = createCast(Builder, Cast, Move->getOperand(0), elementOf(Cast.getY()));
    Move->setOperand(0, Narrowed);
    Move->getResult(0).setType(cast<RankedTensorType>(Cast.getY().getType()));
    Cast.getY().replaceAllUsesWith(Move->getResult(0));
    Cast.erase();
    return true;
  }

  static bool mergeEqual(Block &Block) {
    llvm::DenseMap<Operation *, Operation *, ComputationInfo> Seen;
    bool Changed = false;
    for (Operation &Op : llvm::make_early_inc_range(Block)) {
      if (!isPure(&Op) || Op.getNumRegions() != 0 || Op.hasTrait<OpTrait::IsTerminator>())
        continue;
      auto [It, New] = Seen.try_emplace(&Op, &Op);
      if (New)
        continue;
      Operation *Kept = It->second;
      mergeReasons(Kept, &Op);
      Op.replaceAllUsesWith(Kept);
      Op.erase();
      Changed = true;
    }
    return Changed;
  }

  static bool holdsReason(StringAttr Reasons, StringAttr Reason) {
    SmallVector<StringRef> Parts;
    Reasons.getValue().split(Parts, "; ");
    return llvm::is_contained(Parts, Reason.getValue());
  }

  static void mergeReasons(Operation *Kept, Operation *Merged) {
    auto From = dyn_cast<CastOp>(Merged);
    if (From && From.getUser())
      cast<CastOp>(Kept).setUser(true);
    auto Old = Kept->getAttrOfType<StringAttr>(AmpReasonAttrName);
    auto Added = Merged->getAttrOfType<StringAttr>(AmpReasonAttrName);
    if (!Added || Old == Added)
      return;
    if (!Old)
      Kept->setAttr(AmpReasonAttrName, Added);
    else if (!holdsReason(Old, Added))
      Kept->setAttr(AmpReasonAttrName, StringAttr::get(Kept->getContext(), Old.getValue() + "; " + Added.getValue()));
  }

  static bool eraseDead(Block &Block) {
    bool Changed = false;
    for (Operation &Op : llvm::make_early_inc_range(llvm::reverse(Block)))
      if (isOpTriviallyDead(&Op)) {
        Op.erase();
        Changed = true;
      }
    return Changed;
  }
};

} // namespace

} // namespace mpc
