#include "compiler/dialect/ranges/range.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace mpc::ranges {

double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

double Range::magnitude() const { return std::max(std::abs(low), std::abs(high)); }

Range Range::between(double low, double high) {
  Range range;
  range.low = low;
  range.high = high;
  return range;
}

Range Range::exactly(double value) {
  Range range = between(value, value);
  range.least = range.peak = range.typical = range.typicalPeak = std::abs(value);
  return range;
}

double countOf(ArrayRef<int64_t> shape) {
  double count = 1;
  for (int64_t extent : shape)
    count *= double(extent);
  return count;
}

double expectedPeak(double count) { return std::sqrt(2 * std::log(std::max(count, 2.0))); }

/// The bound of a norm over \p count elements from that of the norm of each of its parts, \p parts of them.
static void boundBy(double &norm, double part, double parts) { norm = std::min(norm, times(part, std::sqrt(parts))); }

void tighten(Range &range, ArrayRef<int64_t> shape) {
  double count = countOf(shape);
  double rows = shape.empty() ? 1 : double(shape.back());
  double columns = shape.size() < 2 ? 1 : double(shape[shape.size() - 2]);
  double samples = shape.empty() ? 1 : double(shape.front());
  double magnitude = range.magnitude();

  // From the elements to the tensor.
  boundBy(range.rowNorm, magnitude, rows);
  boundBy(range.columnNorm, magnitude, columns);
  boundBy(range.sampleNorm, magnitude, count / std::max(samples, 1.0));
  if (shape.size() >= 2)
    boundBy(range.sampleNorm, range.rowNorm, count / std::max(samples * rows, 1.0));
  if (shape.size() >= 3)
    boundBy(range.sampleNorm, range.columnNorm, count / std::max(samples * columns, 1.0));
  boundBy(range.norm, range.sampleNorm, samples);
  boundBy(range.norm, range.rowNorm, count / std::max(rows, 1.0));
  boundBy(range.norm, range.columnNorm, count / std::max(columns, 1.0));

  // And back.
  range.sampleNorm = std::min(range.sampleNorm, range.norm);
  range.rowNorm = std::min(range.rowNorm, shape.size() >= 2 ? range.sampleNorm : range.norm);
  range.columnNorm = std::min(range.columnNorm, shape.size() >= 3 ? range.sampleNorm : range.norm);
  double bound = std::min(range.rowNorm, range.columnNorm);
  if (range.low <= bound && range.high >= -bound) {
    range.low = std::max(range.low, -bound);
    range.high = std::min(range.high, bound);
  }

  range.peak = std::max({range.peak, range.low, -range.high});
  // A bound holds whatever was to be expected.
  range.typical = std::isnan(range.typical) ? range.typical : std::min(range.typical, range.magnitude());
  if (!std::isnan(range.typical) && std::isnan(range.typicalPeak))
    range.typicalPeak = range.typical * expectedPeak(count);
  range.typicalPeak =
      std::isnan(range.typicalPeak) ? range.typicalPeak : std::min(range.typicalPeak, range.magnitude());
}

} // namespace mpc::ranges
