// Decides, without changing anything, which operation of a module runs in which precision, and why.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/precision/network_regions.h"
#include "passes/precision/op_precision.h"
#include "passes/precision/stored_assignment.h"

namespace mpc {

/// The decision for every operation of a module that the AMP pass may change.
///
/// The first rule that matches decides: the user's cast, `Cell::ToFloat` (losses ignore a low one), losses, labels and
/// the differentiated value (f32 at every level), an entry of the lists (Cell path, then name), the level. O0, O2 and
/// O3 decide every operation; O1 and auto decide classes Allow (low; at auto by the cut) and Deny (f32), then what the
/// module's stored assignment names, then the infer rule, then the minimum cut. An operation that already carries
/// `mpc.precision` keeps its types.
class PrecisionAssignment {
public:
  PrecisionAssignment(mlir::ModuleOp Module, const PrecisionOptions &Options);

  /// Why nothing could be decided; empty where everything is.
  llvm::StringRef failure() const { return Failure; }

  /// Null where the operation keeps its types.
  const OpPrecision *lookup(mlir::Operation *Op) const;

  /// What the user should know, one a Cell path: the operation and the text, in program order.
  llvm::ArrayRef<std::pair<mlir::Operation *, std::string>> remarks() const { return Remarks; }

  /// The slots at O1 and auto, those stored in the module before included.
  const StoredAssignment &stored() const { return Stored; }

  /// Elements (auto: 1e-15 s) of the casts that the cut chose.
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
