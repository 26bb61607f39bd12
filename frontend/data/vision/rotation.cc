#include "frontend/data/vision/rotation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numbers>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/vision/border.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"
#include "frontend/data/vision/taps.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision {
namespace {

using internal::Extents;

/// Sine and cosine of right angles are exact after this.
double Snapped(double value) { return std::round(value * 1e15) / 1e15; }

/// From a place of the turned picture to the one of the source that is seen there.
struct Turn {
  double cosine = 1;
  double sine = 0;
  double center_x = 0;  ///< in the source
  double center_y = 0;
  double target_x = 0;  ///< where the centre stands in the result
  double target_y = 0;

  double SourceX(double x, double y) const { return cosine * (x - target_x) - sine * (y - target_y) + center_x; }
  double SourceY(double x, double y) const { return sine * (x - target_x) + cosine * (y - target_y) + center_y; }
};

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
    return internal::CubicWeights(fraction);
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
Tensor Turned(const Tensor& image, const Extents& extents, const Turn& turn, const TensorSpec& spec,
              const std::vector<std::byte>& fill, Inter interpolation) {
  const Sampler<T> sampler(image, extents, interpolation);
  runtime::AlignedBuffer buffer(spec.bytes());
  T* target = reinterpret_cast<T*>(buffer.data());
  for (std::int64_t y = 0; y < spec.shape[0]; ++y) {
    for (std::int64_t x = 0; x < spec.shape[1]; ++x, target += extents.channels) {
      const double column = turn.SourceX(static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5);
      const double row = turn.SourceY(static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5);
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

/// The extents of the whole turned picture, whose centre is the middle.
Extents ExpandedExtents(const Extents& extents, const Turn& turn) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const double x : {0.0, static_cast<double>(extents.width)}) {
    for (const double y : {0.0, static_cast<double>(extents.height)}) {
      const double right = x - turn.center_x;
      const double down = y - turn.center_y;
      xs.push_back(turn.cosine * right + turn.sine * down + turn.center_x);
      ys.push_back(turn.cosine * down - turn.sine * right + turn.center_y);
    }
  }
  const auto span = [](const std::vector<double>& places) {
    const auto [least, largest] = std::minmax_element(places.begin(), places.end());
    return static_cast<std::int64_t>(std::ceil(*largest) - std::floor(*least));
  };
  return {.height = span(ys), .width = span(xs), .channels = extents.channels};
}

}  // namespace

RandomRotation::RandomRotation(std::vector<float> degrees, RandomRotationOptions options)
    : degrees_(std::move(degrees)), options_(std::move(options)) {}

absl::Status RandomRotation::CheckOptions() const {
  const bool one = degrees_.size() == 1 && degrees_[0] >= 0 && std::isfinite(degrees_[0]);
  const bool two =
      degrees_.size() == 2 && degrees_[0] <= degrees_[1] && std::isfinite(degrees_[0]) && std::isfinite(degrees_[1]);
  if (!one && !two) {
    return absl::InvalidArgumentError(
        absl::StrCat("RandomRotation: degrees is {least, largest}, or one value of at least 0; got {",
                     absl::StrJoin(degrees_, ", "), "}"));
  }
  if (!options_.center.empty() && (options_.center.size() != 2 || options_.expand)) {
    return absl::InvalidArgumentError(
        absl::StrCat("RandomRotation: center is {x, y}, or empty as with expand = true; got {",
                     absl::StrJoin(options_.center, ", "), "}"));
  }
  for (float coordinate : options_.center) {
    if (std::isfinite(coordinate)) continue;
    return absl::InvalidArgumentError(absl::StrCat("RandomRotation: center is {", absl::StrJoin(options_.center, ", "),
                                                   "}; accepted are finite numbers"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> RandomRotation::operator()(const Tensor& image, const RowPosition& position) const {
  if (absl::Status status = CheckOptions(); !status.ok()) return status;
  const absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "RandomRotation");
  if (!extents.ok()) return extents.status();
  const bool black = std::ranges::all_of(options_.fill_value, [](int v) { return v == 0; });
  const absl::StatusOr<std::vector<std::byte>> fill =
      internal::FillPixel(image, black ? std::vector<std::uint8_t>{0} : options_.fill_value, "RandomRotation");
  if (!fill.ok()) return fill.status();

  internal::Draws draws(internal::DrawStream::kRotation, options_.seed, position);
  const double least = degrees_.size() == 1 ? -degrees_[0] : degrees_[0];
  const double angle = draws.Between(least, degrees_.back()) * std::numbers::pi / 180;
  Turn turn{.cosine = Snapped(std::cos(angle)), .sine = Snapped(std::sin(angle))};
  const std::vector<float>& center = options_.center;
  turn.center_x = center.empty() ? static_cast<double>(extents->width) / 2 : center[0];
  turn.center_y = center.empty() ? static_cast<double>(extents->height) / 2 : center[1];
  const Extents result = options_.expand ? ExpandedExtents(*extents, turn) : *extents;
  turn.target_x = options_.expand ? static_cast<double>(result.width) / 2 : turn.center_x;
  turn.target_y = options_.expand ? static_cast<double>(result.height) / 2 : turn.center_y;
  const TensorSpec spec = internal::WithExtents(image, result.height, result.width);
  if (image.dtype() == DType::kF32) return Turned<float>(image, *extents, turn, spec, *fill, options_.resample);
  return Turned<std::uint8_t>(image, *extents, turn, spec, *fill, options_.resample);
}

}  // namespace mpc::data::vision
