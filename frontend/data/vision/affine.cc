#include "frontend/data/vision/affine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <type_traits>
#include <utility>

#include "frontend/data/vision/image.h"
#include "frontend/data/vision/taps.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision::internal {
namespace {

/// Sine and cosine of right angles are exact after this.
double Snapped(double value) { return std::round(value * 1e15) / 1e15; }

double OfSixteenBits(double value) { return std::floor(value * 0x1p16 + 0.5) * 0x1p-16; }

/// The weighted neighbours of a place, those beyond the edges being the pixels at the edges.
template <typename T>
class Sampler {
 public:
  Sampler(const Tensor& image, const Extents& extents, Inter interpolation)
      : pixels_(image.data<T>().data()), extents_(extents), interpolation_(interpolation) {}

  void Sample(double x, double y, T* target) const {
    if (interpolation_ == Inter::kNearest) {
      std::copy_n(At(static_cast<std::int64_t>(x), static_cast<std::int64_t>(y)), extents_.channels, target);
      return;
    }
    const double left = std::floor(x - 0.5);
    const double top = std::floor(y - 0.5);
    const std::vector<double> across = Weights(x - 0.5 - left);
    const std::vector<double> down = Weights(y - 0.5 - top);
    const std::int64_t back = interpolation_ == Inter::kBilinear ? 0 : 1;
    for (std::int64_t c = 0; c < extents_.channels; ++c) {
      double sum = 0;
      for (std::size_t j = 0; j < down.size(); ++j) {
        for (std::size_t i = 0; i < across.size(); ++i) {
          const std::int64_t column = static_cast<std::int64_t>(left) - back + static_cast<std::int64_t>(i);
          const std::int64_t row = static_cast<std::int64_t>(top) - back + static_cast<std::int64_t>(j);
          sum += down[j] * across[i] * static_cast<double>(At(column, row)[c]);
        }
      }
      target[c] = Pixel(sum);
    }
  }

 private:
  static T Pixel(double value) {
    if constexpr (std::is_same_v<T, float>) {
      return static_cast<float>(value);
    } else {
      return static_cast<T>(std::lround(std::clamp(value, 0.0, 255.0)));
    }
  }
  std::vector<double> Weights(double fraction) const {
    if (interpolation_ == Inter::kBilinear) return {1 - fraction, fraction};
    return CubicWeights(fraction);
  }
  const T* At(std::int64_t x, std::int64_t y) const {
    x = std::clamp(x, std::int64_t{0}, extents_.width - 1);
    y = std::clamp(y, std::int64_t{0}, extents_.height - 1);
    return pixels_ + (y * extents_.width + x) * extents_.channels;
  }

  const T* pixels_;
  Extents extents_;
  Inter interpolation_;
};

template <typename T>
Tensor MappedAs(const Tensor& image, const AffineMap& map, const TensorSpec& spec, const std::vector<std::byte>& fill,
                Inter interpolation) {
  const Extents extents{
      .height = image.dim(0), .width = image.dim(1), .channels = image.rank() == 3 ? image.dim(2) : 1};
  const Sampler<T> sampler(image, extents, interpolation);
  runtime::AlignedBuffer buffer(spec.bytes());
  T* target = reinterpret_cast<T*>(buffer.data());
  for (std::int64_t y = 0; y < spec.shape[0]; ++y) {
    for (std::int64_t x = 0; x < spec.shape[1]; ++x, target += extents.channels) {
      const double column = map.SourceX(static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5);
      const double row = map.SourceY(static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5);
      const bool inside = column >= 0 && row >= 0 && column < static_cast<double>(extents.width) &&
                          row < static_cast<double>(extents.height);
      if (inside) {
        sampler.Sample(column, row, target);
      } else {
        std::memcpy(target, fill.data(), fill.size());
      }
    }
  }
  return mpc::internal::MakeConcrete(spec, std::move(buffer));
}

}  // namespace

AffineMap RotationAbout(double center_x, double center_y, double degrees) {
  const double angle = degrees * std::numbers::pi / 180;
  const double cosine = Snapped(std::cos(angle)), sine = Snapped(std::sin(angle));
  return {.xx = cosine,
          .xy = -sine,
          .yx = sine,
          .yy = cosine,
          .center_x = center_x,
          .center_y = center_y,
          .target_x = center_x,
          .target_y = center_y};
}

AffineMap RoundedAsPillow(const AffineMap& map) {
  constexpr double kFirst = 0.5;  // the centre of the pixel in the corner
  return {.xx = OfSixteenBits(map.xx),
          .xy = OfSixteenBits(map.xy),
          .yx = OfSixteenBits(map.yx),
          .yy = OfSixteenBits(map.yy),
          .center_x = OfSixteenBits(map.SourceX(kFirst, kFirst)),
          .center_y = OfSixteenBits(map.SourceY(kFirst, kFirst)),
          .target_x = kFirst,
          .target_y = kFirst};
}

Tensor Mapped(const Tensor& image, const AffineMap& map, const TensorSpec& spec, const std::vector<std::byte>& fill,
              Inter interpolation) {
  if (image.dtype() == DType::kF32) return MappedAs<float>(image, map, spec, fill, interpolation);
  return MappedAs<std::uint8_t>(image, map, spec, fill, interpolation);
}

}  // namespace mpc::data::vision::internal
