// Parts of pictures.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/data/vision/decode.h"
#include "frontend/data/vision/pad.h"
#include "frontend/data/vision/resize.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// MindSpore's vision.CenterCrop. `size` is {height, width}, or one value for a square. A picture that is smaller is
/// padded with zeros first. Errors (INVALID_ARGUMENT): a size below 1; what is no picture of u8 or f32.
class CenterCrop {
 public:
  explicit CenterCrop(std::vector<std::int32_t> size) : size_(std::move(size)) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image) const;

 private:
  std::vector<std::int32_t> size_;
};

/// The parameters of MindSpore's RandomCrop, and the seed, which MindSpore has once for all transforms.
struct RandomCropOptions {
  std::vector<std::int32_t> padding = {0, 0, 0, 0};  ///< around the picture first, as Pad has it
  bool pad_if_needed = false;  ///< a picture that is still too small is padded on either side by what is missing
  std::vector<std::uint8_t> fill_value = {0, 0, 0};  ///< {0, 0, 0} also fits pictures of other channels
  BorderType padding_mode = BorderType::kConstant;
  std::uint64_t seed = 0;
};

/// MindSpore's vision.RandomCrop: a part at a place that is a function of (seed, epoch, row) alone. `size` is as
/// CenterCrop's. Errors (INVALID_ARGUMENT): as Pad's, and a picture smaller than `size`.
class RandomCrop {
 public:
  explicit RandomCrop(std::vector<std::int32_t> size, RandomCropOptions options = {});
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  std::vector<std::int32_t> size_;
  RandomCropOptions options_;
};

/// The parameters of MindSpore's RandomResizedCrop, with `antialias` and the seed, which it does not have.
struct RandomResizedCropOptions {
  std::array<float, 2> scale = {0.08f, 1.0f};               ///< least and largest part of the picture's area
  std::array<float, 2> ratio = {3.0f / 4.0f, 4.0f / 3.0f};  ///< least and largest width / height
  Inter interpolation = Inter::kBilinear;
  std::int32_t max_attempts = 10;  ///< from 1 to 80; then the largest part in the middle whose ratio is allowed
  bool antialias = false;          ///< as Resize's
  std::uint64_t seed = 0;
};

/// MindSpore's vision.RandomResizedCrop: a part of a random area (uniform) and ratio (uniform in its logarithm),
/// resized to `size`. The part is a function of (seed, epoch, row) alone. Errors (INVALID_ARGUMENT): ranges that are
/// not positive and in order, max_attempts out of range, a size below 1. What is no picture of u8 or f32 is an error
/// too.
class RandomResizedCrop {
 public:
  explicit RandomResizedCrop(std::vector<std::int32_t> size, RandomResizedCropOptions options = {});
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  std::vector<std::int32_t> size_;
  RandomResizedCropOptions options_;
};

/// MindSpore's vision.RandomCropDecodeResize: the bits of Decode and then RandomResizedCrop with the same options. Of a
/// baseline JPEG the pixels of the part alone are computed. All of the file is read, and damage is an error wherever it
/// is. Errors: those of both.
class RandomCropDecodeResize {
 public:
  explicit RandomCropDecodeResize(std::vector<std::int32_t> size, RandomResizedCropOptions options = {},
                                  DecodeOptions decode_options = {});
  absl::StatusOr<Tensor> operator()(const Tensor& encoded, const RowPosition& position) const;

 private:
  std::vector<std::int32_t> size_;
  RandomResizedCropOptions options_;
  DecodeOptions decode_options_;
};

}  // namespace mpc::data::vision
