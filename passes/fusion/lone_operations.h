// Operations that are computed in a region of their own: docs/fusion.md, "One operation alone".
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// Whether, on the CPU, a region of this operation alone is expected to beat the operation's own kernel.
bool isWorthAlone(mlir::Operation *op);

/// Whether, on a GPU, a region of this operation alone is expected to beat the operation's own kernel. It has many
/// elements, takes many instructions for each, and neither reduces nor reads values of rows.
bool hasExpensiveElements(mlir::Operation *op);

/// Puts operations along an axis that is not the last one between transposes, where only generated code computes them.
/// Generated code takes contiguous rows.
void makeRowsContiguous(mlir::Block &body);

/// Copies operands of operations that only generated code computes and that read one value in several ways, such as by
/// row and by column. A region has an argument of its own for each way.
void separateOperands(mlir::Block &body);

} // namespace mpc
