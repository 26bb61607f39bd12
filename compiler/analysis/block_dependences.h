// The dependences between the operations of a block.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace mpc {

/// The order that a block's operations must keep, whoever moves them, and who reads which storage. Operations are
/// numbered in program order. Views and the terminator have no number: what reads a view depends on what the view is
/// of. A wait (isWait) is a view that has one.
///
/// A value comes before its readers, behind views and in regions that the readers hold. A reader of state comes before
/// the operation that updates it, so that the update stays in place. So does a reader of the low copy of a
/// parameter that the update writes beside it. Operations with effects on memory, known or not, keep their order.
///
/// A wait reads the storage that the operation it waits for reads. So that storage lives until the wait, and an update
/// of it comes after the wait.
class BlockDependences {
public:
  explicit BlockDependences(mlir::Block &body);

  llvm::ArrayRef<mlir::Operation *> getOperations() const { return operations; }
  unsigned size() const { return operations.size(); }
  /// nullopt: the operation is a view that is no wait, or the terminator, or stands in another block.
  std::optional<unsigned> numberOf(mlir::Operation *op) const;

  /// Operations that must come before, and those that must come after, by number. Those that follow from these are not
  /// listed.
  llvm::ArrayRef<unsigned> before(unsigned number) const { return predecessors[number]; }
  llvm::ArrayRef<unsigned> after(unsigned number) const { return successors[number]; }

  /// The values whose storage an operation reads, each once. None is a view.
  llvm::ArrayRef<mlir::Value> reads(unsigned number) const { return storageRead[number]; }
  /// The operations that read the storage of \p v, by number in program order.
  llvm::ArrayRef<unsigned> readersOf(mlir::Value v) const;
  /// The first operation that updates the storage of \p v in place. nullopt: none does.
  std::optional<unsigned> updateOf(mlir::Value v) const;

private:
  void add(unsigned number);
  void addReads(unsigned number);
  void addUpdates(unsigned number);
  void addEdge(unsigned from, unsigned to);

  llvm::SmallVector<mlir::Operation *> operations;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> predecessors, successors;
  llvm::SmallVector<llvm::SmallVector<mlir::Value, 4>> storageRead;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned, 4>> readers;
  llvm::DenseMap<mlir::Value, unsigned> firstUpdates;
  /// While operations are added: the low copies that others replace, and the last operation with effects.
  llvm::DenseMap<mlir::Value, mlir::Value> oldLowCopies;
  std::optional<unsigned> lastEffect;
};

/// Whether \p op may run again elsewhere, or not at all: neither it nor what it holds has effects on memory or updates
/// state.
bool mayRunAgain(mlir::Operation *op);

/// The values of its own block that \p op reads, also in regions that it holds. Each stands there once.
llvm::SmallSetVector<mlir::Value, 8> valuesRead(mlir::Operation *op);

/// Helps to write a block's operations in a new order, in front of its terminator: puts each view in front of its first
/// reader. A wait is an operation of the order, not a view that this moves.
class ViewMover {
public:
  explicit ViewMover(mlir::Block &body);

  /// Moves the views that \p v is made by, which have not moved yet.
  void moveFor(mlir::Value v);
  /// The same for all that \p op reads, also in regions that it holds.
  void moveFor(mlir::Operation *op);
  /// Views that nothing has asked for, in program order.
  llvm::SmallVector<mlir::Operation *> getLeft() const;

private:
  mlir::Operation *terminator;
  llvm::SmallVector<mlir::Operation *> views; ///< in program order
  llvm::DenseSet<mlir::Operation *> left;     ///< those that have not moved
};

} // namespace mpc
