// Operations of a block in groups, while some of them become one.
#pragma once

#include "compiler/analysis/block_dependences.h"

namespace mpc {

/// The operations of a block in groups, one each at first, that may be merged as long as no cycle of dependences
/// appears. Views and the terminator are in no group.
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
  /// The number of an operation that is in a group.
  unsigned numberOf(mlir::Operation *Op) const { return *Dependences.numberOf(Op); }
  mlir::Operation *onTheWay(unsigned From, unsigned To) const;
  void place(unsigned Group, llvm::SmallVectorImpl<unsigned> &Order, llvm::SmallVectorImpl<char> &Placed) const;

  mlir::Block &Body;
  BlockDependences Dependences;
  llvm::SmallVector<unsigned> GroupOf; ///< by number of an operation
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *, 1>> Members;
};

} // namespace mpc
