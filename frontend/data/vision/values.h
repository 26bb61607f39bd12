// Transforms of values: pixels to numbers that a network takes, labels to those that a loss takes.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// MindSpore's vision.Rescale: x * rescale + shift, in f32, of a tensor of any shape of u8 or f32. In C++ 1 / 255 is 0:
/// write 1.0f / 255. MindSpore's `shift` has no default. Errors (INVALID_ARGUMENT): a rescale of 0.
class Rescale {
 public:
  explicit Rescale(float rescale, float shift = 0) : rescale_(rescale), shift_(shift) {}
  absl::StatusOr<Tensor> operator()(const Tensor& x) const;

 private:
  float rescale_;
  float shift_;
};

/// MindSpore's vision.Normalize: (x - mean) / std for each channel, in f32, of a picture of u8 or f32. Channels are the
/// last axis, and with `is_hwc` = false the first of three. `mean` and `std` have one value a channel, or one for all.
/// Errors (INVALID_ARGUMENT): other counts; a std that is not above 0. A std below 2 over u8 is an error too: it is one
/// for pixels from 0 to 1, which Rescale(1.0f / 255) before gives.
class Normalize {
 public:
  Normalize(std::vector<float> mean, std::vector<float> std, bool is_hwc = true);
  absl::StatusOr<Tensor> operator()(const Tensor& image) const;

 private:
  absl::Status Check(const Tensor& image, std::int64_t channels) const;

  std::vector<float> mean_;
  std::vector<float> std_;
  bool is_hwc_;
};

/// MindSpore's vision.HWC2CHW: [height, width, channels] to [channels, height, width], of any element type. A picture
/// [height, width] stays as it is. Errors (INVALID_ARGUMENT): what is no picture.
class HWC2CHW {
 public:
  absl::StatusOr<Tensor> operator()(const Tensor& image) const;
};

/// MindSpore's vision.ToTensor: [height, width, channels] or [height, width] to [channels, height, width] in f32 or
/// another `output_type`. Pixels of u8 are divided by 255. Errors (INVALID_ARGUMENT): what is no picture of u8 or f32;
/// an output type that is not floating.
class ToTensor {
 public:
  explicit ToTensor(DType output_type = DType::kF32) : output_type_(output_type) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image) const;

 private:
  DType output_type_;
};

/// MindSpore's transforms.OneHot: a label, or a tensor of labels, of an integer type to f32 [..., num_classes]. The
/// class has 1 - smoothing_rate + smoothing_rate / num_classes, the others smoothing_rate / num_classes. Without
/// smoothing MindSpore keeps the integer type. Losses here take f32. Errors (INVALID_ARGUMENT): num_classes below 1, a
/// rate outside 0 .. 1, a label outside 0 .. num_classes - 1, labels that are no integers.
class OneHot {
 public:
  explicit OneHot(std::int32_t num_classes, double smoothing_rate = 0)
      : num_classes_(num_classes), smoothing_rate_(smoothing_rate) {}
  absl::StatusOr<Tensor> operator()(const Tensor& labels) const;

 private:
  std::int32_t num_classes_;
  double smoothing_rate_;
};

/// MindSpore's transforms.TypeCast: Tensor::To as a transform.
class TypeCast {
 public:
  explicit TypeCast(DType output_type) : output_type_(output_type) {}
  absl::StatusOr<Tensor> operator()(const Tensor& x) const;

 private:
  DType output_type_;
};

}  // namespace mpc::data::vision
