#include "frontend/train/metric_inputs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/class_labels.h"

namespace mpc::internal {
namespace {

/// Index of the one largest of `count` values that lie `stride` apart. None where it is not above 0, where several are
/// as large, and where one is NaN.
std::optional<std::int64_t> OneLargest(const float* values, std::int64_t count, std::int64_t stride) {
  std::optional<std::int64_t> largest;
  float value = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::isnan(values[i * stride])) return std::nullopt;
    if (values[i * stride] < value) continue;
    const bool is_larger = values[i * stride] > value;
    largest = is_larger ? std::optional(i) : std::nullopt;
    value = values[i * stride];
  }
  return largest;
}

std::string Extents(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

}  // namespace

absl::Status CheckConcrete(const Tensor& tensor, const char* what) {
  if (!tensor.status().ok()) return tensor.status();
  if (tensor.concrete()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a metric needs concrete ", what, ", got ",
                                                 tensor.defined() ? "a symbolic tensor" : "an empty tensor"));
}

absl::Status NoBatch() { return absl::FailedPreconditionError("no batch was seen since Clear"); }

absl::Status CannotMerge(const Metric& metric, const Metric& other) {
  return absl::InvalidArgumentError(absl::StrCat(metric.Description(), " does not merge with ", other.Description()));
}

std::string OrNone(std::optional<std::int64_t> value) { return value.has_value() ? absl::StrCat(*value) : "none"; }

bool AreIntegers(const Tensor& tensor) { return !IsFloating(tensor.dtype()) && tensor.dtype() != DType::kBool; }

std::vector<std::int64_t> ToIntegers(const Tensor& tensor) {
  const Tensor wide = tensor.To(DType::kI64);
  const absl::Span<const std::int64_t> values = wide.data<std::int64_t>();
  return {values.begin(), values.end()};
}

absl::StatusOr<std::vector<std::int64_t>> ClassIndices(const Tensor& predictions, const Tensor& labels) {
  const std::int64_t rows = predictions.dim(0);
  const std::int64_t classes = predictions.dim(1);
  Shape positions = predictions.shape();
  positions.erase(positions.begin() + 1);
  Shape column = positions;
  column.insert(column.begin() + 1, 1);
  const bool is_flattened = predictions.rank() == 2 && labels.size() == rows && labels.shape() != predictions.shape();
  const bool fits = is_flattened || labels.shape() == positions || labels.shape() == column;
  if (AreIntegers(labels) && fits) return ToIntegers(labels);
  if (labels.shape() != predictions.shape()) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels ", labels.spec().ToString(), " do not match predictions ", predictions.spec().ToString(),
                     ": expected integers ", Extents(positions), " or one-hot rows ", Extents(predictions.shape()),
                     ClassesLastHint(predictions.shape(), labels.shape())));
  }
  const std::int64_t inner = NumElements(positions) / std::max<std::int64_t>(1, rows);
  const std::vector<float> values = labels.ToFloats();
  std::vector<std::int64_t> indices;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const std::optional<std::int64_t> label = OneLargest(values.data() + row * classes * inner + i, classes, inner);
      if (!label.has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("labels ", labels.spec().ToString(), " in row ", row,
                         " are not one-hot: expected one largest entry, above 0, among the ", classes, " classes"));
      }
      indices.push_back(*label);
    }
  }
  return indices;
}

absl::Status CheckLabels(const std::vector<std::int64_t>& labels, std::int64_t rows, std::int64_t classes,
                         std::optional<std::int64_t> ignore_label) {
  const std::int64_t per_row =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(labels.size()) / std::max<std::int64_t>(1, rows));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == ignore_label) continue;
    absl::Status status = CheckLabel(labels[i], static_cast<std::int64_t>(i) / per_row, classes);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool IsBinaryLogits(const Tensor& predictions) {
  return IsFloating(predictions.dtype()) &&
         (predictions.rank() == 1 || (predictions.rank() == 2 && predictions.dim(1) == 1));
}

absl::StatusOr<std::vector<std::int64_t>> BinaryIndices(const Tensor& predictions, const Tensor& labels,
                                                        std::optional<std::int64_t> ignore_label) {
  if (labels.size() != predictions.size() || labels.rank() < 1 || labels.dim(0) != predictions.dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("labels ", labels.spec().ToString(), " do not match predictions ",
                                                   predictions.spec().ToString(), ": expected ", predictions.size(),
                                                   " labels, each 0 or 1"));
  }
  std::vector<std::int64_t> indices;
  for (float value : labels.ToFloats()) {
    const bool ignored = ignore_label.has_value() && value == static_cast<float>(*ignore_label);
    if (!ignored && value != 0 && value != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", value, " in row ", indices.size(), " is neither 0 nor 1"));
    }
    indices.push_back(static_cast<std::int64_t>(value));
  }
  return indices;
}

}  // namespace mpc::internal
