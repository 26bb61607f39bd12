// Losses between tensors of one shape.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/graph/sequence_ops.h"
#include "frontend/nn/finite_numbers.h"
#include "frontend/nn/loss.h"
#include "frontend/nn/loss_inputs.h"

namespace mpc::nn {
namespace {

using internal::AsF32;
using internal::LossError;
using internal::Number;
using internal::PairError;

/// Huber's loss of a difference d as a product, c (d - c / 2): c is d limited to [-delta, delta], and the derivative.
struct HuberFactors {
  HuberFactors(const Tensor& prediction, const Tensor& target, double delta) {
    const Tensor difference = AsF32(prediction) - AsF32(target);
    // NaN passes the comparisons. `where`, unlike clamp, has a second derivative.
    limited = where(less(difference, Number(-delta)), Number(-delta), difference);
    limited = where(greater(difference, Number(delta)), Number(delta), limited);
    rest = difference - limited * 0.5;
  }

  Tensor limited, rest;
};

// Empty, or why `weight` does not weigh the elements of x. An undefined weight weighs nothing.
std::string ElementWeightError(const char* field, const Tensor& weight, const Tensor& x) {
  if (!weight.defined()) return "";
  if (!weight.status().ok()) return std::string(weight.status().message());
  if (!weight.concrete() || !IsFloating(weight.dtype())) return absl::StrCat("takes a concrete floating ", field);
  if (mpc::internal::BroadcastsTo(weight.shape(), x.shape())) return "";
  return absl::StrCat("takes a ", field, " that broadcasts to ", x.spec().ToString(), ", got ",
                      weight.spec().ToString());
}

Tensor Weighed(const Tensor& losses, const Tensor& weight) {
  return weight.defined() ? losses * weight.To(DType::kF32) : losses;
}

std::string NumberError(const char* field, double value) {
  return std::string(internal::CheckPositive(field, value).message());
}

}  // namespace

Tensor L1Loss::Construct(const Tensor& prediction, const Tensor& target) {
  if (const std::string error = PairError(prediction, target); !error.empty()) return LossError(TypeName(), error);
  return internal::Reduce(TypeName(), abs(AsF32(prediction) - AsF32(target)), options_.reduction);
}

Tensor HuberLoss::Construct(const Tensor& prediction, const Tensor& target) {
  if (const std::string error = PairError(prediction, target); !error.empty()) return LossError(TypeName(), error);
  if (const std::string error = NumberError("delta", options_.delta); !error.empty()) {
    return LossError(TypeName(), error);
  }
  const HuberFactors factors(prediction, target, options_.delta);
  return internal::Reduce(TypeName(), factors.limited * factors.rest, options_.reduction);
}

Tensor SmoothL1Loss::Construct(const Tensor& prediction, const Tensor& target) {
  if (const std::string error = PairError(prediction, target); !error.empty()) return LossError(TypeName(), error);
  if (const std::string error = NumberError("beta", options_.beta); !error.empty()) {
    return LossError(TypeName(), error);
  }
  const HuberFactors factors(prediction, target, options_.beta);
  // A quotient, which is exactly 1 or -1 beyond beta. A small beta has no finite reciprocal.
  return internal::Reduce(TypeName(), factors.limited / Number(options_.beta) * factors.rest, options_.reduction);
}

Tensor KLDivLoss::Construct(const Tensor& log_probabilities, const Tensor& target) {
  std::string error = PairError(log_probabilities, target);
  const std::string& reduction = options_.reduction;
  const bool by_batch = reduction == "batchmean";
  if (error.empty() && by_batch && log_probabilities.rank() < 1) {
    error = absl::StrCat("with batchmean expects [N, ...], got ", log_probabilities.spec().ToString());
  }
  if (error.empty() && !by_batch && reduction != "none" && reduction != "mean" && reduction != "sum") {
    error = absl::StrCat("does not know the reduction '", reduction, "'; known are none, mean, batchmean, sum");
  }
  if (!error.empty()) return LossError(TypeName(), error);
  const Tensor expected = stop_gradient(AsF32(target));
  // A target that is NaN is not left out.
  const Tensor left_out = less_equal(expected, Number(0));
  const Tensor differences = log(where(left_out, Number(1), expected)) - AsF32(log_probabilities);
  const Tensor losses = where(left_out, Number(0), expected * differences);
  if (by_batch) return reduce_sum(losses) / static_cast<double>(log_probabilities.dim(0));
  return internal::Reduce(TypeName(), losses, reduction);
}

Tensor BCELoss::Construct(const Tensor& probabilities, const Tensor& labels) {
  if (const std::string error = PairError(probabilities, labels); !error.empty()) return LossError(TypeName(), error);
  const std::string error = ElementWeightError("weight", options_.weight, probabilities);
  if (!error.empty()) return LossError(TypeName(), error);
  const Tensor p = AsF32(probabilities), t = stop_gradient(AsF32(labels));
  const Tensor fixed = stop_gradient(p), rest = 1.0 - fixed;
  const auto logarithm = [](const Tensor& x) { return maximum(log(x), Number(-100)); };
  const Tensor losses = neg(t * logarithm(fixed) + (1.0 - t) * logarithm(rest));
  // The derivative is not that of the logarithms, which is infinite at 0. A term that is 0 carries it.
  const Tensor slope = (fixed - t) / maximum(fixed * rest, Number(1e-12));
  return internal::Reduce(TypeName(), Weighed(losses + slope * (p - fixed), options_.weight), options_.reduction);
}

Tensor BCEWithLogitsLoss::Construct(const Tensor& logits, const Tensor& labels) {
  const Tensor &weight = options_.weight, &pos_weight = options_.pos_weight;
  if (!weight.defined() && !pos_weight.defined()) {
    return binary_cross_entropy_with_logits(logits, labels, options_.reduction);
  }
  std::string error = PairError(logits, labels);
  if (error.empty()) error = ElementWeightError("weight", weight, logits);
  if (error.empty()) error = ElementWeightError("pos_weight", pos_weight, logits);
  if (!error.empty()) return LossError(TypeName(), error);
  const Tensor x = AsF32(logits), t = stop_gradient(AsF32(labels));
  if (!pos_weight.defined()) {
    const Tensor losses = binary_cross_entropy_with_logits(x, t, "none");
    return internal::Reduce(TypeName(), Weighed(losses, weight), options_.reduction);
  }
  const auto against = [&](double label) {
    return binary_cross_entropy_with_logits(x, ops::FullLike(x, label), "none");
  };
  // A term whose factor is 0 may be infinite.
  const Tensor of_ones = where(equal(t, 0), 0, Weighed(against(1) * t, pos_weight));
  const Tensor of_zeros = where(equal(t, 1), 0, against(0) * (1.0 - t));
  return internal::Reduce(TypeName(), Weighed(of_ones + of_zeros, weight), options_.reduction);
}

Tensor DiceLoss::Construct(const Tensor& probabilities, const Tensor& labels) {
  if (const std::string error = PairError(probabilities, labels); !error.empty()) return LossError(TypeName(), error);
  if (const std::string error = NumberError("smooth", options_.smooth); !error.empty()) {
    return LossError(TypeName(), error);
  }
  const Tensor p = AsF32(probabilities);
  const Tensor t = AsF32(labels);
  return 1.0 - reduce_sum(p * t) * 2.0 / (reduce_sum(square(p)) + reduce_sum(square(t)) + options_.smooth);
}

}  // namespace mpc::nn
