// The plan by which operations are computed together over one iteration space. The fusion pass asks for it, and the
// code generator follows it.
//
// The space is a row-major matrix. A *sweep* visits all of it; tiles of rows are independent. Within a sweep each row
// is visited in *phases*: a reduction along a row has to read the row before anything uses its value. A reduction along
// columns (or of everything) ends its sweep. Its partial values are combined, and what uses them comes in the next
// sweep. Values that a later phase or sweep needs again are computed again from what is stored. Only what an operation
// itself names is kept (ElementContext::once).
#pragma once

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <string>

namespace mpc::codegen {

/// The sweep and the phase in which a value becomes available.
struct Availability {
  unsigned sweep = 0;
  unsigned phase = 0;
  bool operator==(const Availability &) const = default;
  bool operator<(const Availability &other) const {
    return sweep != other.sweep ? sweep < other.sweep : phase < other.phase;
  }
};

class FusionPlan {
public:
  /// A reduction step of one operation.
  struct Step {
    mlir::Operation *op;
    unsigned index; ///< index among the operation's reductions
    Reduction reduction;
    Availability when; ///< the phase in which its terms are added
  };

  /// The plan of the operations of \p body, in their order; values from outside are inputs. Errors: the operation that
  /// does not fit and why.
  /// \p stored are values of the body that the region stores whatever else it does.
  static llvm::Expected<FusionPlan> create(llvm::ArrayRef<mlir::Operation *> body, mlir::ValueRange stored = {});
  static llvm::Expected<FusionPlan> create(FusionOp fusion);

  int64_t rows() const { return elements / columns; }
  int64_t getColumns() const { return columns; }
  int64_t getElements() const { return elements; }
  llvm::ArrayRef<mlir::Operation *> getBody() const { return body; }

  /// Whether no operation of the body computes \p v.
  bool isInput(mlir::Value v) const { return !members.contains(v.getDefiningOp()); }
  /// Whether \p v is what an operation's reductions give, rather than an element of it.
  bool isReduced(mlir::Value v) const;

  Extent extent(mlir::Value v) const { return extents.lookup(v); }
  /// When the value of an operation becomes available at an element. An input is available at once.
  Availability available(mlir::Value v) const { return when.lookup(v); }

  /// Reduction steps in the order in which they run.
  llvm::ArrayRef<Step> getSteps() const { return steps; }
  unsigned numSweeps() const { return sweeps; }
  /// The number of phases of sweep \p sweep: one more than the phase of its last row reduction.
  unsigned numPhases(unsigned sweep) const;
  /// Whether partial values are combined after \p sweep.
  bool endsInCombination(unsigned sweep) const;

private:
  llvm::Error place(mlir::Operation *op);
  llvm::Error checkLaterSweeps(mlir::ValueRange stored) const;
  bool needsRowAgain(mlir::Value v, llvm::SmallPtrSetImpl<mlir::Value> &settled) const;
  bool reducesRows(mlir::Operation *op) const;
  llvm::Error unify(mlir::Operation *op, mlir::Value v, Extent e);
  Extent outerExtent(mlir::Operation *op, const OperationSpace &space) const;
  llvm::Expected<Extent> wholeExtent(mlir::Operation *op, const OperationSpace &space, bool reduces) const;
  /// Adds the reductions of \p op, the first of which reads what is available at \p terms. Returns when values are
  /// available: before the first reduction and behind each.
  llvm::Expected<llvm::SmallVector<Availability>> addSteps(mlir::Operation *op, llvm::ArrayRef<Reduction> reductions,
                                                           Availability terms);

  llvm::SmallVector<mlir::Operation *> body;
  llvm::DenseSet<mlir::Operation *> members; ///< the operations of the body
  int64_t elements = 1;
  int64_t columns = 1;
  llvm::DenseMap<mlir::Value, Extent> extents;
  llvm::DenseMap<mlir::Value, Extent> uses; ///< the extent that values have for the operations that use them
  llvm::DenseMap<mlir::Value, Availability> when;
  llvm::SmallVector<Step> steps;
  unsigned sweeps = 1;
};

} // namespace mpc::codegen
