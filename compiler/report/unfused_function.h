// A function as it is without regions and loops: what tables and texts about operations show.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace mpc::compiler {

/// A copy of a function whose regions (`mpc.fusion`) are taken apart. It remembers which operation was in which. Of
/// every function that `mpc.repeat` calls in it, and in those, the operations stand where its first call was.
class UnfusedFunction {
public:
  /// Errors: NOT_FOUND where the module has no such function with a body.
  static absl::StatusOr<UnfusedFunction> create(const Module &target, const std::string &name);

  mlir::func::FuncOp get() const { return copy.get(); }
  /// The number of the region that held \p op, from 1 in the program order of its function; 0 where none did.
  unsigned regionOf(mlir::Operation *op) const { return regions.lookup(op); }
  /// The function that `mpc.repeat` calls and that holds \p op, as "body"; empty where no loop does.
  std::string loopOf(mlir::Operation *op) const { return loops.lookup(op).name; }
  /// How often \p op runs in a run of the function; at most the largest number.
  int64_t runsOf(mlir::Operation *op) const { return loops.lookup(op).runs; }

private:
  struct Loop {
    std::string name;
    int64_t runs = 1;
  };

  explicit UnfusedFunction(mlir::func::FuncOp function);
  void openLoops(mlir::func::FuncOp function);
  void takeRegionsApart();

  mutable mlir::OwningOpRef<mlir::func::FuncOp> copy;
  llvm::DenseMap<mlir::Operation *, unsigned> regions;
  llvm::DenseMap<mlir::Operation *, Loop> loops;
};

} // namespace mpc::compiler
