// Layers of whole channels, whole samples and borders, made of operations that exist. Names and defaults are
// MindSpore's.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/graph/ops.h"
#include "frontend/nn/layers.h"

namespace mpc::nn {

/// Zeroes whole channels of images [N, C, H, W] with probability p in [0, 1) while training. It scales the others by
/// 1 / (1 - p), and is the identity otherwise (Tompson et al. 2015). It draws as Dropout does, so that a resumed run
/// goes on with the same draws. A channel is multiplied: what is infinite or NaN becomes NaN, as in PyTorch. Dropout
/// and product are Infer. Errors: another rank, a p outside [0, 1).
class Dropout2d : public Cell {
 public:
  MPC_CELL(Dropout2d)
  explicit Dropout2d(const DropoutOptions& options = {}) : p_(options.p) {}
  Tensor Construct(const Tensor& x);

 private:
  double p_;
};

/// Stochastic depth: as Dropout2d, of whole samples of x [N, ...] (Huang et al. 2016). It stands behind a residual
/// branch. MindSpore has none; torchvision's StochasticDepth has it as mode "row". Errors: rank 0, a p outside [0, 1).
class DropPath : public Cell {
 public:
  MPC_CELL(DropPath)
  explicit DropPath(double p) : p_(p) {}
  Tensor Construct(const Tensor& x);

 private:
  double p_;
};

/// Puts `value` around the last two axes, which are [..., H, W]. `padding` is one count for each side, or left, right,
/// top and bottom. Data movement (Clear). Errors: another count of numbers, a negative one, a rank below 2.
class ConstantPad2d : public Cell {
 public:
  MPC_CELL(ConstantPad2d)
  ConstantPad2d(std::vector<std::int64_t> padding, double value);
  Tensor Construct(const Tensor& x);

 private:
  std::vector<std::int64_t> padding_;
  double value_;
};

/// ConstantPad2d of zeros.
class ZeroPad2d : public ConstantPad2d {
 public:
  MPC_CELL(ZeroPad2d)
  explicit ZeroPad2d(std::vector<std::int64_t> padding) : ConstantPad2d(std::move(padding), 0) {}
  Tensor Construct(const Tensor& x) { return ConstantPad2d::Construct(x); }
};

}  // namespace mpc::nn
