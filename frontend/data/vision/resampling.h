// How places of a resized axis read those of the source. Not part of the public API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/resize.h"

namespace mpc::data::vision::internal {

/// For each place of an axis, the weights of the source places `first`, `first` + 1, ... Weights sum to 1.
class Taps {
 public:
  /// Bits behind the point of fixed weights, as Pillow has them for pictures of u8.
  static constexpr int kFixedBits = 22;

  struct Place {
    std::int64_t first = 0;
    absl::Span<const float> weights;
    absl::Span<const std::int32_t> fixed;  ///< the weights times 2^kFixedBits, rounded
  };

  /// Every place reads one or more of the `from` places of the source. Without `antialias` the places and weights are
  /// OpenCV's. Those beyond the edge repeat it. With `antialias` they are Pillow's, whose filter widens where the axis
  /// becomes shorter and is cut at the edge.
  Taps(std::int64_t from, std::int64_t to, Inter interpolation, bool antialias);

  std::int64_t size() const { return static_cast<std::int64_t>(first_.size()); }
  Place operator[](std::int64_t place) const;

 private:
  void Add(std::int64_t first, absl::Span<const double> weights);
  void AddRepeatingEdges(std::int64_t from, std::int64_t first, absl::Span<const double> weights);

  std::vector<std::int64_t> first_;
  std::vector<std::size_t> begin_ = {0};
  std::vector<float> weights_;
  std::vector<std::int32_t> fixed_;
};

/// The weights that OpenCV's bicubic interpolation gives four neighbours, at `fraction` between the second and third.
std::vector<double> CubicWeights(double fraction);

/// A picture of u8 or f32, resampled, the rows first. Pixels of u8 are rounded to nearest. With `antialias` they are
/// rounded between the axes too, and all sums are Pillow's whole numbers, so that the bits are.
Tensor Resample(const Tensor& image, const Extents& extents, const Box& size, Inter interpolation, bool antialias);

}  // namespace mpc::data::vision::internal
