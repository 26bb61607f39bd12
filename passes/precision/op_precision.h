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
  mlir::Type compute;
  llvm::SmallVector<mlir::Type> operands;
  llvm::SmallVector<mlir::Type> results;
  std::optional<PrecisionRule> rule; ///< what decided; none while the operation is open
  std::string detail;                ///< for reports: the level, the class, the entry of the user's lists
  bool isUsers = false;              ///< the user asked for it
  bool isFolded = false;             ///< it reads or writes another type than its rule says

  void decideBy(PrecisionRule deciding, std::string text = "") {
    rule = deciding;
    detail = std::move(text);
  }
};

using DecidedOperations = llvm::MapVector<mlir::Operation *, OpPrecision>;

/// An operation at O1 or auto that no pin decides: its slot is low or f32. A norm's slot is its y; it reads x as
/// stored.
struct OpenOperation {
  AmpClass ampClass = AmpClass::Clear; ///< its own, or that of a list entry
  AmpLevel level = AmpLevel::O1;
  mlir::FloatType low;
  std::string entry;         ///< the entry of the user's lists that gave the class, for reports; else empty
  std::optional<bool> isLow; ///< set by the stored assignment, the infer rule or the cut
  PrecisionRule rule = PrecisionRule::Cut; ///< what has set IsLow

  void decideBy(PrecisionRule deciding, bool low) {
    rule = deciding;
    isLow = low;
  }
};

using OpenOperations = llvm::MapVector<mlir::Operation *, OpenOperation>;

/// A type that AMP may change: f64 is for reference graphs, integers are never touched.
inline bool isAssignable(mlir::Value v) { return elementOf(v).isF32() || isLow(elementOf(v)); }

/// \p precision as an attribute of \p op, whose results it has types for.
PrecisionAttr toAttribute(mlir::Operation *op, const OpPrecision &precision);

/// Whether some result is in the type of the operation's slot.
bool takesPrecision(mlir::Operation *op);

/// Gives every floating operand and result the type \p element, except those that the operation declares f32. An
/// operation without a floating result reads what is stored: a cast would only change what it compares.
void assignTypes(mlir::Operation *op, mlir::Type element, OpPrecision &precision);

/// Decides f32 for Infer slots that f32-pinned operations reach along floating values, before any low-pinned one.
void applyInferRule(const DecidedOperations &decided, OpenOperations &open);

} // namespace mpc
