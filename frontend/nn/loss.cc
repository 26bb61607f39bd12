#include "frontend/nn/loss.h"

#include "absl/strings/str_cat.h"

namespace mpc::nn {

Tensor SoftmaxCrossEntropyWithLogits::Construct(const Tensor& logits, const Tensor& labels) {
  auto* trace = mpc::internal::Trace::Current();
  const bool integers = labels.dtype() == DType::kI32 || labels.dtype() == DType::kI64;
  if (options_.sparse != integers && !trace->failed()) {
    trace->Fail(
        absl::StrCat("SoftmaxCrossEntropyWithLogits with sparse = ", options_.sparse ? "true" : "false",
                     options_.sparse ? " expects integer class labels [N]" : " expects floating one-hot labels [N, C]",
                     ", got labels ", labels.spec().ToString(), " for logits ", logits.spec().ToString(),
                     options_.sparse ? "" : "; class indices need {.sparse = true}"));
  }
  // A network of dense layers takes one row for a batch of one.
  const std::int64_t rows_rank = options_.sparse ? 1 : 2;
  if (labels.rank() == rows_rank - 1 && !trace->failed()) {
    trace->Fail(absl::StrCat("SoftmaxCrossEntropyWithLogits expects labels of rank ", rows_rank, ", got ",
                             labels.spec().ToString(), " for logits ", logits.spec().ToString(),
                             "; is the data set batched? .Batch(n) makes batches of its rows"));
  }
  return softmax_cross_entropy(logits, labels, options_.reduction);
}

}  // namespace mpc::nn
