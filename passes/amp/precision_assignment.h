// Decides, without changing anything, which operation of a module runs in which precision, and why.
#pragma once

#include "compiler/dialect/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <string>

namespace mpc {

/// O1 and auto need the minimum cut and are not in this version.
enum class AmpLevel {
  O0, ///< f32 except where the user asked otherwise
  O2, ///< everything low but norms and losses
  O3, ///< everything low but losses
};

/// The level that a user wrote; the error lists what is accepted.
llvm::Expected<AmpLevel> parseAmpLevel(llvm::StringRef Text);

/// "f16" or "bf16" as a type.
llvm::Expected<mlir::FloatType> parseLowType(mlir::MLIRContext *Context, llvm::StringRef Text);

/// "true", "false", or empty for the level's default: norms stay f32 at O2 and not at O3. Numeric and capitalised
/// booleans are accepted.
llvm::Expected<bool> parseKeepNormsF32(llvm::StringRef Text, AmpLevel Level);

struct PrecisionOptions {
  AmpLevel Level = AmpLevel::O0;
  mlir::FloatType Low;
  /// Norms compute in f32 and are folded: only their x and y may be stored low.
  bool KeepNormsF32 = true;
};

/// The precision of one operation. A null element type means "as stored": the operation takes the value in whatever
/// type its producer gives.
struct OpPrecision {
  /// Arithmetic and accumulation; the numerics contract leaves only f32 (f64 in reference graphs).
  mlir::Type Compute;
  llvm::SmallVector<mlir::Type> Operands;
  llvm::SmallVector<mlir::Type> Results;
  std::string Reason;
};

/// The decision for every operation of a module that the AMP pass may change.
///
/// The first rule that matches decides: the user's cast, `Cell::ToFloat` (losses ignore a low one), losses and labels
/// (f32 at every level), the differentiated value, the level. An operation that already carries `mpc.amp_reason` keeps
/// its types.
class PrecisionAssignment {
public:
  PrecisionAssignment(mlir::ModuleOp Module, const PrecisionOptions &Options);

  /// Null where the operation keeps its types.
  const OpPrecision *lookup(mlir::Operation *Op) const;

  /// Where a pin and the level disagreed, one a Cell path: the operation and the text, in program order.
  llvm::ArrayRef<std::pair<mlir::Operation *, std::string>> remarks() const { return Remarks; }

private:
  void collectNetwork(mlir::ModuleOp Module);
  void collectDifferentiated(mlir::ModuleOp Module);
  void collectLabels(mlir::ModuleOp Module);
  void decide(mlir::Operation *Op);
  void decideLevel(mlir::Operation *Op, OpPrecision &Precision);
  void assignTypes(mlir::Operation *Op, mlir::Type Element, OpPrecision &Precision) const;
  void foldNorm(mlir::Operation *Op, OpPrecision &Precision);
  bool readsLow(mlir::OpOperand &Use) const;
  bool followsUserWidening(mlir::Operation *Op) const;
  bool applyPin(mlir::Operation *Op, AmpClass Class, mlir::Type Pin, OpPrecision &Precision);
  std::string levelText() const;

  PrecisionOptions Options;
  mlir::Type F32;
  llvm::DenseSet<mlir::Operation *> Network;
  llvm::DenseSet<mlir::Operation *> Differentiated;
  /// Subset of Differentiated that gives the differentiated value itself: it ignores a low pin, as losses do.
  llvm::DenseSet<mlir::Operation *> DifferentiatedValue;
  llvm::DenseSet<mlir::Operation *> Labels;
  llvm::DenseSet<mlir::Operation *> FollowsUserCast;
  llvm::SmallVector<mlir::Operation *> FoldedNorms;
  llvm::MapVector<mlir::Operation *, OpPrecision> Decisions;
  llvm::SmallVector<std::pair<mlir::Operation *, std::string>> Remarks;
  llvm::DenseSet<mlir::Attribute> RemarkedPaths;
};

} // namespace mpc
