#include "frontend/data/vision/resampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision::internal {
namespace {

/// Keys' cubic convolution kernel with parameter `a` (Keys 1981). OpenCV takes -0.75, Pillow -0.5.
double Cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double Triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// The place of the source that each place takes. Places round as in the two libraries: OpenCV divides
/// twice, and Pillow adds a step for each place. A last bit decides where a place lies between two of the source.
std::vector<std::int64_t> NearestPlaces(std::int64_t from, std::int64_t to, bool antialias) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double opencv_scale = 1 / (static_cast<double>(to) / static_cast<double>(from));
  double pillow_position = 0.5 * scale;
  std::vector<std::int64_t> places;
  for (std::int64_t place = 0; place < to; ++place) {
    const double position = antialias ? pillow_position : static_cast<double>(place) * opencv_scale;
    places.push_back(std::min(static_cast<std::int64_t>(position), from - 1));
    pillow_position += scale;
  }
  return places;
}

template <typename T>
T ToPixel(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return static_cast<T>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
  }
}

/// A sum of fixed weights, rounded as Pillow rounds it.
template <typename T>
T ToPixel(std::int32_t sum) {
  constexpr std::int32_t kHalf = 1 << (Taps::kFixedBits - 1);
  return static_cast<T>(std::clamp((sum + kHalf) >> Taps::kFixedBits, 0, 255));
}

template <typename Weight>
absl::Span<const Weight> WeightsOf(const Taps::Place& place) {
  if constexpr (std::is_same_v<Weight, float>) {
    return place.weights;
  } else {
    return place.fixed;
  }
}

/// Resamples each row of `source`, [rows, columns.from, channels].
template <typename Weight, typename Between, typename T>
std::vector<Between> ResampleRows(absl::Span<const T> source, const Extents& extents, const Taps& columns) {
  std::vector<Between> result;
  result.reserve(static_cast<std::size_t>(extents.height * columns.size() * extents.channels));
  for (std::int64_t y = 0; y < extents.height; ++y) {
    const T* row = source.data() + y * extents.width * extents.channels;
    for (std::int64_t x = 0; x < columns.size(); ++x) {
      const Taps::Place place = columns[x];
      for (std::int64_t c = 0; c < extents.channels; ++c) {
        Weight sum = 0;
        const T* pixel = row + place.first * extents.channels + c;
        for (const Weight weight : WeightsOf<Weight>(place)) {
          sum += weight * static_cast<Weight>(*pixel);
          pixel += extents.channels;
        }
        result.push_back(ToPixel<Between>(sum));
      }
    }
  }
  return result;
}

template <typename Weight, typename Between, typename T>
void ResampleColumns(const std::vector<Between>& source, std::int64_t row_size, const Taps& rows, T* target) {
  std::vector<Weight> sums(static_cast<std::size_t>(row_size));
  for (std::int64_t y = 0; y < rows.size(); ++y) {
    const Taps::Place place = rows[y];
    std::fill(sums.begin(), sums.end(), Weight{0});
    const Between* row = source.data() + place.first * row_size;
    for (const Weight weight : WeightsOf<Weight>(place)) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * static_cast<Weight>(row[i]);
      row += row_size;
    }
    for (const Weight sum : sums) *target++ = ToPixel<T>(sum);
  }
}

/// Sums up in Weight, and keeps `Between` between the axes.
template <typename Weight, typename Between, typename T>
Tensor ResampleAs(const Tensor& image, const Extents& extents, const Taps& rows, const Taps& columns) {
  TensorSpec spec = WithExtents(image, rows.size(), columns.size());
  mpc::runtime::AlignedBuffer buffer(spec.bytes());
  const std::vector<Between> narrow = ResampleRows<Weight, Between>(image.data<T>(), extents, columns);
  ResampleColumns<Weight>(narrow, columns.size() * extents.channels, rows, reinterpret_cast<T*>(buffer.data()));
  return mpc::internal::MakeConcrete(std::move(spec), std::move(buffer));
}

}  // namespace

