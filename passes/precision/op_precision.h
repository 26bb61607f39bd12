// The precision of operations, decided and still open.
#pragma once

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/precision/precision_options.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <string>

namespace mpc {

/// The precision of one operation. A null element type means "as stored": the operation takes the value in whatever
/// type its producer gives.
struct OpPrecision {
  /// The type of arithmetic and accumulation. The numerics contract leaves only f32 (f64 in reference graphs).
  mlir::Type Compute;
  llvm::SmallVector<mlir::Type> Operands;
  llvm::SmallVector<mlir::Type> Results;
  std::optional<PrecisionRule> Rule; ///< what decided; none while the operation is open
  std::string Detail;                ///< for reports: the level, the class, the entry of the user's lists
  bool IsUsers = false;              ///< the user asked for it
  bool IsFolded = false;             ///< it reads or writes another type than its rule says

  void decideBy(PrecisionRule Deciding, std::string Text = "") {
    Rule = Deciding;
    Detail = std::move(Text);
  }
};

using DecidedOperations = llvm::MapVector<mlir::Operation *, OpPrecision>;

/// An operation at O1 or auto that no pin decides: its slot is low or f32. A norm's slot is its y; it reads x as
/// stored.
struct OpenOperation {
  AmpClass Class = AmpClass::Clear; ///< its own, or that of a list entry
  AmpLevel Level = AmpLevel::O1;
  mlir::FloatType Low;
  std::string Entry;         ///< the entry of the user's lists that gave the class, for reports; else empty
  std::optional<bool> IsLow; ///< set by the stored assignment, the infer rule or the cut
  PrecisionRule Rule = PrecisionRule::Cut; ///< what has set IsLow

  void decideBy(PrecisionRule Deciding, bool Low) {
    Rule = Deciding;
    IsLow = Low;
  }
};

using OpenOperations = llvm::MapVector<mlir::Operation *, OpenOperation>;

/// A type that AMP may change: f64 is for reference graphs, integers are never touched.
inline bool isAssignable(mlir::Value V) { return elementOf(V).isF32() || isLow(elementOf(V)); }

/// \p Precision as an attribute of \p Op, whose results it has types for.
PrecisionAttr toAttribute(mlir::Operation *Op, const OpPrecision &Precision);

/// Whether some result is in the type of the operation's slot.
bool hasSlot(mlir::Operation *Op);

/// Gives every floating operand and result the type \p Element, except those that the operation declares f32. An
/// operation without a floating result reads what is stored: a cast would only change what it compares.
void assignTypes(mlir::Operation *Op, mlir::Type Element, OpPrecision &Precision);

/// Decides f32 for Infer slots that f32-pinned operations reach along floating values, before any low-pinned one.
void applyInferRule(const DecidedOperations &Decided, OpenOperations &Open);

} // namespace mpc
