// An order of a block's operations with a lower peak of live bytes.
//
// Finding the lowest peak is NP-hard: registers are the case of values of one size (Sethi 1975, "Complete register
// allocation problems"). So the search is local. It moves one operation at a time and may end above the lowest peak.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <string>

namespace mpc {

class BlockDependences;

/// What a device needs for an operation's storage. Members that are left out mean no workspaces, and that nothing is
/// written over an operand.
struct MemoryModel {
  std::function<int64_t(mlir::Operation *)> Workspace;
  std::function<bool(mlir::Operation *, unsigned Result, unsigned Operand)> MayAlias;
};

/// An order of the operations of a function's one block. Their storage is counted as lowering assigns it. Temporaries
/// and inputs live from the operation that writes them to the last that reads them. Views have no storage of their own,
/// and state lies elsewhere.
class MemorySchedule {
public:
  MemorySchedule(mlir::Block &Body, const MemoryModel &Model);

  /// The largest sum of live bytes of the order so far.
  int64_t peakBytes() const { return Current.Peak; }
  /// Moves operations as long as the peak goes down and the work stays within a multiple of their number; whether any
  /// moved.
  bool improve();
  /// Puts the operations in the order found. Views go before their first reader.
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
    unsigned LastAt = 0;             ///< position of the last one
    std::vector<int64_t> LiveBefore; ///< bytes that lie in the arena when an operation begins
    std::vector<unsigned> LastUse;   ///< by storage number: the position of the last operation that reads or writes it
  };

  unsigned storageOf(mlir::Value V);
  void addNode(mlir::Operation *Op, const BlockDependences &Dependences, const MemoryModel &Model);
  /// The bytes in the arena while an operation runs; \p Live becomes those behind it. \p EndsHere says whether no
  /// operation behind it uses a piece of storage.
  int64_t step(const Node &Here, llvm::function_ref<bool(unsigned Storage)> EndsHere, int64_t &Live) const;
  /// Brings Position and Current up to date with Order.
  void measure();
  /// The first and the last position that node `Order[At]` may take.
  std::pair<unsigned, unsigned> range(unsigned At) const;
  /// Whether the peak is lower with the operation at \p From moved to \p To.
  bool lowersPeak(unsigned From, unsigned To);
  bool tryMove(unsigned From, unsigned To);

  mlir::Block &Body;
  std::vector<Node> Nodes;
  std::vector<int64_t> Bytes;                    ///< by storage number; 0 for state and constants
  std::vector<bool> IsInput;                     ///< by storage number: it lies in the arena from the beginning
  std::vector<bool> IsResult;                    ///< by storage number: it lies there to the end
  llvm::DenseMap<mlir::Value, unsigned> Numbers; ///< storage numbers, by root value
  llvm::DenseMap<mlir::Operation *, unsigned> NodeOf;
  std::vector<unsigned> Order;    ///< node numbers
  std::vector<unsigned> Position; ///< by node number
  Profile Current;
  std::vector<unsigned> LastInside; ///< by storage number: the last use inside the positions that a move changes
  uint64_t Work = 0;                ///< positions looked at so far
};

} // namespace mpc
