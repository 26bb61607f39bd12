// One region of a step, alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "kernels/reference/reference.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mpc::test {

/// What the elements of random inputs are.
enum class InputFill {
  kNormal,   ///< normally distributed
  kSpecial,  ///< some are zeros of both signs, subnormal, large in f16, infinite or NaN
  kHuge,     ///< some are near the largest number of f32, too
};

/// A function `@region` that takes what a region takes and returns what it yields: what a test of generated code runs.
struct IsolatedFusion {
  explicit IsolatedFusion(FusionOp fusion);
  /// The same, which yields what its reductions give behind what it yields anyway.
  IsolatedFusion WithReductions() const;

  mlir::func::FuncOp function() const;
  FusionOp fusion() const;

  /// Values for its inputs, rounded to their types; of integers 0, 1 or 2. Equal seeds give equal values.
  std::vector<reference::Tensor> RandomInputs(std::uint64_t seed, InputFill fill) const;

  mutable mlir::OwningOpRef<mlir::ModuleOp> module;

 private:
  explicit IsolatedFusion(mlir::OwningOpRef<mlir::ModuleOp> made) : module(std::move(made)) {}
};

}  // namespace mpc::test
