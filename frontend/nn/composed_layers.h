// Layers made of functions of frontend/graph/composed_ops.h, which states their AMP classes.
#pragma once

#include <cstdint>

#include "frontend/graph/cell.h"
#include "frontend/graph/composed_ops.h"
#include "frontend/graph/initializer.h"

namespace mpc::nn {

/// x where x > 0, else alpha * (exp(x) - 1).
class ELU : public Cell {
 public:
  MPC_CELL(ELU)
  explicit ELU(double alpha = 1.0) : alpha_(alpha) {}
  Tensor Construct(const Tensor& x) { return elu(x, alpha_); }

 private:
  double alpha_;
};

/// log(1 + exp(x)).
class Softplus : public Cell {
 public:
  MPC_CELL(Softplus)
  Tensor Construct(const Tensor& x) { return softplus(x); }
};

/// x * tanh(softplus(x)).
class Mish : public Cell {
 public:
  MPC_CELL(Mish)
  Tensor Construct(const Tensor& x) { return mish(x); }
};

/// Divides by the root of the mean square over the last axis, of extent `dim`. gamma [dim] begins at one.
/// MindSpore has the function ops.rms_norm only. The layer's epsilon is that function's.
class RMSNorm : public Cell {
 public:
  MPC_CELL(RMSNorm, gamma)
  explicit RMSNorm(std::int64_t dim, double epsilon = 1e-6) : gamma({dim}, Ones()), epsilon_(epsilon) {}
  Tensor Construct(const Tensor& x) { return rms_norm(x, gamma, epsilon_); }
  Parameter gamma;

 private:
  double epsilon_;
};

}  // namespace mpc::nn
