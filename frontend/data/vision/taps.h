// How places of a resized axis read those of the source. Not part of the public API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
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

  /// 128 * times_128 + rest.
  struct Pair {
    std::int16_t times_128 = 0;
    std::int16_t rest = 0;
  };
  /// A fixed weight of at most 1.007. A filter that is cut at the edge can have greater ones.
  static Pair PairOf(std::int32_t fixed) {
    const std::int32_t times_128 = std::min(fixed >> 7, 32767);
    return {static_cast<std::int16_t>(times_128), static_cast<std::int16_t>(fixed - 128 * times_128)};
  }
  /// Whether PairOf takes every fixed weight.
  bool has_pairs() const { return has_pairs_; }

  std::int64_t size() const { return static_cast<std::int64_t>(first_.size()); }
  Place operator[](std::int64_t place) const;

 private:
  void Add(std::int64_t first, absl::Span<const double> weights);
  void AddRepeatingEdges(std::int64_t from, std::int64_t first, absl::Span<const double> weights);

  std::vector<std::int64_t> first_;
  std::vector<std::size_t> begin_ = {0};
  std::vector<float> weights_;
  std::vector<std::int32_t> fixed_;
  bool has_pairs_ = true;
};

/// The weights that OpenCV's bicubic interpolation gives four neighbours, at `fraction` between the second and third.
std::vector<double> CubicWeights(double fraction);

}  // namespace mpc::data::vision::internal
