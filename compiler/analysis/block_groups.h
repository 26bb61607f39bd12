// Groups of a block's operations, which passes merge.
#pragma once

#include "compiler/analysis/block_dependences.h"

namespace mpc {

/// Groups of the operations of a block. Each operation begins in a group of its own. Groups may be merged as long as no
/// cycle of dependences appears. Views and the terminator are in no group.
class BlockGroups {
public:
  explicit BlockGroups(mlir::Block &Body);

  /// The group of an operation that has one, or of the one around it.
  std::optional<unsigned> groupOf(mlir::Operation *Op) const;
  /// The operations of a group in program order. A group that was merged into another is empty.
  llvm::ArrayRef<mlir::Operation *> members(unsigned Group) const { return Members[Group]; }
  /// The bound of group numbers: each is below it.
  unsigned size() const { return Members.size(); }

  /// An operation of a third group on a path from \p A to \p B or back. Null: there is none, and the two groups may be
  /// merged.
  mlir::Operation *between(unsigned A, unsigned B) const;
  /// Merges \p B into \p A.
  void merge(unsigned A, unsigned B);

  /// The groups in an order in which each comes after all that it depends on. Otherwise they keep the order of their
  /// last operations.
  llvm::SmallVector<unsigned> schedule() const;

private:
  /// The number of an operation that is in a group.
  unsigned numberOf(mlir::Operation *Op) const { return *Dependences.numberOf(Op); }
  mlir::Operation *onTheWay(unsigned From, unsigned To) const;
  /// The groups that an operation of \p Group comes after, each once, itself maybe among them.
  llvm::SmallVector<unsigned> groupsBefore(unsigned Group) const;
  /// Appends to \p Order what must come before the group \p Last, in turn, and then the group. What is placed stays.
  void place(unsigned Last, llvm::SmallVectorImpl<unsigned> &Order, llvm::SmallVectorImpl<char> &Placed) const;

  mlir::Block &Body;
  BlockDependences Dependences;
  llvm::SmallVector<unsigned> GroupOf; ///< the group of each operation, by the operation's number
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *, 1>> Members;
};

} // namespace mpc
