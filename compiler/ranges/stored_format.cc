#include "compiler/ranges/stored_format.h"

#include <algorithm>
#include <cmath>

namespace mpc::ranges {

std::optional<StoredFormat> StoredFormat::of(mlir::Type element) {
  if (element.isF16())
    return StoredFormat{true, 65520.0, 65504, 0x1p-24, 0x1p-11};
  if (element.isBF16())
    return StoredFormat{true, (2 - 0x1p-8) * 0x1p127, (2 - 0x1p-7) * 0x1p127, 0x1p-133, 0x1p-8};
  if (element.isF32())
    return StoredFormat{false, (2 - 0x1p-24) * 0x1p127, (2 - 0x1p-23) * 0x1p127, 0x1p-149, 0x1p-24};
  return std::nullopt;
}

Verdict StoredFormat::overflow(const Range &exact) const {
  if (exact.magnitude() * (1 + kArithmetic) < infinite)
    return Verdict::Cannot;
  return exact.peak * (1 - kArithmetic) >= infinite ? Verdict::Will : Verdict::May;
}

Verdict StoredFormat::underflow(const Range &exact) const {
  if (exact.least * (1 - kArithmetic) > vanishing() || exact.magnitude() == 0)
    return Verdict::Cannot;
  return exact.magnitude() * (1 + kArithmetic) <= vanishing() ? Verdict::Will : Verdict::May;
}

void StoredFormat::round(Range &range, llvm::ArrayRef<int64_t> shape) const {
  double grown = (1 + error) * (1 + kArithmetic), slack = vanishing();
  auto outwards = [&](double end, double sign) {
    double size = sign * end > 0 ? std::abs(end) * grown : std::abs(end) / grown;
    return (end < 0 ? -size : size) + sign * (end == 0 ? 0 : slack);
  };
  range.low = std::clamp(outwards(range.low, -1), -largest, largest);
  range.high = std::clamp(outwards(range.high, 1), -largest, largest);
  double count = countOf(shape);
  for (double *norm : {&range.rowNorm, &range.columnNorm, &range.sampleNorm, &range.norm})
    *norm = *norm * grown + slack * std::sqrt(count);
  range.least = std::max(range.least / grown - slack, least);
  range.peak = std::min(std::max(range.peak / grown - slack, 0.0), largest);
  tighten(range, shape);
}

} // namespace mpc::ranges
