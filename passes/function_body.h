// The block of a function that passes rewrite.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mpc {

/// Returns the first block of \p Function, null where it has no body. Nothing branches, so other blocks are
/// unreachable: there, definitions may form cycles.
inline mlir::Block *firstBlock(mlir::func::FuncOp Function) {
  return Function.isExternal() ? nullptr : &Function.getBody().front();
}

/// Returns the body of \p Function where it is one block; null where it has none, or control flow.
inline mlir::Block *onlyBlock(mlir::func::FuncOp Function) {
  mlir::Block *First = firstBlock(Function);
  return First && Function.getBody().hasOneBlock() ? First : nullptr;
}

} // namespace mpc
