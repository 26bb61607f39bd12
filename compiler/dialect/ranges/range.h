// What is known of the values of a tensor before a step runs: an interval, norms, and sizes that are to be expected.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <limits>

namespace mpc::ranges {

/// Bounds that hold for every element of a tensor, and expectations that do not have to.
///
/// Norms are l2. Those of fibres bound every fibre. Where nothing is known a bound is infinite, and an expectation is
/// NaN. Sizes are absolute values.
struct Range {
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  double low = -kUnbounded; ///< no element is smaller
  double high = kUnbounded; ///< no element is larger

  double rowNorm = kUnbounded;    ///< norm of the elements along the last axis
  double columnNorm = kUnbounded; ///< norm of the elements along the axis before the last
  double sampleNorm = kUnbounded; ///< norm of the elements with one index of the first axis
  double norm = kUnbounded;       ///< norm of the tensor

  double least = 0; ///< no element that is not zero is smaller in size
  double peak = 0;  ///< at least one element has this size

  double typical = kUnknown;     ///< the root of the mean square that is to be expected
  double typicalPeak = kUnknown; ///< the largest size that is to be expected
  bool isScaled = false;         ///< grows with the loss scale

  /// The bound of every size.
  double magnitude() const;

  static Range between(double low, double high);
  static Range exactly(double value);
};

/// A product of bounds: zero times unbounded is zero, as the other factor has a finite value.
double times(double a, double b);

/// Tightens each bound of \p range by the others, for a tensor of \p shape. The intervals stay as they are where they
/// would become empty.
void tighten(Range &range, llvm::ArrayRef<int64_t> shape);

/// The largest of \p count draws of a normal distribution that is to be expected, in deviations. At least 1.
double expectedPeak(double count);

/// The product of the extents.
double countOf(llvm::ArrayRef<int64_t> shape);

} // namespace mpc::ranges
