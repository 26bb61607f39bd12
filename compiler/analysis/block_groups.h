// Groups of a block's operations, which passes merge.
#pragma once

#include "compiler/analysis/block_dependences.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mpc {

/// Groups of the operations of a block. Each operation begins in a group of its own. Groups may be merged as long as no
/// cycle of dependences appears. Views and the terminator are in no group.
class BlockGroups {
public:
  explicit BlockGroups(mlir::Block &body);

  /// The group of an operation that has one, or of the one around it.
  std::optional<unsigned> groupOf(mlir::Operation *op) const;
  /// The operations of a group in program order. A group that was merged into another is empty.
  llvm::ArrayRef<mlir::Operation *> members(unsigned group) const { return groupMembers[group]; }
  /// The bound of group numbers: each is below it.
  unsigned size() const { return groupMembers.size(); }

  /// An operation of a third group on a path from \p a to \p b or back. Null: there is none, and the two groups may be
  /// merged.
  mlir::Operation *between(unsigned a, unsigned b) const;
  /// Merges \p b into \p a. Nothing is between them.
  void merge(unsigned a, unsigned b);
  /// How many groups Between has looked at and merges have moved, as a measure of the work.
  uint64_t numVisits() const { return visits; }

  /// The groups in an order in which each comes after all that it depends on. Otherwise they keep the order of their
  /// last operations.
  llvm::SmallVector<unsigned> schedule() const;

private:
  /// The number of an operation that is in a group.
  unsigned numberOf(mlir::Operation *op) const { return *dependences.numberOf(op); }
  mlir::Operation *onTheWay(unsigned from, unsigned to) const;
  /// Calls \p visit for each group that an operation of \p group comes before, until it returns true; whether it did.
  bool anyAfter(unsigned group, llvm::function_ref<bool(unsigned)> visit) const;
  /// Gives \p a the place of both groups, and \p b, which becomes empty, one behind it.
  void placeTogether(unsigned a, unsigned b);
  /// The groups that an operation of \p group comes after, each once, itself maybe among them.
  llvm::SmallVector<unsigned> groupsBefore(unsigned group) const;
  /// Appends to \p order what must come before the group \p last, in turn, and then the group. What is placed stays.
  void place(unsigned last, llvm::SmallVectorImpl<unsigned> &order, llvm::SmallVectorImpl<char> &placed) const;

  mlir::Block &body;
  BlockDependences dependences;
  llvm::SmallVector<unsigned> groupNumbers; ///< the group of each operation, by the operation's number
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *, 1>> groupMembers;
  /// The place of each group in an order in which it comes after all that it depends on, and the group of each place.
  /// Only groups with places between those of two others can be between them.
  llvm::SmallVector<unsigned> places, groupAt;
  mutable uint64_t visits = 0; ///< groups looked at so far
};

} // namespace mpc
