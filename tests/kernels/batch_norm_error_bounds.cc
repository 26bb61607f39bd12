#include "tests/kernels/batch_norm_error_bounds.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/image.h"

namespace mpc::test {
namespace {

using reference::FloatAttribute;
using reference::VisitChannel;

// Roundings of a channel's mean and variance, relative to the mean of |x| and to the variance.
//
// A kernel may form the two-pass mean and variance of `count` values; or, for n of them at a time, sums of d = x - p
// and of d^2 about one of the n, p, which it adds up in f64 (compiler/codegen/host_accumulators.h). With V the n
// values' sum of squares about the mean m, (p - m)^2 <= V, so sum d^2 <= 2 V + 2 n (p - m)^2 <= 2 (n + 1) V. Each d^2
// has two roundings of d and the sum n: (n + 2) u sum d^2. The sum of d is off by at most n u sum |d| <= n u sqrt(n sum
// d^2), and about m that weighs 2 |p - m| <= 2 sqrt(V). For the mean, sum |d| <= (n + 1) sum |x|.
struct MomentRoundings {
  double mean, variance;
};
MomentRoundings RoundingsOfMoments(double count) {
  constexpr double kRowsOfAVisit = 8;
  const double n = std::min(count, kRowsOfAVisit);
  const double about_pivot = 2 * (n + 1) * (n + 2) + 2 * n * std::sqrt(2 * n * (n + 1));
  return {std::max(count + 2, n * (n + 1) + 1), std::max(count + 5, about_pivot + 1)};
}

Errors BatchNormTrainErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const reference::Image image(op_case.attributes, inputs[0].spec.shape);
  const double epsilon = FloatAttribute(op_case.attributes, attribute::kEpsilon);
  const std::vector<double>& x = inputs[0].values;
  const auto count = static_cast<double>(image.batch * image.height * image.width);
  const MomentRoundings roundings = RoundingsOfMoments(count);
  const auto channels = static_cast<std::size_t>(image.channels);
  ElementErrors y_error(x.size()), mean_error(channels), variance_error(channels), inv_std_error(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double gamma = std::abs(inputs[1].values[c]);
    const double beta = std::abs(inputs[2].values[c]);
    const double mean = exact[1].values[c];
    const double variance = exact[2].values[c];
    const double inv_std = exact[3].values[c];
    double magnitude = 0;
    VisitChannel(image, static_cast<std::int64_t>(c), [&](std::size_t i) { magnitude += std::abs(x[i]) / count; });
    mean_error[c] = roundings.mean * kU * magnitude;
    // The mean square about a mean that is off by d is the variance plus d^2; each difference rounds relatively.
    const double shift = mean_error[c] * mean_error[c];
    variance_error[c] = roundings.variance * kU * (variance + shift) + shift + kUnderflow;
    // d (v + eps)^(-1/2) = -1/2 (v + eps)^(-3/2) dv; then the sum, the root and the division round.
    const double relative = 0.5 * variance_error[c] / (variance + epsilon) + 4 * kU;
    inv_std_error[c] = relative * inv_std;
    VisitChannel(image, static_cast<std::int64_t>(c), [&](std::size_t i) {
      // The formula may be folded into x * scale + shift, which rounds to the magnitude of x and mean.
      const double folded = 4 * kU * (std::abs(x[i]) + std::abs(mean));
      y_error[i] = gamma * inv_std * (folded + mean_error[c] + std::abs(x[i] - mean) * (relative + 3 * kU)) +
                   3 * kU * beta + kUnderflow;
    });
  }
  return {y_error, mean_error, variance_error, inv_std_error};
}

// Both gradients: `training` has the terms through the batch's statistics.
Errors BatchNormGradErrors(const OpCase& op_case, const Tensors& inputs, bool training) {
  const reference::Image image(op_case.attributes, inputs[0].spec.shape);
  const double epsilon = FloatAttribute(op_case.attributes, attribute::kEpsilon);
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& x = inputs[1].values;
  const auto count = static_cast<double>(image.batch * image.height * image.width);
  const auto channels = static_cast<std::size_t>(image.channels);
  ElementErrors dx_error(x.size()), dgamma_error(channels), dbeta_error(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double gamma = std::abs(inputs[2].values[c]);
    const double mean = inputs[3].values[c];
    const double inv_std = training ? std::abs(inputs[4].values[c]) : 1 / std::sqrt(inputs[4].values[c] + epsilon);
    double dbeta = 0;
    double dgamma = 0;
    VisitChannel(image, static_cast<std::int64_t>(c), [&](std::size_t i) {
      dbeta += std::abs(dy[i]);
      dgamma += std::abs(dy[i] * (x[i] - mean)) * inv_std;
    });
    dbeta_error[c] = (count + 1) * kU * dbeta + kUnderflow;
    dgamma_error[c] = (count + 7) * kU * dgamma + kUnderflow;
    VisitChannel(image, static_cast<std::int64_t>(c), [&](std::size_t i) {
      double terms = std::abs(dy[i]) * 6 * kU;
      if (training) {
        const double x_hat = std::abs(x[i] - mean) * inv_std;
        terms += (dbeta_error[c] + 6 * kU * dbeta + x_hat * (dgamma_error[c] + 8 * kU * dgamma)) / count;
      }
      dx_error[i] = gamma * inv_std * terms + kUnderflow;
    });
  }
  return {dx_error, dgamma_error, dbeta_error};
}

// The sum with epsilon, the root, the quotient or product, the difference, the product and the sum round.
Errors NormalisedErrors(const OpCase& op_case, const Tensors& inputs, bool with_inv_std) {
  const reference::Image image(op_case.attributes, inputs[0].spec.shape);
  ElementErrors error(inputs[0].values.size());
  for (std::int64_t channel = 0; channel < image.channels; ++channel) {
    const auto c = static_cast<std::size_t>(channel);
    const double inv_std =
        with_inv_std ? std::abs(inputs[4].values[c])
                     : 1 / std::sqrt(inputs[4].values[c] + FloatAttribute(op_case.attributes, attribute::kEpsilon));
    const double scale = std::abs(inputs[1].values[c]) * inv_std;
    VisitChannel(image, channel, [&](std::size_t i) {
      error[i] = 8 * kU * scale * (std::abs(inputs[0].values[i]) + std::abs(inputs[3].values[c])) +
                 3 * kU * std::abs(inputs[2].values[c]) + kUnderflow;
    });
  }
  return {error};
}

}  // namespace

