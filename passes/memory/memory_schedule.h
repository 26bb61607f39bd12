// An order of a block's operations with a lower peak of live bytes.
//
// Finding the lowest peak is NP-hard: registers are the case of values of one size (Sethi 1975, "Complete register
// allocation problems"). So the search is local. It moves one operation at a time and may end above the lowest peak.
#pragma once

#include "compiler/dialect/target_model.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <string>

namespace mpc {

class BlockDependences;

/// What a device needs for an operation's storage. Members that are left out mean no scratch, and that nothing is
/// written over an operand.
struct MemoryModel {
  std::function<int64_t(mlir::Operation *)> scratch;   ///< bytes that an operation takes only while it runs
  std::function<Aliasing(mlir::Operation *)> aliasing; ///< which results its kernel may write over which operands
};

/// An order of the operations of a function's one block. Their storage is counted as lowering assigns it. Temporaries
/// and inputs live from the operation that writes them to the last that reads them. Views have no storage of their own,
/// and state lies elsewhere.
class MemorySchedule {
public:
  MemorySchedule(mlir::Block &body, const MemoryModel &model);

  /// The largest sum of live bytes of the order so far.
  int64_t peakBytes() const { return current.peak; }
  /// Moves operations as long as the peak goes down and the work stays within a multiple of their number; whether any
  /// moved.
  bool improve();
  /// Puts the operations in the order found. Views go before their first reader.
  void apply();

private:
  struct Node {
    mlir::Operation *op = nullptr;
    int64_t scratch = 0;
    llvm::SmallVector<unsigned, 4> reads;  ///< storage numbers, each once
    llvm::SmallVector<unsigned, 2> writes; ///< storage numbers
    /// Storage that a result may take over from an operand: (result's, operand's).
    llvm::SmallVector<std::pair<unsigned, unsigned>, 2> aliases;
    llvm::SmallVector<unsigned, 4> before; ///< nodes that come before it
    llvm::SmallVector<unsigned, 4> after;
    bool pinned = false; ///< updates of state stay, and nothing passes them
    bool stays = false;  ///< so do operations with effects, which others pass
  };
  struct Profile {
    int64_t peak = 0;
    unsigned at = 0;                 ///< position of the first operation at the peak
    unsigned lastAt = 0;             ///< position of the last one
    std::vector<int64_t> liveBefore; ///< bytes that lie in the arena when an operation begins
    std::vector<unsigned> lastUse;   ///< by storage number: the position of the last operation that reads or writes it
  };

  unsigned storageOf(mlir::Value v);
  void addNode(mlir::Operation *op, const BlockDependences &dependences, const MemoryModel &model);
  /// The bytes in the arena while an operation runs; \p live becomes those behind it. \p endsHere says whether no
  /// operation behind it uses a piece of storage.
  int64_t step(const Node &here, llvm::function_ref<bool(unsigned storage)> endsHere, int64_t &live) const;
  /// Brings Position and Current up to date with Order.
  void measure();
  /// The first and the last position that node `Order[At]` may take.
  std::pair<unsigned, unsigned> range(unsigned at) const;
  /// Whether the peak is lower with the operation at \p from moved to \p to.
  bool lowersPeak(unsigned from, unsigned to);
  bool tryMove(unsigned from, unsigned to);

  mlir::Block &body;
  std::vector<Node> nodes;
  std::vector<int64_t> bytes;                    ///< by storage number; 0 for state and constants
  std::vector<bool> isInputStorage;              ///< by storage number: it lies in the arena from the beginning
  std::vector<bool> isResult;                    ///< by storage number: it lies there to the end
  llvm::DenseMap<mlir::Value, unsigned> numbers; ///< storage numbers, by root value
  llvm::DenseMap<mlir::Operation *, unsigned> nodeOf;
  std::vector<unsigned> order;    ///< node numbers
  std::vector<unsigned> position; ///< by node number
  Profile current;
  std::vector<unsigned> lastInside; ///< by storage number: the last use inside the positions that a move changes
  uint64_t work = 0;                ///< positions looked at so far
};

} // namespace mpc
