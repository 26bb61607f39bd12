// A function as it is without regions: what tables and texts about operations show.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace mpc::compiler {

/// A copy of a function whose regions (`mpc.fusion`) are taken apart. It remembers which operation was in which.
class UnfusedFunction {
public:
  /// Errors: NOT_FOUND where the module has no such function with a body.
  static absl::StatusOr<UnfusedFunction> create(const Module &target, const std::string &name);

  mlir::func::FuncOp get() const { return copy.get(); }
  /// The number of the region that held \p op, from 1 in program order; 0 where none did.
  unsigned regionOf(mlir::Operation *op) const { return regions.lookup(op); }

private:
  explicit UnfusedFunction(mlir::func::FuncOp function);

  mutable mlir::OwningOpRef<mlir::func::FuncOp> copy;
  llvm::DenseMap<mlir::Operation *, unsigned> regions;
};

} // namespace mpc::compiler
