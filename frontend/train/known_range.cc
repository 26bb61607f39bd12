#include "frontend/train/known_range.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mpc::internal {

using compiler::KnownRange;

namespace {

/// Sums of squares of the fibres of a row-major tensor along axes [`first`, `last`); the root of the largest.
double LargestNorm(const float* values, const Shape& shape, std::size_t first, std::size_t last) {
  std::size_t inner = 1;
  std::size_t terms = 1;
  std::size_t outer = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    (axis < first ? outer : axis < last ? terms : inner) *= static_cast<std::size_t>(shape[axis]);
  }
  double largest = 0;
  std::vector<double> squares(inner);
  for (std::size_t block = 0; block < outer; ++block) {
    std::fill(squares.begin(), squares.end(), 0.0);
    const float* row = values + block * terms * inner;
    for (std::size_t term = 0; term < terms; ++term, row += inner) {
      for (std::size_t i = 0; i < inner; ++i) squares[i] += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    }
    for (const double sum : squares) largest = std::max(largest, sum);
  }
  return std::sqrt(largest);
}

}  // namespace

std::optional<KnownRange> KnownRangeOf(const Tensor& tensor) {
  if (tensor.dtype() != DType::kF32 || tensor.size() == 0) return std::nullopt;
  const float* values = tensor.data<float>().data();
  const auto count = static_cast<std::size_t>(tensor.size());
  if (!std::all_of(values, values + count, [](float value) { return std::isfinite(value); })) return std::nullopt;
  const auto [low, high] = std::minmax_element(values, values + count);
  KnownRange range{.low = *low, .high = *high};
  const Shape& shape = tensor.shape();
  const std::size_t rank = shape.size();
  range.norm = LargestNorm(values, shape, 0, rank);
  range.typical = range.norm / std::sqrt(static_cast<double>(count));
  if (rank >= 1) range.row_norm = LargestNorm(values, shape, rank - 1, rank);
  if (rank >= 1) range.sample_norm = LargestNorm(values, shape, 1, rank);
  if (rank >= 2) range.column_norm = LargestNorm(values, shape, rank - 2, rank - 1);
  return range;
}

absl::StatusOr<std::map<std::string, KnownRange>> KnownState(nn::Cell& cell) {
  std::map<std::string, KnownRange> state;
  for (const auto& [name, parameter] : cell.ParametersAndNames()) {
    const absl::StatusOr<Tensor> value = parameter.Value();
    if (!value.ok()) return value.status();
    if (const std::optional<KnownRange> known = KnownRangeOf(*value); known.has_value()) state[name] = *known;
  }
  return state;
}

}  // namespace mpc::internal
