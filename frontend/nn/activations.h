// Activation layers beside those of layers.h. Names and defaults are MindSpore's.
#pragma once

#include <cstdint>

#include "frontend/graph/cell.h"
#include "frontend/graph/initializer.h"
#include "frontend/graph/ops.h"

namespace mpc::nn {

/// x times the cumulative standard normal distribution at x; `approximate`: its tanh form.
class GELU : public Cell {
 public:
  MPC_CELL(GELU)
  explicit GELU(bool approximate = true) : approximate_(approximate) {}
  Tensor Construct(const Tensor& x) { return gelu(x, approximate_ ? "tanh" : "none"); }

 private:
  bool approximate_;
};

/// x * sigmoid(x).
class SiLU : public Cell {
 public:
  MPC_CELL(SiLU)
  Tensor Construct(const Tensor& x) { return silu(x); }
};

/// x * min(max(x + 3, 0), 6) / 6, which MobileNetV3 has in place of SiLU.
class HSwish : public Cell {
 public:
  MPC_CELL(HSwish)
  Tensor Construct(const Tensor& x) { return hard_swish(x); }
};

/// x where x > 0, else alpha * x.
class LeakyReLU : public Cell {
 public:
  MPC_CELL(LeakyReLU)
  explicit LeakyReLU(double alpha = 0.2) : alpha_(alpha) {}
  Tensor Construct(const Tensor& x) { return leaky_relu(x, alpha_); }

 private:
  double alpha_;
};

/// LeakyReLU with trained slopes: `channel` of them, one a channel of axis 1, or one for all. w [channel].
class PReLU : public Cell {
 public:
  MPC_CELL(PReLU, w)
  explicit PReLU(std::int64_t channel = 1, double initial_slope = 0.25) : w({channel}, Constant(initial_slope)) {}
  Tensor Construct(const Tensor& x) { return prelu(x, w); }
  Parameter w;
};

}  // namespace mpc::nn
