// Layers that resize images. Names and defaults are MindSpore's.
#pragma once

#include <utility>

#include "frontend/graph/cell.h"
#include "frontend/graph/ops.h"

namespace mpc::nn {

using UpsampleOptions = InterpolateOptions;

/// An image [N, C, H, W] of the size that the options say, larger or smaller.
class Upsample : public Cell {
 public:
  MPC_CELL(Upsample)
  explicit Upsample(UpsampleOptions options) : options_(std::move(options)) {}
  Tensor Construct(const Tensor& x) { return interpolate(x, options_); }

 private:
  UpsampleOptions options_;
};

}  // namespace mpc::nn
