// What metrics have in common: their inputs, and errors. Not part of the public API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"
#include "frontend/train/metric.h"

namespace mpc::internal {

/// Errors: the tensor has one, or it is not concrete.
absl::Status CheckConcrete(const Tensor& tensor, const char* what);
/// The error of Eval where nothing was counted.
absl::Status NoBatch();
/// The error of Merge where kinds or options differ.
absl::Status CannotMerge(const Metric& metric, const Metric& other);
/// The number, or "none".
std::string OrNone(std::optional<std::int64_t> value);

/// True for integers; i1 are none.
bool AreIntegers(const Tensor& tensor);
std::vector<std::int64_t> ToIntegers(const Tensor& tensor);

/// The class of each position [N, d1, ...] for predictions [N, C, d1, ...]. Labels are integers [N, d1, ...], or [N, 1,
/// d1, ...], or one-hot like the predictions (the largest entry is the label). For [N, C] they may be N integers in any
/// shape. Indices are not yet checked against C. Errors (INVALID_ARGUMENT): other labels, both specs named; a one-hot
/// row without a largest entry above 0, or with several, by its number.
absl::StatusOr<std::vector<std::int64_t>> ClassIndices(const Tensor& predictions, const Tensor& labels);

/// Errors (INVALID_ARGUMENT): one of `labels`, which belong to `rows` rows in equal parts, is outside [0, classes) and
/// is not `ignore_label`.
absl::Status CheckLabels(const std::vector<std::int64_t>& labels, std::int64_t rows, std::int64_t classes,
                         std::optional<std::int64_t> ignore_label);

/// True for floating [N] or [N, 1]: one logit a row, whose classes are 0 and 1.
bool IsBinaryLogits(const Tensor& predictions);
/// 0 or 1 for each row of such predictions. Labels have as many elements, of any type. Errors (INVALID_ARGUMENT):
/// another number of labels; a label that is neither, with its row. `ignore_label` may be another integer.
absl::StatusOr<std::vector<std::int64_t>> BinaryIndices(const Tensor& predictions, const Tensor& labels,
                                                        std::optional<std::int64_t> ignore_label = std::nullopt);

}  // namespace mpc::internal
