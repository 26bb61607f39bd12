// Casts where no value changes: folded, merged, bypassed, moved towards fewer bytes.
#include "compiler/dialect/operation_attributes.h"
#include "passes/amp/cast_motion.h"
#include "passes/passes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_CASTCLEANUPPASS
#include "passes/passes.h.inc"

namespace {

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
      if (foldCast(Cast) || foldConstant(Cast) || sinkWidening(Cast) || hoistNarrowing(Cast) || foldNarrowing(Cast)) {
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

  // The rounding happens here, once, instead of in every step.
  static bool foldConstant(CastOp Cast) {
    auto Constant = Cast.getX().getDefiningOp<ConstantOp>();
    auto Elements = Constant ? dyn_cast<DenseFPElementsAttr>(Constant.getValue()) : DenseFPElementsAttr();
    auto Element = dyn_cast<FloatType>(getElementTypeOrSelf(Cast.getY().getType()));
    if (!Elements || !Element)
      return false;
    DenseElementsAttr Rounded = Elements.mapValues(Element, [&](const APFloat &Given) {
      APFloat Number = Given;
      bool LosesInfo = false;
      Number.convert(Element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &LosesInfo);
      return Number.bitcastToAPInt();
    });
    OpBuilder Builder(Cast);
    auto Folded = ConstantOp::create(Builder, Cast.getLoc(), Cast.getY().getType(), Rounded);
    Folded->setDiscardableAttrs(Cast->getDiscardableAttrDictionary());
    Cast.getY().replaceAllUsesWith(Folded.getOutput());
    Cast.erase();
    return true;
  }

  static bool bypassWidening(CastOp Cast) {
    if (!isWidening(Cast))
      return false;
    bool Changed = false;
    for (OpOperand &Use : llvm::make_early_inc_range(Cast.getY().getUses()))
      if (readsAnyFloat(Use)) {
        markFolded(Use.getOwner());
        Use.set(Cast.getX());
        Changed = true;
      }
    return Changed;
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

  static void mergeReasons(Operation *Kept, Operation *Merged) {
    auto From = dyn_cast<CastOp>(Merged);
    if (From && From.getUser())
      cast<CastOp>(Kept).setUser(true);
    PrecisionAttr Old = precisionOf(Kept), Added = precisionOf(Merged);
    if (Added)
      setPrecision(Kept, Old ? Old.mergedWith(Added) : Added);
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
