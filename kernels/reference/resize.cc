// mpc.resize and its derivative.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/image.h"

namespace mpc::reference {
namespace {

// A pixel of x and its share in a pixel of y.
struct Share {
  std::int64_t at;
  double weight;
};

// The pixels of an axis of x that pixel i of y reads. Positions are numerators over a common denominator.
std::array<Share, 2> SharesOf(const Attributes& attributes, std::int64_t input, std::int64_t output, std::int64_t i) {
  const bool nearest = attributes.Get(attribute::kInterpolation) == Interpolation::kNearest;
  std::int64_t position = 0, denominator = 1;
  switch (attributes.Get(attribute::kCoordinates)) {
    case Coordinates::kAsymmetric:
      position = 2 * i * input;
      denominator = 2 * output;
      break;
    case Coordinates::kHalfPixel:
      position = (2 * i + 1) * input - output;
      denominator = 2 * output;
      break;
    case Coordinates::kAlignCorners:
      if (output > 1) {
        position = 2 * i * (input - 1);
        denominator = 2 * (output - 1);
      }
      break;
  }
  if (nearest) {
    const bool rounds = attributes.Get(attribute::kCoordinates) != Coordinates::kAsymmetric;
    const std::int64_t at = (position + (rounds ? denominator / 2 : 0)) / denominator;
    return {Share{std::min(at, input - 1), 1}, Share{0, 0}};
  }
  position = std::clamp<std::int64_t>(position, 0, (input - 1) * denominator);
  const std::int64_t at = position / denominator;
  const double weight = static_cast<double>(position % denominator) / static_cast<double>(denominator);
  return {Share{at, 1 - weight}, Share{at + 1, weight}};
}

// Calls visit(element of x, element of y, weight) for every pixel of x that a pixel of y reads.
template <typename Visit>
void VisitShares(const Attributes& attributes, const Shape& x_shape, const Shape& y_shape, Visit visit) {
  const Image x(attributes, x_shape), y(attributes, y_shape);
  for (std::int64_t i = 0; i < y.height; ++i) {
    for (const Share& row : SharesOf(attributes, x.height, y.height, i)) {
      for (std::int64_t j = 0; j < y.width; ++j) {
        for (const Share& column : SharesOf(attributes, x.width, y.width, j)) {
          if (row.weight * column.weight == 0) continue;
          for (std::int64_t n = 0; n < x.batch; ++n) {
            for (std::int64_t c = 0; c < x.channels; ++c) {
              visit(x.IndexAt(n, c, row.at, column.at), y.IndexAt(n, c, i, j), row.weight * column.weight);
            }
          }
        }
      }
    }
  }
}

void Resize(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  VisitShares(
      attributes, inputs[0].spec.shape, outputs[0].spec.shape,
      [&](std::size_t x, std::size_t y, double weight) { outputs[0].values[y] += weight * inputs[0].values[x]; });
}

void ResizeGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  VisitShares(
      attributes, outputs[0].spec.shape, inputs[0].spec.shape,
      [&](std::size_t dx, std::size_t dy, double weight) { outputs[0].values[dx] += weight * inputs[0].values[dy]; });
}

constexpr NamedFunction kTable[] = {
    {"resize", Resize},
    {"resize_grad", ResizeGrad},
};

}  // namespace

FunctionTable ResizeFunctions() { return kTable; }

}  // namespace mpc::reference
