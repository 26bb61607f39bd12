// Decides, without changing anything, which operation of a module runs in which precision, and why.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/precision/network_parts.h"
#include "passes/precision/op_precision.h"
#include "passes/precision/precision_graph.h"
#include "passes/precision/stored_assignment.h"

namespace mpc {

/// The decision for every operation of a module that the AMP pass may change.
///
/// The first rule that matches decides. The user's cast and `Cell::ToFloat` (losses ignore a low one) come first. Then
/// come losses, labels and the differentiated value, which are f32 at every level. Then comes an entry of the lists
/// (Cell path, then name), and last the level. O0, O2 and O3 decide every operation. O1 and auto decide the classes
/// Allow (low; at auto by the cut) and Deny (f32). Other operations follow the module's stored assignment where it
/// names them, then the infer rule, then the minimum cut. An operation that already carries `mpc.precision` keeps its
/// types.
class PrecisionAssignment {
public:
  /// With \p errors the frontier is found as well.
  PrecisionAssignment(mlir::ModuleOp module, const PrecisionOptions &options, const FrontierErrors *errors = nullptr);

  /// Why nothing could be decided; empty where everything is.
  llvm::StringRef getFailure() const { return failure; }

  /// Null where the operation keeps its types.
  const OpPrecision *lookup(mlir::Operation *op) const;

  /// Remarks for the user, one for each Cell path: the operation and the text, in program order.
  llvm::ArrayRef<std::pair<mlir::Operation *, std::string>> getRemarks() const { return remarks; }

  /// The slots at O1 and auto, including those that the module stored before.
  const StoredAssignment &getStored() const { return stored; }

  /// Empty where it was not asked for, or where nothing is open.
  const AssignmentFrontier &getFrontier() const { return frontier; }

  /// The cost of the casts that the cut chose, in elements (auto: 1e-15 s).
  std::int64_t getCutCost() const { return cutCost; }

private:
  /// The level that acts on an operation, and its low type.
  struct LevelChoice {
    AmpLevel level;
    mlir::FloatType low;
    bool keepNormsF32;
  };
  LevelChoice levelOf(mlir::Operation *op) const;

  void decide(mlir::Operation *op);
  void decideByLevel(mlir::Operation *op, const LevelChoice &choice, OpPrecision &precision);
  void decideByClass(mlir::Operation *op, const LevelChoice &choice, AmpClass ampClass, std::string entry,
                     OpPrecision &precision);
  bool decideByList(mlir::Operation *op, const LevelChoice &choice, OpPrecision &precision);
  bool applyPin(mlir::Operation *op, OpPrecision &precision);
  bool followsUserWidening(mlir::Operation *op) const;
  void keepNorm(mlir::Operation *op, OpPrecision &precision);
  void remark(mlir::Operation *op, const llvm::Twine &text);

  void takeStored();
  void closeOpen();
  void foldNorm(mlir::Operation *op, OpPrecision &precision);
  bool readsLow(mlir::OpOperand &use, mlir::Type low) const;
  mlir::Type storedType(mlir::Value v) const;
  void record();

  PrecisionOptions options;
  mlir::Type f32;
  NetworkParts regions;
  AssignmentNames names;
  StoredAssignment stored;
  llvm::DenseSet<mlir::Operation *> followsUserCast;
  llvm::SmallVector<mlir::Operation *> keptNorms;
  DecidedOperations decisions;
  OpenOperations open;
  std::int64_t cutCost = 0;
  AssignmentFrontier frontier;
  std::string failure;
  llvm::SmallVector<std::pair<mlir::Operation *, std::string>> remarks;
  llvm::DenseSet<mlir::Attribute> remarkedPaths;
};

} // namespace mpc
