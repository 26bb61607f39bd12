#include "frontend/data/vision/taps.h"

#include <algorithm>
#include <array>
#include <cmath>

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
    const Pair pair = PairOf(fixed_.back());
    has_pairs_ = has_pairs_ && 128 * pair.times_128 + pair.rest == fixed_.back();
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

}  // namespace mpc::data::vision::internal
