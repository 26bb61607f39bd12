#include "frontend/nn/distance_losses.h"

#include "absl/strings/str_cat.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/graph/statistics_ops.h"
#include "frontend/nn/finite_numbers.h"
#include "frontend/nn/loss_inputs.h"

namespace mpc::nn {
namespace {

using internal::AsF32;
using internal::Hinge;
using internal::LossError;
using internal::PairError;
using internal::RowsError;

}  // namespace

Tensor CosineEmbeddingLoss::Construct(const Tensor& a, const Tensor& b, const Tensor& labels) {
  std::string error = RowsError(a, b);
  if (error.empty() && !(options_.margin >= -1 && options_.margin <= 1)) {
    error = absl::StrCat("takes a margin in [-1, 1], got ", options_.margin);
  }
  if (error.empty() && (labels.shape() != Shape{a.dim(0)} || labels.dtype() == DType::kBool)) {
    error = absl::StrCat("expects labels 1 and -1 of shape [", a.dim(0), "], got ", labels.spec().ToString());
  }
  if (!error.empty()) return LossError(TypeName(), error);
  const Tensor cosine = cosine_similarity(AsF32(a), AsF32(b));
  const Tensor of_unlike = where(equal(labels, -1), Hinge(cosine - options_.margin), 0);
  return internal::Reduce(TypeName(), where(equal(labels, 1), 1.0 - cosine, of_unlike), options_.reduction);
}

Tensor MarginRankingLoss::Construct(const Tensor& a, const Tensor& b, const Tensor& target) {
  std::string error = PairError(a, b);
  if (error.empty()) error = PairError(a, target);
  if (error.empty() && !internal::IsFiniteInF32(options_.margin)) {
    error = absl::StrCat("takes a margin that is finite in f32, got ", options_.margin);
  }
  if (!error.empty()) return LossError(TypeName(), error);
  const Tensor order = stop_gradient(AsF32(target));
  const Tensor losses = Hinge(order * (AsF32(b) - AsF32(a)) + options_.margin);
  return internal::Reduce(TypeName(), losses, options_.reduction);
}

Tensor TripletMarginLoss::Construct(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
  std::string error = RowsError(anchor, positive);
  if (error.empty()) error = PairError(anchor, negative);
  if (error.empty()) error = std::string(internal::CheckPositive("margin", options_.margin).message());
  if (error.empty()) error = std::string(internal::CheckNotNegative("eps", options_.eps).message());
  if (!error.empty()) return LossError(TypeName(), error);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return norm(AsF32(a) - AsF32(b) + options_.eps, options_.p, {1});
  };
  Tensor to_negative = distance(anchor, negative);
  if (options_.swap) to_negative = minimum(to_negative, distance(positive, negative));
  const Tensor losses = Hinge(distance(anchor, positive) - to_negative + options_.margin);
  return internal::Reduce(TypeName(), losses, options_.reduction);
}

}  // namespace mpc::nn
