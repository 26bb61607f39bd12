// An order of a block's operations with a lower peak of live bytes.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <string>

namespace mpc {

/// What a device makes of an operation's storage. Left out: no workspaces, nothing is written over an operand.
struct MemoryModel {
  std::function<int64_t(mlir::Operation *)> Workspace;
  std::function<bool(mlir::Operation *, unsigned Result, unsigned Operand)> MayAlias;
};

/// The operations of a function's one block, whose storage is counted as lowering assigns it: temporaries and inputs
/// live from the operation that writes them to the last that reads them, reshapes are views, state lies elsewhere.
class MemorySchedule {
public:
  MemorySchedule(mlir::Block &Body, const MemoryModel &Model);

  /// The largest sum of live bytes of the order so far.
  int64_t peakBytes() const { return Current.Peak; }
  /// Moves operations as long as the peak goes down; whether any moved.
  bool improve();
  /// Puts the operations in the order found. Reshapes go before their first reader.
  void apply();

private:
  struct Node {
    mlir::Operation *Op = nullptr;
    int64_t Workspace = 0;
    llvm::SmallVector<unsigned, 4> Reads;  ///< storage numbers, each once
    llvm::SmallVector<unsigned, 2> Writes; ///< storage numbers
    /// Storage that a result may take over from an operand: (result's, operand's).
    llvm::SmallVector<std::pair<unsigned, unsigned>, 2> Aliases;
    llvm::SmallVector<unsigned, 4> Before; ///< nodes that come before it
    llvm::SmallVector<unsigned, 4> After;
    bool Pinned = false; ///< updates of state stay, and nothing passes them
  };
  struct Profile {
    int64_t Peak = 0;
    unsigned At = 0;                 ///< position of the first operation at the peak
    std::vector<int64_t> LiveBefore; ///< bytes that lie in the arena when an operation begins
  };

  unsigned storageOf(mlir::Value V);
  void addNode(mlir::Operation *Op, const MemoryModel &Model);
  Profile measure(llvm::ArrayRef<unsigned> Order) const;
  /// The first and the last position that node `Order[At]` may take.
  std::pair<unsigned, unsigned> range(unsigned At) const;
  bool tryMove(unsigned From, unsigned To);

  mlir::Block &Body;
  std::vector<Node> Nodes;
  std::vector<int64_t> Bytes;                    ///< by storage number; 0 for state and constants
  std::vector<bool> IsInput;                     ///< by storage number: it lies in the arena from the beginning
  std::vector<bool> IsResult;                    ///< by storage number: it lies there to the end
  llvm::DenseMap<mlir::Value, unsigned> Numbers; ///< of storage
  llvm::DenseMap<mlir::Operation *, unsigned> NodeOf;
  std::vector<unsigned> Order;    ///< node numbers
  std::vector<unsigned> Position; ///< by node number
  Profile Current;
};

} // namespace mpc
