#include "frontend/nn/loss_inputs.h"

#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/class_labels.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/scalar_ops.h"

namespace mpc::nn::internal {
namespace {

/// [N, C, d1, ...] -> [N * d1 * ..., C].
Tensor ClassesLast(const Tensor& x) {
  if (x.rank() == 2) return x;
  std::vector<std::int64_t> permutation(static_cast<std::size_t>(x.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  permutation.erase(permutation.begin() + 1);
  permutation.push_back(1);
  return reshape(transpose(x, permutation), {-1, x.dim(1)});
}

std::string LabelError(const Tensor& logits, const Tensor& labels, const Shape& positions, bool dense) {
  const bool sparse = labels.dtype() == DType::kI32 || labels.dtype() == DType::kI64;
  if (sparse && labels.shape() == positions) return "";
  if (dense && IsFloating(labels.dtype()) && labels.shape() == logits.shape()) return "";
  return absl::StrCat("expects integer class labels [", absl::StrJoin(positions, ", "), "]",
                      dense ? " or floating labels like the logits" : "", ", got labels ", labels.spec().ToString(),
                      " for logits ", logits.spec().ToString(),
                      sparse ? mpc::internal::ClassesLastHint(logits.shape(), labels.shape()) : "");
}

}  // namespace

Tensor AsF32(const Tensor& x) { return x.dtype() == DType::kF32 ? x : cast(x, DType::kF32); }

Tensor Number(double value) { return ops::Fill(DType::kF32, {1}, value); }

Tensor LossError(std::string_view loss, const std::string& message) {
  return mpc::internal::FailWith(absl::StrCat(std::string(loss), " ", message), {});
}

Tensor Reduce(std::string_view loss, const Tensor& losses, const std::string& reduction) {
  if (reduction == "none") return losses;
  if (reduction == "mean") return reduce_mean(losses);
  if (reduction == "sum") return reduce_sum(losses);
  return LossError(loss, absl::StrCat("does not know the reduction '", reduction, "'; known are none, mean, sum"));
}

std::string PairError(const Tensor& prediction, const Tensor& target) {
  if (IsFloating(prediction.dtype()) && IsFloating(target.dtype()) && prediction.shape() == target.shape()) return "";
  return absl::StrCat("expects two floating tensors of one shape, got ", prediction.spec().ToString(), " and ",
                      target.spec().ToString());
}

std::string RowsError(const Tensor& a, const Tensor& b) {
  if (std::string error = PairError(a, b); !error.empty()) return error;
  return a.rank() == 2 ? "" : absl::StrCat("expects rows [N, D], got ", a.spec().ToString());
}

std::string WeightError(const Tensor& weight, std::int64_t classes) {
  if (!weight.defined()) return "";
  if (!weight.status().ok()) return std::string(weight.status().message());
  if (weight.concrete() && IsFloating(weight.dtype()) && weight.shape() == Shape{classes}) return "";
  return absl::StrCat("expects a concrete floating weight [", classes, "], one for each class, got ",
                      weight.spec().ToString());
}

Tensor Hinge(const Tensor& x) { return where(less_equal(x, 0), 0, x); }

ClassRows AsClassRows(const Tensor& logits, const Tensor& labels, const Tensor& weight, bool dense) {
  ClassRows rows;
  if (logits.rank() < 2 || !IsFloating(logits.dtype())) {
    rows.error = absl::StrCat("expects floating logits [N, C, ...], got ", logits.spec().ToString());
    return rows;
  }
  rows.classes = logits.dim(1);
  rows.positions = logits.shape();
  rows.positions.erase(rows.positions.begin() + 1);
  rows.error = LabelError(logits, labels, rows.positions, dense);
  if (rows.error.empty()) rows.error = WeightError(weight, rows.classes);
  if (!rows.error.empty()) return rows;
  rows.sparse = !IsFloating(labels.dtype());
  rows.logits = ClassesLast(AsF32(logits));
  rows.labels = rows.sparse ? reshape(labels, {labels.size()}) : ClassesLast(AsF32(labels));
  rows.weight = weight.defined() ? weight.To(DType::kF32) : ops::Fill(DType::kF32, {rows.classes}, 1);
  return rows;
}

}  // namespace mpc::nn::internal
