// Class indices given as labels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/graph/tensor.h"

namespace mpc::internal {

/// Errors (INVALID_ARGUMENT): `label` is outside [0, classes).
inline absl::Status CheckLabel(std::int64_t label, std::int64_t row, std::int64_t classes) {
  if (label >= 0 && label < classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("label ", label, " in row ", row, " is out of range: there are ", classes, " classes"));
}

/// The same of every label of `labels`, i32 or i64 of any shape; rows are counted along axis 0. `ignored` is no error.
inline absl::Status CheckLabels(const Tensor& labels, std::int64_t classes,
                                std::optional<std::int64_t> ignored = std::nullopt) {
  if (labels.size() == 0) return absl::OkStatus();
  const std::int64_t per_row = labels.rank() == 0 ? 1 : labels.size() / labels.dim(0);
  const auto check = [&](const auto* values) {
    for (std::int64_t i = 0; i < labels.size(); ++i) {
      if (values[i] == ignored) continue;
      if (absl::Status status = CheckLabel(values[i], i / per_row, classes); !status.ok()) return status;
    }
    return absl::OkStatus();
  };
  const std::uint8_t* const bytes = labels.bytes().data();
  return labels.dtype() == DType::kI64 ? check(reinterpret_cast<const std::int64_t*>(bytes))
                                       : check(reinterpret_cast<const std::int32_t*>(bytes));
}

/// What moves the classes to axis 1, to be added to an error. Empty unless `labels` are the positions of `logits` with
/// the classes on the last axis.
inline std::string ClassesLastHint(const Shape& logits, const Shape& labels) {
  if (logits.size() < 3 || !std::equal(logits.begin(), logits.end() - 1, labels.begin(), labels.end())) return "";
  std::string order = absl::StrCat("0, ", logits.size() - 1);
  for (std::size_t axis = 1; axis + 1 < logits.size(); ++axis) absl::StrAppend(&order, ", ", axis);
  return absl::StrCat("; classes are on axis 1, and here they seem to be on the last one: transpose(logits, {", order,
                      "}) moves them");
}

}  // namespace mpc::internal
