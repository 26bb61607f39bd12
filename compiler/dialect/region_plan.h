// How operations are computed together over one iteration space: the answer that the fusion pass asks for and that the
// code generator follows.
//
// The space is a row-major matrix. A *sweep* visits all of it; tiles of rows are independent. Within a sweep each row
// is visited in *phases*: a reduction along a row needs the row before anything that uses its value. A reduction along
// columns (or of everything) ends its sweep: its partial values are combined, and what uses them comes in the next one.
// Values that a later phase or sweep needs again are computed again from what is stored; they are not kept, but for
// what an operation itself names (ElementContext::once).
#pragma once

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <string>

namespace mpc::codegen {

/// When a value can be had.
struct Availability {
  unsigned sweep = 0;
  unsigned phase = 0;
  bool operator==(const Availability &) const = default;
  bool operator<(const Availability &Other) const {
    return sweep != Other.sweep ? sweep < Other.sweep : phase < Other.phase;
  }
};

class RegionPlan {
public:
  /// A reduction step of one operation.
  struct Step {
    mlir::Operation *op;
    unsigned index; ///< among the operation's reductions
    Reduction reduction;
    Availability when; ///< the phase in which its terms are added
  };

  /// The plan of the operations of \p Body, in their order; values from outside are inputs. Errors: the operation that
  /// does not fit and why.
  /// \p Stored are values of the body that the region stores whatever else it does.
  static llvm::Expected<RegionPlan> of(llvm::ArrayRef<mlir::Operation *> Body, mlir::ValueRange Stored = {});
  static llvm::Expected<RegionPlan> of(FusionOp Fusion);

  int64_t rows() const { return Elements / Columns; }
  int64_t columns() const { return Columns; }
  int64_t elements() const { return Elements; }
  llvm::ArrayRef<mlir::Operation *> body() const { return Body; }

  Extent extent(mlir::Value V) const { return Extents.lookup(V); }
  /// When the value of an operation, or of an input (at once), can be had at an element.
  Availability available(mlir::Value V) const { return When.lookup(V); }

  /// Reduction steps in the order in which they run.
  llvm::ArrayRef<Step> steps() const { return Steps; }
  unsigned numSweeps() const { return Sweeps; }
  /// Phases of sweep \p Sweep: one more than its last row reduction.
  unsigned numPhases(unsigned Sweep) const;
  /// Whether partial values are combined after \p Sweep.
  bool endsInCombination(unsigned Sweep) const;

private:
  llvm::Error place(mlir::Operation *Op);
  llvm::Error checkLaterSweeps(mlir::ValueRange Stored) const;
  bool needsRowAgain(mlir::Value V, llvm::SmallPtrSetImpl<mlir::Value> &Settled) const;
  bool reducesRows(mlir::Operation *Op) const;
  llvm::Error unify(mlir::Operation *Op, mlir::Value V, Extent E);
  Extent outerExtent(mlir::Operation *Op, const OperationSpace &Space) const;

  llvm::SmallVector<mlir::Operation *> Body;
  int64_t Elements = 1;
  int64_t Columns = 1;
  llvm::DenseMap<mlir::Value, Extent> Extents;
  llvm::DenseMap<mlir::Value, Extent> Uses; ///< what values are to the operations that use them
  llvm::DenseMap<mlir::Value, Availability> When;
  llvm::SmallVector<Step> Steps;
  unsigned Sweeps = 1;
};

} // namespace mpc::codegen
