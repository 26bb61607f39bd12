// Decides which values share storage, and how long each storage lives.
#pragma once

#include "compiler/analysis/block_dependences.h"
#include "compiler/dialect/target_model.h"
#include "compiler/lowering/fusion_instruction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/executable.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <string>
#include <vector>

namespace mpc::compiler {

/// Which results the kernel of \p op on \p target may write over which operands. Without a target none but a region
/// does.
Aliasing aliasingOf(mlir::Operation *op, const runtime::Device *target);

/// Storage of the values of one straight-line function. Values are grouped by their *root*: a view has that of its
/// source. New values of state, or of the first arguments of a sequence, live in their argument. A kernel may write
/// over an operand that dies with it.
///
/// BlockDependences says which order keeps updates in place, and who reads which storage. The assignment takes the
/// order that there is, also one that a user wrote, and copies old state where a reader comes too late.
///
/// Collectives of one bucket run at once: what one of them reads or writes has its storage while any of them runs.
class StorageAssignment {
public:
  /// A new value that could not be made in the place of the old one.
  struct Copy {
    unsigned result;
    std::string reason;
  };

  StorageAssignment(mlir::func::FuncOp function, const runtime::Device *target);

  mlir::Value root(mlir::Value v) const;
  /// The operations that lives are counted in, in program order: those that BlockDependences numbers, without
  /// constants. Each becomes instructions, but a wait becomes none.
  const std::vector<mlir::Operation *> &getInstructions() const { return instructions; }
  /// First and last instruction of a root's life. Function results live to the end.
  std::pair<size_t, size_t> life(mlir::Value root) const;
  const std::vector<Copy> &getCopies() const { return copies; }
  /// Which outputs of a region are written over which of its inputs.
  std::vector<FusionAlias> aliases(FusionOp fusion) const;

private:
  using Range = std::pair<size_t, size_t>;

  void findBuckets();
  /// The first and the last instruction that run at once with \p index.
  Range runsWith(size_t index) const;
  void placeStateInPlace(mlir::func::FuncOp function);
  void reuseDyingOperands();
  /// Whether \p op may write a result over an operand. It is asked about one operation after the other.
  bool mayAlias(mlir::Operation *op, unsigned result, unsigned operand);
  /// How many operands of the instructions in \p range have each root.
  llvm::DenseMap<mlir::Value, int64_t> readsAtOnce(Range range) const;
  /// Empty if result `index` of `update` may overwrite state argument `old`, else the reason why not.
  std::string inPlaceObstacle(mlir::OpResult update, mlir::Value old);
  /// The same of how \p update's operation itself reads \p old.
  std::string obstacleInside(mlir::OpResult update, mlir::Value old);
  /// Where kernels write over operands, they do so over one of the result's shape.
  std::string obstacleInSequence(mlir::OpResult update, mlir::Value old) const;

  const runtime::Device *target;
  BlockDependences dependences;
  std::vector<mlir::Operation *> instructions;
  llvm::DenseMap<mlir::Value, mlir::Value> parent;
  llvm::DenseMap<size_t, Range> buckets; ///< by instruction: the first and the last one of its bucket
  llvm::DenseMap<mlir::Value, Range> lives;
  std::vector<Copy> copies;
  mlir::Operation *asked = nullptr; ///< the operation that `mayAlias` was asked about last
  Aliasing aliasing;                ///< what its kernel may write over what
};

} // namespace mpc::compiler
