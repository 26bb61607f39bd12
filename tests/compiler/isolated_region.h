// One region of a step, alone.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "kernels/reference/reference.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mpc::test {

/// A function `@region` that takes what a region takes and returns what it yields: what a test of generated code runs.
struct IsolatedRegion {
  explicit IsolatedRegion(FusionOp fusion);

  mlir::func::FuncOp function() const;
  FusionOp fusion() const;

  /// Values for its inputs, rounded to their types: normal; of integers 0, 1 or 2. Equal seeds give equal values.
  std::vector<reference::Tensor> RandomInputs(std::uint64_t seed) const;

  mutable mlir::OwningOpRef<mlir::ModuleOp> module;
};

}  // namespace mpc::test
