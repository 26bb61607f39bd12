// Decides, without changing anything, which operation of a module runs in which precision, and why.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/precision/network_regions.h"
#include "passes/precision/op_precision.h"
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
  PrecisionAssignment(mlir::ModuleOp Module, const PrecisionOptions &Options);

  /// Why nothing could be decided; empty where everything is.
  llvm::StringRef failure() const { return Failure; }

  /// Null where the operation keeps its types.
  const OpPrecision *lookup(mlir::Operation *Op) const;

  /// Remarks for the user, one for each Cell path: the operation and the text, in program order.
  llvm::ArrayRef<std::pair<mlir::Operation *, std::string>> remarks() const { return Remarks; }

  /// The slots at O1 and auto, including those that the module stored before.
  const StoredAssignment &stored() const { return Stored; }

  /// The cost of the casts that the cut chose, in elements (auto: 1e-15 s).
  std::int64_t cutCost() const { return CutCost; }

private:
  /// The level that acts on an operation, and its low type.
  struct LevelChoice {
    AmpLevel Level;
    mlir::FloatType Low;
    bool KeepNormsF32;
  };
  LevelChoice levelOf(mlir::Operation *Op) const;

  void decide(mlir::Operation *Op);
  void decideByLevel(mlir::Operation *Op, const LevelChoice &Choice, OpPrecision &Precision);
  void decideByClass(mlir::Operation *Op, const LevelChoice &Choice, AmpClass Class, std::string Entry,
                     OpPrecision &Precision);
  bool decideByList(mlir::Operation *Op, const LevelChoice &Choice, OpPrecision &Precision);
  bool applyPin(mlir::Operation *Op, OpPrecision &Precision);
  bool followsUserWidening(mlir::Operation *Op) const;
  void keepNorm(mlir::Operation *Op, OpPrecision &Precision);
  void remark(mlir::Operation *Op, const llvm::Twine &Text);

  void takeStored();
  void closeOpen();
  void foldNorm(mlir::Operation *Op, OpPrecision &Precision);
  bool readsLow(mlir::OpOperand &Use, mlir::Type Low) const;
  mlir::Type storedType(mlir::Value V) const;
  void record();

  PrecisionOptions Options;
  mlir::Type F32;
  NetworkRegions Regions;
  SlotNames Names;
  StoredAssignment Stored;
  llvm::DenseSet<mlir::Operation *> FollowsUserCast;
  llvm::SmallVector<mlir::Operation *> KeptNorms;
  DecidedOperations Decisions;
  OpenOperations Open;
  std::int64_t CutCost = 0;
  std::string Failure;
  llvm::SmallVector<std::pair<mlir::Operation *, std::string>> Remarks;
  llvm::DenseSet<mlir::Attribute> RemarkedPaths;
};

} // namespace mpc
