// Equal computations, dead ones, and those that fold, in one block.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

namespace mpc {

/// Leaves the first of pure operations that compute the same, up to locations and discardable attributes: scopes and
/// reasons do not change a value. There is one cast for each (value, type), the user's or not, and it is the user's if
/// one of them was. The operation that stays has the reasons of all. Returns whether something changed.
///
/// MLIR's own elimination of common subexpressions compares discardable attributes, which would keep copies apart.
bool mergeEqualComputations(mlir::Block &body);

/// Folds \p op, which has one result, by its folder. Returns whether it is gone: whether a value took its place. It may
/// stay with other operands instead. Folds to constants are left alone.
bool replaceByFold(mlir::Operation *op);

/// Erases operations without effects whose results nobody reads. Returns whether something changed.
bool eraseDeadOperations(mlir::Block &body);

/// The same among \p created, in the order of their making.
void eraseDeadOperations(llvm::ArrayRef<mlir::Operation *> created);

} // namespace mpc
