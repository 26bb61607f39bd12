// Class indices given as labels.
#pragma once

#include <cstdint>
#include <optional>

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

}  // namespace mpc::internal
