// Operations that are drawn from a table.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/data/vision/resize.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// The parameters of MindSpore's TrivialAugmentWide, and the seed, which MindSpore has once for all transforms.
struct TrivialAugmentWideOptions {
  std::int32_t num_magnitude_bins = 31;        ///< magnitudes of an operation, at least 2
  Inter interpolation = Inter::kNearest;       ///< filter of the operations that move pixels
  std::vector<std::uint8_t> fill_value = {0};  ///< around the picture: for every channel, or one for each
  std::uint64_t seed = 0;
};

/// MindSpore's vision.TrivialAugmentWide (arXiv 2103.10158) for RGB pictures of u8: one operation at one magnitude.
/// Both are drawn uniformly, and so is the sign, where magnitudes have one. They are functions of (seed, epoch, row)
/// alone. Operations and ranges are torchvision's on pictures of Pillow. ShearX, ShearY, TranslateX, TranslateY and
/// Rotate move pixels. Brightness, Color, Contrast and Sharpness blend them. Posterize, Solarize, AutoContrast and
/// Equalize change levels. Identity changes nothing. Operations that blend are within one level of Pillow's, which cuts
/// fractions off where mpc rounds. The others have Pillow's bits, where the nearest pixel is taken. Errors
/// (INVALID_ARGUMENT): num_magnitude_bins below 2; another count of fill_value; another tensor than u8 [height, width,
/// 3].
class TrivialAugmentWide {
 public:
  explicit TrivialAugmentWide(TrivialAugmentWideOptions options = {}) : options_(std::move(options)) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  TrivialAugmentWideOptions options_;
};

/// The parameters of MindSpore's RandAugment, and the seed, which MindSpore has once for all transforms.
struct RandAugmentOptions {
  std::int32_t num_ops = 2;                    ///< operations, one behind the other, from 0 to 128
  std::int32_t magnitude = 9;                  ///< bin of every operation, from 0 to num_magnitude_bins - 1
  std::int32_t num_magnitude_bins = 31;        ///< at least 2
  Inter interpolation = Inter::kNearest;       ///< filter of the operations that move pixels
  std::vector<std::uint8_t> fill_value = {0};  ///< around the picture: for every channel, or one for each
  std::uint64_t seed = 0;
};

/// MindSpore's vision.RandAugment (arXiv 1909.13719) for RGB pictures of u8: `num_ops` operations at one magnitude.
/// Each is drawn uniformly from the table of TrivialAugmentWide, here with smaller ranges. Operations and signs are
/// functions of (seed, epoch, row) alone. Errors (INVALID_ARGUMENT): num_ops, magnitude or num_magnitude_bins out of
/// range; another count of fill_value; another tensor than u8 [height, width, 3].
class RandAugment {
 public:
  explicit RandAugment(RandAugmentOptions options = {}) : options_(std::move(options)) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  RandAugmentOptions options_;
};

}  // namespace mpc::data::vision
