// Decides which values share storage, and how long each storage lives.
#pragma once

#include "compiler/lowering/region_instruction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/executable.h"
#include "llvm/ADT/DenseMap.h"

#include <string>
#include <vector>

namespace mpc::compiler {

/// Whether the kernel of \p Op on \p Target may write a result over an operand. Without a target none but a region
/// does.
bool mayAlias(mlir::Operation *Op, unsigned Result, unsigned Operand, const runtime::Device *Target);

/// Storage of the values of one straight-line function. Values are grouped by their *root*: a view has that of its
/// source. New values of state, or of the first arguments of a sequence, live in their argument. A kernel may write
/// over an operand that dies with it.
///
/// BlockDependences says which order keeps updates in place. The assignment takes the order that there is, also one
/// that a user wrote, and copies old state where a reader comes too late.
class StorageAssignment {
public:
  /// A new value that could not be made in the place of the old one.
  struct Copy {
    unsigned Result;
    std::string Reason;
  };

  StorageAssignment(mlir::func::FuncOp Function, const runtime::Device *Target);

  mlir::Value root(mlir::Value V) const;
  /// Position of an operation among the function's instructions; views and constants have none.
  const std::vector<mlir::Operation *> &instructions() const { return Instructions; }
  /// First and last instruction of a root's life. Function results live to the end.
  std::pair<size_t, size_t> life(mlir::Value Root) const;
  const std::vector<Copy> &copies() const { return Copies; }
  /// Which outputs of a region are written over which of its inputs.
  std::vector<RegionAlias> aliases(FusionOp Fusion) const;

private:
  void placeStateInPlace(mlir::func::FuncOp Function);
  void reuseDyingOperands();
  /// Empty if result `Index` of `Update` may overwrite state argument `Old`, else the reason why not.
  std::string inPlaceObstacle(mlir::OpResult Update, mlir::Value Old) const;
  /// The same of how \p Update's operation itself reads \p Old.
  std::string obstacleInside(mlir::OpResult Update, mlir::Value Old) const;
  /// Where kernels write over operands, they do so over one of the result's shape.
  std::string obstacleInSequence(mlir::OpResult Update, mlir::Value Old) const;

  const runtime::Device *Target;
  std::vector<mlir::Operation *> Instructions;
  llvm::DenseMap<mlir::Operation *, size_t> Position;
  llvm::DenseMap<mlir::Value, mlir::Value> Parent;
  llvm::DenseMap<mlir::Value, std::pair<size_t, size_t>> Lives;
  std::vector<Copy> Copies;
};

} // namespace mpc::compiler
