// Negative log-likelihoods of distributions: f32 at every AMP level. Names and defaults are MindSpore's.
#pragma once

#include <string>

#include "frontend/nn/loss.h"

namespace mpc::nn {

struct PoissonNLLLossOptions {
  bool log_input = true;           ///< x is the logarithm of the expected count
  bool full = false;               ///< adds Stirling's term, which depends on the target alone
  double eps = 1e-8;               ///< added to x in the logarithm where `log_input` is off; >= 0
  std::string reduction = "mean";  ///< none, mean, sum
};

/// exp(x) - t x for x and counts t of one shape, or x - t log(x + eps) where `log_input` is off. `full` adds
/// t log t - t + log(2 pi t) / 2 where t > 1 (Stirling's formula). An x below -eps gives NaN where `log_input` is off.
/// The target has no gradient. The formula is PyTorch's. Errors: other shapes or types; an eps that f32 does not hold.
class PoissonNLLLoss : public LossBase {
 public:
  MPC_CELL(PoissonNLLLoss)
  explicit PoissonNLLLoss(const PoissonNLLLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& x, const Tensor& target);

 private:
  PoissonNLLLossOptions options_;
};

struct GaussianNLLLossOptions {
  bool full = false;               ///< adds log(2 pi) / 2
  double eps = 1e-6;               ///< the least variance, > 0
  std::string reduction = "mean";  ///< none, mean, sum
};

/// (log v + (x - t)^2 / v) / 2 for x and targets t of one shape, where v = max(variance, eps). The variance has x's
/// shape, or 1 in place of one extent, or lacks the last axis. The derivative by a variance below eps is that at
/// eps, as in PyTorch, so that training can raise it. A negative variance gives NaN, where PyTorch raises. Errors:
/// other shapes or types; an eps that f32 does not hold.
class GaussianNLLLoss : public LossBase {
 public:
  MPC_CELL(GaussianNLLLoss)
  explicit GaussianNLLLoss(const GaussianNLLLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& x, const Tensor& target, const Tensor& variance);

 private:
  GaussianNLLLossOptions options_;
};

}  // namespace mpc::nn
