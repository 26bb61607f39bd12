// The block of a function that passes rewrite.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mpc {

/// Returns the first block of \p function, null where it has no body. Nothing branches, so other blocks are
/// unreachable: there, definitions may form cycles.
inline mlir::Block *firstBlock(mlir::func::FuncOp function) {
  return function.isExternal() ? nullptr : &function.getBody().front();
}

/// Returns the body of \p function where it is one block; null where it has none, or control flow.
inline mlir::Block *onlyBlock(mlir::func::FuncOp function) {
  mlir::Block *first = firstBlock(function);
  return first && function.getBody().hasOneBlock() ? first : nullptr;
}

} // namespace mpc
