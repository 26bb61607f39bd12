// Arithmetic of intervals and norms that several transfer functions share.
#pragma once

#include "compiler/dialect/ranges/transfer.h"

#include <algorithm>
#include <cmath>

namespace mpc::ranges {

/// The smallest interval with all products of elements of \p a and \p b.
Range product(const Range &a, const Range &b);
/// The interval of the sum of \p count elements of \p a.
Range sumOf(const Range &a, double count);
/// The smallest interval with the elements of both.
Range hull(const Range &a, const Range &b);
inline Range withZero(const Range &a) { return Range::between(std::min(a.low, 0.0), std::max(a.high, 0.0)); }

/// Narrows the interval of \p range to sizes of at most \p bound.
void limit(Range &range, double bound);
/// Moves both ends of the interval outwards by \p slack.
void widen(Range &range, double slack);
/// Multiplies the bounds of all norms of \p range by \p factor, which is not negative.
void scaleNorms(Range &range, double factor);
/// \p range with its norms replaced by those of \p from.
void takeNorms(Range &range, const Range &from);
/// Norms of no tensor: a changed shape keeps none of them.
void forgetNorms(Range &range);

/// \p range for a tensor of shape \p to that repeats the elements of one of shape \p from.
Range broadcast(Range range, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// What f32 sums of \p count terms may be off by, relative to the sum of the sizes of their terms.
inline double sumError(double count) { return (count + 8) * 0x1p-23; }

/// \p dy where each element is multiplied by a factor of its own in [\p low, \p high], of root mean square \p typical.
Range multiplied(const Range &dy, double low, double high, double typical);

/// Whether indices are known to leave [0, \p extent). Those that nothing is known of are taken to lie inside. What
/// reads an index outside is NaN.
inline bool mayLeave(const Range &indices, double extent) {
  return std::isfinite(indices.magnitude()) && (indices.low < 0 || indices.high >= extent);
}

/// The root of the sum of the squares.
inline double inSquares(double a, double b) { return std::sqrt(a * a + b * b); }

} // namespace mpc::ranges
