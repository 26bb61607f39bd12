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
  static constexpr auto flags =
      OperationEquivalence::Flags::IgnoreLocations | OperationEquivalence::Flags::IgnoreDiscardableAttrs;
  static unsigned getHashValue(const Operation *op) {
    auto *writable = const_cast<Operation *>(op);
    // There is one cast for each (value, type), the user's or not.
    if (auto cast = dyn_cast<CastOp>(writable))
      return llvm::hash_combine(cast.getX(), cast.getY().getType());
    return OperationEquivalence::computeHash(writable, OperationEquivalence::directHashValue,
                                             OperationEquivalence::ignoreHashValue, flags);
  }
  static bool isEqual(const Operation *a, const Operation *b) {
    if (a == b)
      return true;
    if (a == getTombstoneKey() || a == getEmptyKey() || b == getTombstoneKey() || b == getEmptyKey())
      return false;
    auto *left = const_cast<Operation *>(a), *right = const_cast<Operation *>(b);
    if (isa<CastOp>(left) && isa<CastOp>(right))
      return left->getOperand(0) == right->getOperand(0) &&
             left->getResult(0).getType() == right->getResult(0).getType();
    return OperationEquivalence::isEquivalentTo(left, right, OperationEquivalence::exactValueMatch,
                                                /*markEquivalent=*/nullptr, flags);
  }
};

} // namespace

static void keepMarks(Operation *kept, Operation *merged) {
  auto from = dyn_cast<CastOp>(merged);
  if (from && from.getUser())
    cast<CastOp>(kept).setUser(true);
  PrecisionAttr old = precisionOf(kept), added = precisionOf(merged);
  if (added)
    setPrecision(kept, old ? old.mergedWith(added) : added);
}

bool replaceByFold(Operation *op) {
  SmallVector<OpFoldResult, 1> folded;
  // Without a result the operation was changed where it stands, and may fold again.
  while (succeeded(op->fold(folded))) {
    if (folded.empty())
      continue;
    auto same = dyn_cast<Value>(folded.front());
    if (!same)
      return false;
    op->getResult(0).replaceAllUsesWith(same);
    op->erase();
    return true;
  }
  return false;
}

bool mergeEqualComputations(Block &body) {
  llvm::DenseMap<Operation *, Operation *, ComputationInfo> seen;
  bool changed = false;
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (!isPure(&op) || op.getNumRegions() != 0 || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    auto [it, isNew] = seen.try_emplace(&op, &op);
    if (isNew)
      continue;
    Operation *kept = it->second;
    keepMarks(kept, &op);
    op.replaceAllUsesWith(kept);
    op.erase();
    changed = true;
  }
  return changed;
}

static bool eraseIfDead(Operation *op) {
  if (!isOpTriviallyDead(op))
    return false;
  op->erase();
  return true;
}

bool eraseDeadOperations(Block &body) {
  bool changed = false;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    changed |= eraseIfDead(&op);
  return changed;
}

void eraseDeadOperations(ArrayRef<Operation *> created) {
  for (Operation *op : llvm::reverse(created))
    eraseIfDead(op);
}

} // namespace mpc
