// Losses of classification: cross-entropy, negative log-likelihood, focal loss.
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/nn/finite_numbers.h"
#include "frontend/nn/loss.h"
#include "frontend/nn/loss_inputs.h"

namespace mpc::nn {
namespace {

using internal::ClassRows;
using internal::Number;

bool Failed() {
  const auto* trace = mpc::internal::Trace::Current();
  return trace != nullptr && trace->failed();
}

/// Batches are checked before they run where nothing masks a row of the loss but `ignored`.
void ExpectLabels(const ClassRows& rows, const std::string& reduction, std::optional<std::int64_t> ignored) {
  auto* trace = mpc::internal::Trace::Current();
  if (trace != nullptr && reduction != "none") trace->report().ExpectLabels(rows.labels, rows.classes, ignored);
}

/// The element of each row of `values` that its label names; 0 for a label out of range. Other elements do not matter,
/// infinite ones included.
Tensor AtLabel(const ClassRows& rows, const Tensor& values) {
  const Tensor chosen = greater(one_hot(rows.labels, rows.classes), Number(0.5));
  return reduce_sum(where(chosen, values, Number(0)), {1});
}

/// Positions that `ignore_index` leaves out. Undefined where the labels' type does not have this number.
Tensor Ignored(const ClassRows& rows, std::int64_t ignore_index) {
  using Limits = std::numeric_limits<std::int32_t>;
  const DType dtype = rows.labels.dtype();
  if (ignore_index >= Limits::min() && ignore_index <= Limits::max()) {
    return equal(rows.labels, ops::Fill(dtype, {1}, static_cast<double>(ignore_index)));
  }
  if (dtype != DType::kI64) return {};
  // A double does not hold every i64.
  return equal(rows.labels, Tensor::From<std::int64_t>({ignore_index}, {1}));
}

/// `values` of positions, with 0 at those that are ignored.
Tensor WithoutIgnored(const Tensor& ignored, const Tensor& values) {
  return ignored.defined() ? where(ignored, Number(0), values) : values;
}

/// Reduces the losses of positions that are not ignored. `weights` are those of the labels, 0 where it is ignored.
Tensor ReduceCounted(std::string_view loss, const ClassRows& rows, const Tensor& losses, const Tensor& weights,
                     const std::string& reduction) {
  if (reduction == "mean") return MeanOfCounted(losses, weights);
  return internal::Reduce(loss, reduction == "none" ? reshape(losses, rows.positions) : losses, reduction);
}

}  // namespace

Tensor MeanOfCounted(const Tensor& losses, const Tensor& weights) {
  auto* trace = mpc::internal::Trace::Current();
  const bool weighs = trace != nullptr && trace->processes().weighs_elements;
  if (!weighs) return reduce_sum(internal::AsF32(losses)) / reduce_sum(internal::AsF32(weights));
  const auto scalar = [](double value) { return ops::Fill(DType::kF32, {}, value); };
  const Tensor all = scalar(static_cast<double>(weights.size()));
  const Tensor counted = reduce_sum(internal::AsF32(weights)) / all;
  trace->RecordLossWeight(counted);
  return reduce_sum(internal::AsF32(losses)) / all / where(equal(counted, scalar(0)), scalar(1), counted);
}

Tensor CrossEntropyLoss::Construct(const Tensor& logits, const Tensor& labels) {
  const double smoothing = options_.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1)) {
    return internal::LossError(TypeName(), absl::StrCat("takes a label_smoothing in [0, 1], got ", smoothing));
  }
  const ClassRows rows = internal::AsClassRows(logits, labels, options_.weight, /*dense=*/true);
  if (!rows.error.empty()) return internal::LossError(TypeName(), rows.error);
  if (Failed()) return logits;
  if (!rows.sparse) {
    const Tensor target = rows.labels * (1 - smoothing) + smoothing / static_cast<double>(rows.classes);
    const Tensor losses = neg(reduce_sum(log_softmax(rows.logits) * target * rows.weight, {1}));
    return internal::Reduce(TypeName(), reshape(losses, rows.positions), options_.reduction);
  }
  ExpectLabels(rows, options_.reduction, options_.ignore_index);
  // A weight is NaN for a label out of range, as the loss is. Ignored ones are replaced before they multiply.
  const Tensor ignored = Ignored(rows, options_.ignore_index);
  const Tensor weights = WithoutIgnored(ignored, gather(rows.weight, rows.labels));
  Tensor losses = softmax_cross_entropy(rows.logits, rows.labels, "none") * weights;
  if (smoothing > 0) {
    const Tensor of_all = neg(reduce_sum(log_softmax(rows.logits) * rows.weight, {1}));
    losses = losses * (1 - smoothing) + of_all * (smoothing / static_cast<double>(rows.classes));
  }
  return ReduceCounted(TypeName(), rows, WithoutIgnored(ignored, losses), weights, options_.reduction);
}

Tensor NLLLoss::Construct(const Tensor& log_probabilities, const Tensor& labels) {
  const ClassRows rows = internal::AsClassRows(log_probabilities, labels, options_.weight, /*dense=*/false);
  if (!rows.error.empty()) return internal::LossError(TypeName(), rows.error);
  if (Failed()) return log_probabilities;
  ExpectLabels(rows, options_.reduction, options_.ignore_index);
  const Tensor ignored = Ignored(rows, options_.ignore_index);
  const Tensor weights = WithoutIgnored(ignored, gather(rows.weight, rows.labels));
  const Tensor picked = WithoutIgnored(ignored, AtLabel(rows, rows.logits));
  return ReduceCounted(TypeName(), rows, neg(picked * weights), weights, options_.reduction);
}

Tensor FocalLoss::Construct(const Tensor& logits, const Tensor& labels) {
  if (const absl::Status status = internal::CheckNotNegative("gamma", options_.gamma); !status.ok()) {
    return internal::LossError(TypeName(), std::string(status.message()));
  }
  // MindSpore's class indices have an axis of extent 1 where logits have the classes.
  Shape column = logits.shape();
  if (logits.rank() >= 2) column[1] = 1;
  const bool is_column = !IsFloating(labels.dtype()) && logits.rank() >= 2 && labels.shape() == column;
  if (is_column) column.erase(column.begin() + 1);
  const ClassRows rows =
      internal::AsClassRows(logits, is_column ? reshape(labels, column) : labels, options_.weight, /*dense=*/true);
  if (!rows.error.empty()) return internal::LossError(TypeName(), rows.error);
  if (Failed()) return logits;
  // p may round to 1, where the derivative of a power below 1 is infinite. The lower limit keeps it finite.
  const auto focused = [&](const Tensor& log_p) {
    if (options_.gamma == 0) return neg(log_p);
    return neg(log_p * pow(clamp(1.0 - exp(log_p), 1e-30, 1), options_.gamma));
  };
  const std::int64_t samples = rows.positions[0];
  const Tensor log_p = log_softmax(rows.logits);
  if (!rows.sparse) {
    const Tensor losses = focused(log_p) * rows.labels * rows.weight;
    return internal::Reduce(TypeName(), reduce_mean(reshape(losses, {samples, -1, rows.classes}), {1}),
                            options_.reduction);
  }
  ExpectLabels(rows, options_.reduction, std::nullopt);
  const Tensor losses = focused(AtLabel(rows, log_p)) * gather(rows.weight, rows.labels);
  return internal::Reduce(TypeName(), reduce_mean(reshape(losses, {samples, -1}), {1}), options_.reduction);
}

}  // namespace mpc::nn
