// Which operations of a block come before which, while some of them become one.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace mpc {

/// The value that reshapes, which move no bytes, show under another shape.
mlir::Value behindReshapes(mlir::Value V);

/// The operations of a block in groups, one each at first, that may be merged as long as no cycle appears. Reshapes and
/// the terminator are in no group: what reads a reshape depends on what the reshape reads. A reader of state comes
/// before the operation that updates it, so that updates stay in place; so does a reader of a shadow, the low copy of a
/// parameter that an optimizer writes beside it.
class BlockGroups {
public:
  explicit BlockGroups(mlir::Block &Body);

  /// The group of an operation that has one, or of the one around it.
  std::optional<unsigned> groupOf(mlir::Operation *Op) const;
  /// In program order; empty for a group that was merged into another.
  llvm::ArrayRef<mlir::Operation *> members(unsigned Group) const { return Members[Group]; }
  /// Group numbers lie below it.
  unsigned size() const { return Members.size(); }

  /// An operation of a third group on a way from \p A to \p B or back; null where there is none and the two may be one.
  mlir::Operation *between(unsigned A, unsigned B) const;
  /// The operations of \p B join \p A.
  void merge(unsigned A, unsigned B);

  /// The groups, each behind all that it depends on: in the order of their last operations as far as that goes.
  llvm::SmallVector<unsigned> schedule() const;

private:
  void addDependences(unsigned Node);
  void addEdge(unsigned From, unsigned To);
  mlir::Operation *onTheWay(unsigned From, unsigned To) const;
  void place(unsigned Group, llvm::SmallVectorImpl<unsigned> &Order, llvm::SmallVectorImpl<char> &Placed) const;

  mlir::Block &Body;
  llvm::SmallVector<mlir::Operation *> Nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> NodeOf;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> Successors, Predecessors;
  llvm::SmallVector<unsigned> GroupOfNode;
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *, 1>> Members;
  /// While nodes are added: the shadows that others take the place of, and who has read a value so far.
  llvm::DenseMap<mlir::Value, mlir::Value> OldShadows;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned, 4>> Readers;
};

} // namespace mpc