// As a library computes them beside the products: y is off by its own error and by rounding to storage, sums of y and
// y^2 are f32 in any order, and the variance is the difference of two means.
Errors Conv2dStatisticsErrors(const OpCase& op_case, const ElementErrors& y_error, const Tensors& exact) {
  const reference::Image image(op_case.attributes, exact[0].spec.shape);
  const double epsilon = FloatAttribute(op_case.attributes, attribute::kEpsilon);
  const std::vector<double>& y = exact[0].values;
  const double count = reference::ElementsPerChannel(image);
  const auto channels = static_cast<std::size_t>(image.channels);
  ElementErrors mean_error(channels), variance_error(channels), inv_std_error(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = std::abs(exact[1].values[c]);
    const double variance = exact[2].values[c];
    const double inv_std = exact[3].values[c];
    double sum_error = 0, magnitude = 0, squares_error = 0, squares = 0;
    VisitChannel(image, static_cast<std::int64_t>(c), [&](std::size_t i) {
      const double stored = y_error[i] + HalfUlp(exact[0].spec.dtype, std::abs(y[i]) + y_error[i]);
      const double largest = std::abs(y[i]) + stored;
      sum_error += stored / count;
      magnitude += largest / count;
      squares_error += (2 * std::abs(y[i]) + stored) * stored / count;
      squares += largest * largest / count;
    });
    const double roundings = (count + 2) * kU;
    mean_error[c] = sum_error + roundings * magnitude;
    variance_error[c] = squares_error + roundings * squares + (2 * mean + mean_error[c]) * mean_error[c] +
                        kU * (squares + mean * mean) + kUnderflow;
    const double most = 1 / std::sqrt(std::max(variance - variance_error[c], 0.0) + epsilon);
    const double least = 1 / std::sqrt(variance + variance_error[c] + epsilon);
    inv_std_error[c] = std::max(most * (1 + 4 * kU) - inv_std, inv_std - least * (1 - 4 * kU));
  }
  return {y_error, mean_error, variance_error, inv_std_error};
}

std::optional<Errors> BatchNormErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const std::string& op = op_case.op;
  if (op == "batch_norm_train") return BatchNormTrainErrors(op_case, inputs, exact);
  if (op == "batch_norm_train_grad") return BatchNormGradErrors(op_case, inputs, /*training=*/true);
  if (op == "batch_norm_infer_grad") return BatchNormGradErrors(op_case, inputs, /*training=*/false);
  if (op == "batch_norm_apply") return NormalisedErrors(op_case, inputs, /*with_inv_std=*/true);
  if (op == "batch_norm_infer") return NormalisedErrors(op_case, inputs, /*with_inv_std=*/false);
  return std::nullopt;
}

}  // namespace mpc::test
