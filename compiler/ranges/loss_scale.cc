#include "compiler/ranges/loss_scale.h"

#include "compiler/ranges/stored_format.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace mpc::ranges {

/// What expectations may fall short of: gradients that point the same way, and that grow in the first steps.
static constexpr double kMargin = 4;
static constexpr double kLargestScale = 0x1p24;

DerivedScale deriveLossScale(const RangeAnalysis &analysis) {
  DerivedScale derived;
  double room = kLargestScale;
  for (const LowTensor &tensor : analysis.lowTensors()) {
    Type element = cast<RankedTensorType>(tensor.value.getType()).getElementType();
    if (!element.isF16() || !analysis.rangeOf(tensor.value).isScaled)
      continue;
    double peak = tensor.exact.typicalPeak;
    if (std::isnan(peak)) {
      ++derived.unknown;
      continue;
    }
    double allowed = StoredFormat::of(element)->largest / (kMargin * peak);
    if (!derived.largest || peak > derived.peak) {
      derived.largest = tensor.value;
      derived.peak = peak;
      room = std::min(room, allowed);
    }
  }
  if (!derived.largest)
    return derived;
  derived.scale = std::clamp(std::exp2(std::floor(std::log2(room))), 1.0, kLargestScale);
  return derived;
}

} // namespace mpc::ranges
