#include "frontend/nn/likelihood_losses.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/nn/finite_numbers.h"
#include "frontend/nn/loss_inputs.h"

namespace mpc::nn {
namespace {

using internal::AsF32;
using internal::LossError;
using internal::PairError;

// f32 of a variance in a shape that broadcasts to `shape`; undefined where it does not fit.
Tensor VarianceFor(const Shape& shape, const Tensor& variance) {
  if (!IsFloating(variance.dtype())) return {};
  const Shape& given = variance.shape();
  if (given.size() + 1 == shape.size() && std::equal(given.begin(), given.end(), shape.begin())) {
    Shape column = given;
    column.push_back(1);
    return reshape(AsF32(variance), column);
  }
  if (given.size() != shape.size()) return {};
  int shared = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (given[i] == shape[i]) continue;
    if (given[i] != 1 || ++shared > 1) return {};
  }
  return AsF32(variance);
}

}  // namespace

Tensor PoissonNLLLoss::Construct(const Tensor& x, const Tensor& target) {
  std::string error = PairError(x, target);
  if (error.empty()) error = std::string(internal::CheckNotNegative("eps", options_.eps).message());
  if (!error.empty()) return LossError(TypeName(), error);
  const Tensor expected = AsF32(x), count = stop_gradient(AsF32(target));
  Tensor losses =
      options_.log_input ? exp(expected) - count * expected : expected - count * log(expected + options_.eps);
  if (options_.full) {
    const Tensor stirling = count * log(count) - count + log(count * (2 * std::numbers::pi)) * 0.5;
    losses = losses + where(less_equal(count, 1), 0, stirling);
  }
  return internal::Reduce(TypeName(), losses, options_.reduction);
}

Tensor GaussianNLLLoss::Construct(const Tensor& x, const Tensor& target, const Tensor& variance) {
  std::string error = PairError(x, target);
  if (error.empty()) error = std::string(internal::CheckPositive("eps", options_.eps).message());
  if (!error.empty()) return LossError(TypeName(), error);
  const Tensor given = VarianceFor(x.shape(), variance);
  if (!given.defined()) {
    return LossError(TypeName(), absl::StrCat("expects a floating variance of the shape of x, with 1 in place of one "
                                              "extent or without the last, got ",
                                              variance.spec().ToString(), " for ", x.spec().ToString()));
  }
  // eps, with the derivative of the variance.
  const Tensor raised = given - stop_gradient(given) + options_.eps;
  const Tensor at_least = where(less(given, options_.eps), raised, given);
  const Tensor v = where(less(given, 0), std::numeric_limits<double>::quiet_NaN(), at_least);
  Tensor losses = (log(v) + square(AsF32(x) - AsF32(target)) / v) * 0.5;
  if (options_.full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return internal::Reduce(TypeName(), losses, options_.reduction);
}

}  // namespace mpc::nn
