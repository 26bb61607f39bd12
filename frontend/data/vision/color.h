// Colours that are changed at random.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// The parameters of MindSpore's RandomColorAdjust, and the seed, which MindSpore has once for all transforms. Each
/// range is {least, largest}.
struct RandomColorAdjustOptions {
  std::array<float, 2> brightness = {1, 1};  ///< factor, at least 0: 0 is black
  std::array<float, 2> contrast = {1, 1};    ///< factor, at least 0: 0 is the mean grey of the picture
  std::array<float, 2> saturation = {1, 1};  ///< factor, at least 0: 0 is the picture in grey
  std::array<float, 2> hue = {0, 0};         ///< part of a turn of the colour circle, from -0.5 to 0.5
  std::uint64_t seed = 0;
};

/// MindSpore's vision.RandomColorAdjust for RGB pictures of u8: four changes in a random order, each by a value drawn
/// uniformly from its range. Order and values are functions of (seed, epoch, row) alone. The first three are within one
/// level of Pillow's ImageEnhance, which cuts the fraction off where mpc rounds. The hue is turned in HSV without
/// rounding to 8 bits, unlike MindSpore's. Errors (INVALID_ARGUMENT): ranges that are out of order, out of bounds or
/// infinite; another tensor than u8 [height, width, 3].
class RandomColorAdjust {
 public:
  explicit RandomColorAdjust(RandomColorAdjustOptions options = {}) : options_(options) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  RandomColorAdjustOptions options_;
};

/// MindSpore's vision.RandomGrayscale: an RGB picture of u8 becomes grey with probability `prob`, and keeps three
/// channels, which are equal. Grey is Pillow's, of ITU-R 601. Whether it does is a function of (seed, epoch, row)
/// alone. Errors (INVALID_ARGUMENT): prob outside 0 .. 1; another tensor than u8 [height, width, 3].
class RandomGrayscale {
 public:
  explicit RandomGrayscale(float prob = 0.1f, std::uint64_t seed = 0) : prob_(prob), seed_(seed) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  float prob_;
  std::uint64_t seed_;
};

}  // namespace mpc::data::vision
