// Composed functions that compute in f32 whatever the Cells around them are. Not part of the public API.
#pragma once

#include <optional>

#include "frontend/graph/cell_stack.h"
#include "frontend/graph/tensor.h"

namespace mpc::internal {

/// While it lives, operations are f32 where the Cells around them are low by ToFloat.
class WideScope {
 public:
  WideScope();

 private:
  std::optional<CellStack::FixedScope> fixed_;
};

/// x, or f32 of it where it is narrower. The cast stands as a user's does: passes keep what follows in f32.
Tensor Widened(const Tensor& x);
/// `y`, which was computed from Widened(x), in the type of x where that is low.
Tensor NarrowedLike(const Tensor& x, const Tensor& y);

}  // namespace mpc::internal
