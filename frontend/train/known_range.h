// What the values of tensors say about ranges. Not part of the public API.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/report/range_table.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/tensor.h"

namespace mpc::internal {

/// The interval, the norms and the root mean square of the elements of `tensor`. Nothing where the type is not f32, or
/// an element is not finite.
std::optional<compiler::KnownRange> KnownRangeOf(const Tensor& tensor);

/// The ranges of the Parameters of `cell` as they are, by name. Errors: those of Parameter::Value.
absl::StatusOr<std::map<std::string, compiler::KnownRange>> KnownState(nn::Cell& cell);

}  // namespace mpc::internal
