#include "frontend/data/vision/values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/image.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision {
namespace {

using internal::Extents;

/// Below it a std is meant for pixels from 0 to 1.
constexpr float kLeastStdOfBytes = 2;

/// The elements of u8 or f32 in f32.
absl::StatusOr<std::vector<float>> FloatsOf(const Tensor& x, const char* transform) {
  if (!x.status().ok()) return x.status();
  if (!x.concrete() || (x.dtype() != DType::kU8 && x.dtype() != DType::kF32)) {
    return absl::InvalidArgumentError(absl::StrCat(transform, " takes u8 or f32, got ", x.spec().ToString()));
  }
  return x.ToFloats();
}

Tensor ChannelsFirst(const Tensor& image, const Extents& extents) {
  runtime::AlignedBuffer buffer(image.bytes().size());
  const std::size_t element = ElementSize(image.dtype());
  std::byte* target = buffer.data();
  for (std::int64_t c = 0; c < extents.channels; ++c) {
    const std::uint8_t* source = image.bytes().data() + static_cast<std::size_t>(c) * element;
    for (std::int64_t i = 0; i < extents.pixels(); ++i) {
      std::memcpy(target, source, element);
      target += element;
      source += static_cast<std::size_t>(extents.channels) * element;
    }
  }
  return mpc::internal::MakeConcrete({image.dtype(), {extents.channels, extents.height, extents.width}},
                                     std::move(buffer));
}

}  // namespace

absl::StatusOr<Tensor> Rescale::operator()(const Tensor& x) const {
  if (rescale_ == 0) {
    return absl::InvalidArgumentError("Rescale: rescale is 0. In C++ 1 / 255 is 0; write 1.0f / 255");
  }
  absl::StatusOr<std::vector<float>> values = FloatsOf(x, "Rescale");
  if (!values.ok()) return values.status();
  for (float& value : *values) value = value * rescale_ + shift_;
  return Tensor::From(*values, x.shape());
}

Normalize::Normalize(std::vector<float> mean, std::vector<float> std, bool is_hwc)
    : mean_(std::move(mean)), std_(std::move(std)), is_hwc_(is_hwc) {}

absl::Status Normalize::Check(const Tensor& image, std::int64_t channels) const {
  const auto fits = [&](const std::vector<float>& values) {
    return values.size() == 1 || values.size() == static_cast<std::size_t>(channels);
  };
  if (!fits(mean_) || !fits(std_)) {
    return absl::InvalidArgumentError(absl::StrCat("Normalize: mean has ", mean_.size(), " values and std ",
                                                   std_.size(), "; a picture ", image.spec().ToString(), " has ",
                                                   channels, " channels with is_hwc = ", is_hwc_ ? "true" : "false"));
  }
  for (const float deviation : std_) {
    if (!(deviation > 0) || !std::isfinite(deviation)) {
      return absl::InvalidArgumentError(absl::StrCat("Normalize: std must be above 0, got ", deviation));
    }
    if (deviation < kLeastStdOfBytes && image.dtype() == DType::kU8) {
      return absl::InvalidArgumentError(absl::StrCat("Normalize: a std of ", deviation,
                                                     " is for pixels from 0 to 1, and this picture is u8, from 0 to ",
                                                     "255; put Rescale(1.0f / 255) before it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Normalize::operator()(const Tensor& image) const {
  const absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "Normalize");
  if (!extents.ok()) return extents.status();
  const bool last = is_hwc_ || image.rank() == 2;
  const std::int64_t channels = last ? extents->channels : image.dim(0);
  if (absl::Status status = Check(image, channels); !status.ok()) return status;
  std::vector<float> values = image.ToFloats();
  const std::size_t count = static_cast<std::size_t>(channels);
  const std::size_t plane = last ? 1 : values.size() / count;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t channel = i / plane % count;
    values[i] = (values[i] - mean_[channel % mean_.size()]) / std_[channel % std_.size()];
  }
  return Tensor::From(values, image.shape());
}

absl::StatusOr<Tensor> HWC2CHW::operator()(const Tensor& image) const {
  const absl::StatusOr<Extents> extents = internal::ExtentsOf(image, "HWC2CHW");
  if (!extents.ok()) return extents.status();
  return image.rank() == 2 ? image : ChannelsFirst(image, *extents);
}

absl::StatusOr<Tensor> ToTensor::operator()(const Tensor& image) const {
  const absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "ToTensor");
  if (!extents.ok()) return extents.status();
  if (!IsFloating(output_type_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ToTensor: output_type must be floating, got ", std::string(DTypeName(output_type_))));
  }
  const Tensor planes = ChannelsFirst(image, *extents);
  if (image.dtype() == DType::kF32) return planes.To(output_type_);
  std::vector<float> values = planes.ToFloats();
  for (float& value : values) value /= 255;
  return Tensor::From(values, planes.shape()).To(output_type_);
}

absl::StatusOr<Tensor> OneHot::operator()(const Tensor& labels) const {
  if (!labels.status().ok()) return labels.status();
  if (num_classes_ < 1 || !(smoothing_rate_ >= 0 && smoothing_rate_ <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("OneHot: num_classes must be at least 1 and smoothing_rate from 0 to 1, got ", num_classes_,
                     " and ", smoothing_rate_));
  }
  if (!labels.concrete() || IsFloating(labels.dtype()) || labels.dtype() == DType::kBool) {
    return absl::InvalidArgumentError(absl::StrCat("OneHot takes integer labels, got ", labels.spec().ToString()));
  }
  const Tensor indices = labels.To(DType::kI64);
  const auto classes = static_cast<std::size_t>(num_classes_);
  const double others = smoothing_rate_ / num_classes_;
  std::vector<float> values(static_cast<std::size_t>(indices.size()) * classes, static_cast<float>(others));
  std::size_t row = 0;
  for (const std::int64_t label : indices.data<std::int64_t>()) {
    if (label < 0 || label >= num_classes_) {
      return absl::InvalidArgumentError(
          absl::StrCat("OneHot: label ", label, " is out of range 0..", num_classes_ - 1));
    }
    values[row++ * classes + static_cast<std::size_t>(label)] = static_cast<float>(1 - smoothing_rate_ + others);
  }
  Shape shape = labels.shape();
  shape.push_back(num_classes_);
  return Tensor::From(values, std::move(shape));
}

absl::StatusOr<Tensor> TypeCast::operator()(const Tensor& x) const {
  if (!x.status().ok()) return x.status();
  const Tensor result = x.To(output_type_);
  if (!result.status().ok()) return result.status();
  return result;
}

}  // namespace mpc::data::vision
