// Which collectives of a function travel as one message, and the order of operations that lets them.
#pragma once

#include "compiler/analysis/block_dependences.h"
#include "compiler/analysis/phases.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <vector>

namespace mpc {

/// Buckets of a function's one block, in the order in which their first members stand. Every collective that sends a
/// message is in one.
///
/// A collective joins the last bucket whose message it may share if three things hold. No member's result reaches it.
/// Together they give at most the allowed bytes. What it reads is there before the first operation that cannot wait for
/// the bucket. State updates and operations of the network cannot wait: what they read would live longer. Others, such
/// as the cast of a mean or the decision on a check, run behind the bucket.
///
/// Every process runs the same function, so all find the same buckets. No value depends on the order.
class CollectiveBuckets {
public:
  struct Bucket {
    llvm::SmallVector<unsigned> members; ///< numbers of BlockDependences
    int64_t bytes = 0;                   ///< that a process gives
  };

  /// \p mostBytes is the size up to which members join. A larger one is alone. Gathers go through memory of their
  /// kernel, and join up to 64 KiB at most.
  CollectiveBuckets(mlir::func::FuncOp function, int64_t mostBytes);

  llvm::ArrayRef<Bucket> getBuckets() const { return buckets; }
  /// The operation that a bucket names by its number.
  mlir::Operation *operationOf(unsigned number) const { return dependences.getOperations()[number]; }
  /// Puts the members of each bucket side by side: where the last one stands, or before the first operation that cannot
  /// wait. Leaves the block as it is where they are.
  void apply();

private:
  /// Operations in a new order, each behind what it depends on.
  class Order;

  void place(unsigned number);
  bool mayJoin(unsigned bucket, unsigned number) const;
  /// What comes after a member of \p bucket. The members of another bucket come together.
  llvm::BitVector followersOf(unsigned bucket) const;
  /// The operations that run at once with \p number, itself among them.
  llvm::SmallVector<unsigned> together(unsigned number) const;
  bool mayWait(unsigned number) const;

  mlir::Block &body;
  int64_t mostBytes;
  BlockDependences dependences;
  StepPhases phases;
  std::vector<Bucket> buckets;
  std::vector<std::optional<unsigned>> bucketOf; ///< by number
};

} // namespace mpc