std::vector<double> CubicWeights(double fraction) {
  constexpr double kOpenCv = -0.75;
  std::vector<double> weights;
  for (int i = -1; i <= 2; ++i) weights.push_back(Cubic(fraction - i, kOpenCv));
  return weights;
}

Taps::Taps(std::int64_t from, std::int64_t to, Inter interpolation, bool antialias) {
  if (interpolation == Inter::kNearest) {
    for (const std::int64_t place : NearestPlaces(from, to, antialias)) Add(place, std::array{1.0});
    return;
  }
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t place = 0; place < to; ++place) {
    const double centre = (static_cast<double>(place) + 0.5) * scale;
    if (!antialias) {
      const double left = std::floor(centre - 0.5);
      const double fraction = centre - 0.5 - left;
      const auto first = static_cast<std::int64_t>(left);
      if (interpolation == Inter::kBilinear) {
        AddRepeatingEdges(from, first, std::array{1 - fraction, fraction});
      } else {
        AddRepeatingEdges(from, first - 1, CubicWeights(fraction));
      }
    } else {
      constexpr double kPillow = -0.5;
      const double stretch = std::max(scale, 1.0);
      const double support = (interpolation == Inter::kBilinear ? 1 : 2) * stretch;
      const auto first = std::max(static_cast<std::int64_t>(std::floor(centre - support + 0.5)), std::int64_t{0});
      const auto last = std::min(static_cast<std::int64_t>(std::floor(centre + support + 0.5)), from);
      std::vector<double> weights;
      for (std::int64_t source = first; source < last; ++source) {
        const double distance = (static_cast<double>(source) + 0.5 - centre) / stretch;
        weights.push_back(interpolation == Inter::kBilinear ? Triangle(distance) : Cubic(distance, kPillow));
      }
      double sum = 0;
      for (const double weight : weights) sum += weight;
      for (double& weight : weights) weight /= sum;
      Add(first, weights);
    }
  }
}

Taps::Place Taps::operator[](std::int64_t place) const {
  const auto index = static_cast<std::size_t>(place);
  const std::size_t begin = begin_[index], count = begin_[index + 1] - begin;
  return {first_[index], absl::MakeConstSpan(weights_).subspan(begin, count),
          absl::MakeConstSpan(fixed_).subspan(begin, count)};
}

void Taps::Add(std::int64_t first, absl::Span<const double> weights) {
  first_.push_back(first);
  weights_.insert(weights_.end(), weights.begin(), weights.end());
  for (const double weight : weights) {
    fixed_.push_back(static_cast<std::int32_t>(std::lround(weight * (1 << kFixedBits))));
  }
  begin_.push_back(weights_.size());
}

void Taps::AddRepeatingEdges(std::int64_t from, std::int64_t first, absl::Span<const double> weights) {
  const std::int64_t begin = std::clamp(first, std::int64_t{0}, from - 1);
  const std::int64_t end = std::clamp(first + static_cast<std::int64_t>(weights.size()) - 1, std::int64_t{0}, from - 1);
  std::vector<double> inside(static_cast<std::size_t>(end - begin + 1), 0.0);
  for (const double weight : weights) {
    inside[static_cast<std::size_t>(std::clamp(first++, begin, end) - begin)] += weight;
  }
  Add(begin, inside);
}

Tensor Resample(const Tensor& image, const Extents& extents, const Box& size, Inter interpolation, bool antialias) {
  const Taps rows(extents.height, size.height, interpolation, antialias);
  const Taps columns(extents.width, size.width, interpolation, antialias);
  using Byte = std::uint8_t;
  if (image.dtype() == DType::kF32) return ResampleAs<float, float, float>(image, extents, rows, columns);
  return antialias ? ResampleAs<std::int32_t, Byte, Byte>(image, extents, rows, columns)
                   : ResampleAs<float, float, Byte>(image, extents, rows, columns);
}

}  // namespace mpc::data::vision::internal
