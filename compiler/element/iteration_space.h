// The iteration space of operations that become one kernel, and what they reduce over it.
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace mpc::codegen {

/// Which elements of the iteration space [rows, columns] one accumulator takes in.
enum class Axis {
  Row,    ///< the columns of one row: one value a row
  Column, ///< the rows of one column: one value a column
  All,    ///< everything: one value
};

/// How two values are combined. The order of combination is fixed by the shape and the target alone.
enum class Combine {
  Sum,    ///< in f32
  SumF64, ///< f32 terms in f64, for moments (kernels/scalar/moments.h)
  /// The squares of f32 terms in f64. Along columns its terms are those of the SumF64 before it: moments are reduced in
  /// pairs there.
  SquaresF64,
  MaxNum,  ///< in f32; NaN are passed over (kernels/scalar/reduction.h, MaxNumOp)
  Maximum, ///< in f32; a NaN wins (kernels/scalar/reduction.h, MaximumOrNanOp)
};

/// One reduction: its accumulators run together, in one pass over the elements.
struct Reduction {
  Axis axis;
  llvm::SmallVector<Combine, 2> accumulators;
};

/// How a tensor lies over the iteration space.
enum class Extent {
  Full,      ///< one value an element, in row-major order
  PerRow,    ///< one value a row
  PerColumn, ///< one value a column
  Single,    ///< one value
};

/// The iteration space of one operation: a row-major matrix whose elements are its result's.
struct OperationSpace {
  int64_t elements = 0;
  int64_t columns = 0; ///< the length of a row; 0: nothing depends on it
  llvm::SmallVector<Extent, 4> operands;
  llvm::SmallVector<Extent, 2> results;
  /// How many of the operation's reductions each result needs; empty: all of them.
  llvm::SmallVector<unsigned, 2> reductionsBefore;
};

} // namespace mpc::codegen
