#include "tests/compiler/observed_range.h"

#include <algorithm>
#include <cmath>

namespace mpc::test {

using ranges::Range;

/// The largest norm of the elements that differ in the axes [first, last) alone.
static double LargestNorm(const reference::Tensor& tensor, std::size_t first, std::size_t last) {
  std::size_t inner = 1;
  std::size_t terms = 1;
  for (std::size_t axis = first; axis < tensor.spec.shape.size(); ++axis) {
    (axis < last ? terms : inner) *= static_cast<std::size_t>(tensor.spec.shape[axis]);
  }
  std::vector<double> squares(tensor.values.size() / std::max<std::size_t>(terms, 1) + 1);
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    squares[i / (terms * inner) * inner + i % inner] += tensor.values[i] * tensor.values[i];
  }
  return std::sqrt(*std::max_element(squares.begin(), squares.end()));
}

Range ObservedInterval(const reference::Tensor& tensor) {
  const auto [low, high] = std::minmax_element(tensor.values.begin(), tensor.values.end());
  return tensor.values.empty() ? Range::exactly(0) : Range::between(*low, *high);
}

Range ObservedRange(const reference::Tensor& tensor) {
  Range range = ObservedInterval(tensor);
  const std::size_t rank = tensor.spec.shape.size();
  range.norm = LargestNorm(tensor, 0, rank);
  range.rowNorm = rank >= 1 ? LargestNorm(tensor, rank - 1, rank) : range.norm;
  range.columnNorm = rank >= 2 ? LargestNorm(tensor, rank - 2, rank - 1) : range.magnitude();
  range.sampleNorm = rank >= 1 ? LargestNorm(tensor, 1, rank) : range.norm;
  range.least = Range::kUnbounded;
  for (const double value : tensor.values) {
    if (value != 0) range.least = std::min(range.least, std::abs(value));
  }
  range.peak = range.magnitude();
  return range;
}

}  // namespace mpc::test
