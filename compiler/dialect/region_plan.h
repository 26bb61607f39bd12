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
#include "llvm/ADT/SmallPtrSet.h"

#include <string>

namespace mpc::codegen {

/// The sweep and the phase in which a value becomes available.
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
    unsigned index; ///< index among the operation's reductions
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
  /// When the value of an operation becomes available at an element. An input is available at once.
  Availability available(mlir::Value V) const { return When.lookup(V); }

  /// Reduction steps in the order in which they run.
  llvm::ArrayRef<Step> steps() const { return Steps; }
  unsigned numSweeps() const { return Sweeps; }
  /// The number of phases of sweep \p Sweep: one more than the phase of its last row reduction.
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
  llvm::Expected<Extent> wholeExtent(mlir::Operation *Op, const OperationSpace &Space, bool Reduces) const;
  /// Adds the reductions of \p Op, the first of which reads what is available at \p Terms. Returns when values are
  /// available: before the first reduction and behind each.
  llvm::Expected<llvm::SmallVector<Availability>> addSteps(mlir::Operation *Op, llvm::ArrayRef<Reduction> Reductions,
                                                           Availability Terms);

  llvm::SmallVector<mlir::Operation *> Body;
  int64_t Elements = 1;
  int64_t Columns = 1;
  llvm::DenseMap<mlir::Value, Extent> Extents;
  llvm::DenseMap<mlir::Value, Extent> Uses; ///< the extent that values have for the operations that use them
  llvm::DenseMap<mlir::Value, Availability> When;
  llvm::SmallVector<Step> Steps;
  unsigned Sweeps = 1;
};

} // namespace mpc::codegen
