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

/// Errors (INVALID_ARGUMENT): elements of another type than u8 and f32.
absl::Status CheckNumbers(const Tensor& x, const char* transform) {
  if (!x.status().ok()) return x.status();
  if (!x.concrete() || (x.dtype() != DType::kU8 && x.dtype() != DType::kF32)) {
    return absl::InvalidArgumentError(absl::StrCat(transform, " takes u8 or f32, got ", x.spec().ToString()));
  }
  return absl::OkStatus();
}

/// A tensor of f32 whose elements `fill(source, target)` makes from those of `x`, u8 or f32.
template <typename Fill>
Tensor FloatsFrom(const Tensor& x, const Fill& fill) {
  TensorSpec spec{DType::kF32, x.shape()};
  runtime::AlignedBuffer buffer(spec.bytes());
  auto* const target = reinterpret_cast<float*>(buffer.data());
  if (x.dtype() == DType::kU8) {
    fill(x.data<std::uint8_t>().data(), target);
  } else {
    fill(x.data<float>().data(), target);
  }
  return mpc::internal::MakeConcrete(std::move(spec), std::move(buffer));
}

template <typename T>
void ToPlanes(const T* pixels, const Extents& extents, T* planes) {
  if (extents.channels == 3) {
    T* const second = planes + extents.pixels();
    T* const third = second + extents.pixels();
    for (std::int64_t i = 0; i < extents.pixels(); ++i) {
      planes[i] = pixels[3 * i];
      second[i] = pixels[3 * i + 1];
      third[i] = pixels[3 * i + 2];
    }
    return;
  }
  for (std::int64_t c = 0; c < extents.channels; ++c) {
    for (std::int64_t i = 0; i < extents.pixels(); ++i) *planes++ = pixels[i * extents.channels + c];
  }
}

Tensor ChannelsFirst(const Tensor& image, const Extents& extents) {
  runtime::AlignedBuffer buffer(image.bytes().size());
  const std::uint8_t* const source = image.bytes().data();
  // The type is of no interest, but for its size.
  const auto convert = [&]<typename T>(T) {
    ToPlanes(reinterpret_cast<const T*>(source), extents, reinterpret_cast<T*>(buffer.data()));
  };
  switch (ElementSize(image.dtype())) {
    case 1:
      convert(std::uint8_t{});
      break;
    case 2:
      convert(std::uint16_t{});
      break;
    case 4:
      convert(std::uint32_t{});
      break;
    default:
      convert(std::uint64_t{});
      break;
  }
  return mpc::internal::MakeConcrete({image.dtype(), {extents.channels, extents.height, extents.width}},
                                     std::move(buffer));
}

/// target[i] = (source[i] - mean[i % n]) / std[i % n], where both have n values.
template <typename T>
void NormalizeInterleaved(const T* source, std::size_t count, const std::vector<float>& mean,
                          const std::vector<float>& std, float* target) {
  for (std::size_t begin = 0; begin < count; begin += mean.size()) {
    const std::size_t size = std::min(mean.size(), count - begin);
    for (std::size_t i = 0; i < size; ++i) {
      target[begin + i] = (static_cast<float>(source[begin + i]) - mean[i]) / std[i];
    }
  }
}

/// `values`, or the one value of them, for `channels` channels, `times` times.
std::vector<float> Repeated(const std::vector<float>& values, std::size_t channels, std::size_t times) {
  std::vector<float> repeated(channels * times);
  for (std::size_t i = 0; i < repeated.size(); ++i) repeated[i] = values[i % channels % values.size()];
  return repeated;
}

}  // namespace

absl::StatusOr<Tensor> Rescale::operator()(const Tensor& x) const {
  if (rescale_ == 0) {
    return absl::InvalidArgumentError("Rescale: rescale is 0. In C++ 1 / 255 is 0; write 1.0f / 255");
  }
  if (absl::Status status = CheckNumbers(x, "Rescale"); !status.ok()) return status;
  const std::int64_t size = x.size();
  return FloatsFrom(x, [&, rescale = rescale_, shift = shift_](const auto* source, float* target) {
    for (std::int64_t i = 0; i < size; ++i) target[i] = static_cast<float>(source[i]) * rescale + shift;
  });
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
  const auto count = static_cast<std::size_t>(channels);
  const auto size = static_cast<std::size_t>(image.size());
  if (last) {
    // Many pixels at a time, so that the loop over them is long.
    constexpr std::size_t kPixels = 64;
    const std::vector<float> mean = Repeated(mean_, count, kPixels), std = Repeated(std_, count, kPixels);
    return FloatsFrom(
        image, [&](const auto* source, float* target) { NormalizeInterleaved(source, size, mean, std, target); });
  }
  return FloatsFrom(image, [&](const auto* source, float* target) {
    const std::size_t plane = size / count;
    for (std::size_t c = 0; c < count; ++c, source += plane, target += plane) {
      const float mean = mean_[c % mean_.size()], std = std_[c % std_.size()];
      for (std::size_t i = 0; i < plane; ++i) target[i] = (static_cast<float>(source[i]) - mean) / std;
    }
  });
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
  const std::int64_t size = planes.size();
  const Tensor values = FloatsFrom(planes, [size](const auto* source, float* target) {
    for (std::int64_t i = 0; i < size; ++i) target[i] = static_cast<float>(source[i]) / 255;
  });
  return values.To(output_type_);
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
