// Values of all micro-batches of an update, which several processes run.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// The number of a micro-batch among those of an update, where \p builder stands. Each of \p processes runs \p count of
/// them in a row, and \p number is that of the process's own. Null: there is one.
mlir::Value numberInUpdate(mlir::OpBuilder &builder, mlir::Location loc, int64_t processes, int64_t count,
                           mlir::Value number);

/// \p before without its first row, and \p row behind it.
mlir::Value shiftIn(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value before, mlir::Value row);

/// \p value of all \p processes along a first axis, in the order of ranks.
mlir::Value gather(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t processes);
/// \p rows of all \p processes, one behind the other.
mlir::Value gatherRows(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value rows, int64_t processes);

} // namespace mpc
