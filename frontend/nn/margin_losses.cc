#include "frontend/nn/margin_losses.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/graph/composed_ops.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/graph/sequence_ops.h"
#include "frontend/graph/trace.h"
#include "frontend/nn/finite_numbers.h"
#include "frontend/nn/loss_inputs.h"

namespace mpc::nn {
namespace {

using internal::AsF32;
using internal::Hinge;
using internal::LossError;

// Empty, or why `margin` cannot be taken.
std::string MarginError(double margin) {
  if (internal::IsFiniteInF32(margin)) return "";
  return absl::StrCat("takes a margin that is finite in f32, got ", margin);
}

}  // namespace

Tensor HingeEmbeddingLoss::Construct(const Tensor& x, const Tensor& labels) {
  std::string error = MarginError(options_.margin);
  if (!IsFloating(x.dtype()) || labels.shape() != x.shape() || labels.dtype() == DType::kBool) {
    error = absl::StrCat("expects a floating x and labels 1 and -1 of its shape, got ", x.spec().ToString(), " and ",
                         labels.spec().ToString());
  }
  if (!error.empty()) return LossError(TypeName(), error);
  const Tensor distance = AsF32(x);
  const Tensor of_unlike = where(equal(labels, 1), 0, Hinge(options_.margin - distance));
  return internal::Reduce(TypeName(), of_unlike + where(equal(labels, -1), 0, distance), options_.reduction);
}

Tensor SoftMarginLoss::Construct(const Tensor& x, const Tensor& target) {
  if (const std::string error = internal::PairError(x, target); !error.empty()) return LossError(TypeName(), error);
  const Tensor order = stop_gradient(AsF32(target));
  return internal::Reduce(TypeName(), softplus(neg(order * AsF32(x))), options_.reduction);
}

Tensor MultiLabelSoftMarginLoss::Construct(const Tensor& logits, const Tensor& target) {
  std::string error = internal::RowsError(logits, target);
  if (error.empty()) error = internal::WeightError(options_.weight, logits.dim(1));
  if (!error.empty()) return LossError(TypeName(), error);
  Tensor losses = binary_cross_entropy_with_logits(AsF32(logits), AsF32(target), "none");
  if (options_.weight.defined()) losses = losses * options_.weight.To(DType::kF32);
  return internal::Reduce(TypeName(), reduce_mean(losses, {1}), options_.reduction);
}

Tensor MultiMarginLoss::Construct(const Tensor& scores, const Tensor& labels) {
  std::string error = MarginError(options_.margin);
  if (options_.p != 1 && options_.p != 2) error = absl::StrCat("takes a power p of 1 or 2, got ", options_.p);
  if (error.empty() && scores.rank() != 2) {
    error = absl::StrCat("expects floating scores [N, C], got ", scores.spec().ToString());
  }
  if (!error.empty()) return LossError(TypeName(), error);
  const internal::ClassRows rows = internal::AsClassRows(scores, labels, options_.weight, /*dense=*/false);
  if (!rows.error.empty()) return LossError(TypeName(), rows.error);
  auto* trace = mpc::internal::Trace::Current();
  if (trace != nullptr && trace->failed()) return scores;
  if (trace != nullptr && options_.reduction != "none") {
    trace->report().ExpectLabels(rows.labels, rows.classes, std::nullopt);
  }
  const Tensor is_label = greater(one_hot(rows.labels, rows.classes), 0.5);
  const Tensor of_label = reduce_sum(where(is_label, rows.logits, 0), {1}, /*keep_dims=*/true);
  const Tensor missing = Hinge(rows.logits - of_label + options_.margin);
  const Tensor terms = where(is_label, 0, options_.p == 1 ? missing : square(missing));
  // The weight is NaN for a label out of range.
  return internal::Reduce(TypeName(), reduce_mean(terms, {1}) * gather(rows.weight, rows.labels), options_.reduction);
}

}  // namespace mpc::nn
