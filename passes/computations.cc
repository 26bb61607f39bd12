#include "passes/computations.h"

#include "compiler/dialect/operation_attributes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"

using namespace mlir;

namespace mpc {

namespace {

// Equality of operations up to locations and discardable attributes: scopes and reasons do not change a value.
struct ComputationInfo : llvm::DenseMapInfo<Operation *> {
  static constexpr auto Flags =
      OperationEquivalence::Flags::IgnoreLocations | OperationEquivalence::Flags::IgnoreDiscardableAttrs;
  static unsigned getHashValue(const Operation *Op) {
    auto *Mutable = const_cast<Operation *>(Op);
    // There is one cast for each (value, type), the user's or not.
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

} // namespace

static void keepMarks(Operation *Kept, Operation *Merged) {
  auto From = dyn_cast<CastOp>(Merged);
  if (From && From.getUser())
    cast<CastOp>(Kept).setUser(true);
  PrecisionAttr Old = precisionOf(Kept), Added = precisionOf(Merged);
  if (Added)
    setPrecision(Kept, Old ? Old.mergedWith(Added) : Added);
}

bool replaceByFold(Operation *Op) {
  SmallVector<OpFoldResult, 1> Folded;
  // Without a result the operation was changed where it stands, and may fold again.
  while (succeeded(Op->fold(Folded))) {
    if (Folded.empty())
      continue;
    auto Same = dyn_cast<Value>(Folded.front());
    if (!Same)
      return false;
    Op->getResult(0).replaceAllUsesWith(Same);
    Op->erase();
    return true;
  }
  return false;
}

bool mergeEqualComputations(Block &Body) {
  llvm::DenseMap<Operation *, Operation *, ComputationInfo> Seen;
  bool Changed = false;
  for (Operation &Op : llvm::make_early_inc_range(Body)) {
    if (!isPure(&Op) || Op.getNumRegions() != 0 || Op.hasTrait<OpTrait::IsTerminator>())
      continue;
    auto [It, New] = Seen.try_emplace(&Op, &Op);
    if (New)
      continue;
    Operation *Kept = It->second;
    keepMarks(Kept, &Op);
    Op.replaceAllUsesWith(Kept);
    Op.erase();
    Changed = true;
  }
  return Changed;
}

static bool eraseIfDead(Operation *Op) {
  if (!isOpTriviallyDead(Op))
    return false;
  Op->erase();
  return true;
}

bool eraseDeadOperations(Block &Body) {
  bool Changed = false;
  for (Operation &Op : llvm::make_early_inc_range(llvm::reverse(Body)))
    Changed |= eraseIfDead(&Op);
  return Changed;
}

void eraseDeadOperations(ArrayRef<Operation *> Created) {
  for (Operation *Op : llvm::reverse(Created))
    eraseIfDead(Op);
}

} // namespace mpc
