#include "compiler/dialect/ranges/interval.h"

using namespace llvm;

namespace mpc::ranges {

Range product(const Range &a, const Range &b) {
  double corners[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)};
  return Range::between(*std::min_element(std::begin(corners), std::end(corners)),
                        *std::max_element(std::begin(corners), std::end(corners)));
}

Range sumOf(const Range &a, double count) {
  Range sum = Range::between(times(a.low, count), times(a.high, count));
  widen(sum, times(a.magnitude(), count) * sumError(count));
  return sum;
}

Range hull(const Range &a, const Range &b) {
  Range both = Range::between(std::min(a.low, b.low), std::max(a.high, b.high));
  both.least = std::min(a.least, b.least);
  both.typical = std::max(a.typical, b.typical);
  both.typicalPeak = std::max(a.typicalPeak, b.typicalPeak);
  return both;
}

void limit(Range &range, double bound) {
  range.low = std::max(range.low, -bound);
  range.high = std::min(range.high, bound);
}

void widen(Range &range, double slack) {
  range.low -= slack;
  range.high += slack;
}

void scaleNorms(Range &range, double factor) {
  for (double *norm : {&range.rowNorm, &range.columnNorm, &range.sampleNorm, &range.norm})
    *norm = times(*norm, factor);
}

void takeNorms(Range &range, const Range &from) {
  range.rowNorm = from.rowNorm;
  range.columnNorm = from.columnNorm;
  range.sampleNorm = from.sampleNorm;
  range.norm = from.norm;
}

void forgetNorms(Range &range) { takeNorms(range, Range()); }

Range broadcast(Range range, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (from == to)
    return range;
  Range original = range;
  forgetNorms(range);
  if (!from.empty() && from.back() == to.back())
    range.rowNorm = original.rowNorm;
  return range;
}

Range multiplied(const Range &dy, double low, double high, double typical) {
  Range result = product(dy, Range::between(low, high));
  takeNorms(result, dy);
  scaleNorms(result, std::max(std::abs(low), std::abs(high)));
  result.typical = dy.typical * typical;
  result.typicalPeak = dy.typicalPeak * typical;
  return result;
}

} // namespace mpc::ranges
