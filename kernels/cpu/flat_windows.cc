#include "kernels/cpu/flat_windows.h"

#include <algorithm>

namespace mpc::cpu {

std::int64_t FlatAxis::Pitch() const {
  const std::int64_t places = results + LastDistance();
  std::int64_t shared = places;  // zeros at either end, in every phase
  for (std::int64_t phase = 0; phase < stride; ++phase) {
    std::int64_t before = 0, behind = 0;
    while (before < places && !HasSource(SourceOf(before, phase))) ++before;
    while (behind < places && !HasSource(SourceOf(places - 1 - behind, phase))) ++behind;
    shared = std::min({shared, before, behind});
  }
  return std::max(results, places - shared);
}

bool FlatAxis::IsRead(std::int64_t source) const {
  if (stride == 1) return true;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    if (PhaseOf(tap) == (source + padding) % stride) return true;
  }
  return false;
}

PixelRange FlatAxis::ResultsOf(std::int64_t tap) const {
  // The first result r with r * stride >= least.
  const auto first_from = [&](std::int64_t least) {
    return least <= 0 ? 0 : std::min(results, (least + stride - 1) / stride);
  };
  const std::int64_t distance = tap * dilation - padding;
  return {first_from(-distance), first_from(sources - distance)};
}

FlatAxis AxisOf(const ConvolutionShape& shape, std::size_t axis) {
  return {.results = shape.y[2 + axis],
          .taps = shape.weight[2 + axis],
          .sources = shape.x[2 + axis],
          .stride = shape.strides[axis],
          .dilation = shape.dilations[axis] + 1,
          .padding = shape.pad_begin[axis]};
}

FlatWindows::FlatWindows(std::int64_t images, const FlatAxis& rows, const FlatAxis& columns)
    : images_(images), rows_(rows), columns_(columns), row_pitch_(rows.Pitch()), pitch_(columns.Pitch()) {}

}  // namespace mpc::cpu
