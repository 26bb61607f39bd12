#include "frontend/graph/resize_ops.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/emit.h"

namespace mpc {
namespace {

using internal::Emit;
using internal::FailWith;

// What follows an error goes on with an image of one pixel.
Tensor Refuse(const std::string& message) { return FailWith(message, {1, 1, 1, 1}); }

Tensor Resized(const Tensor& x, const std::vector<std::int64_t>& size, const char* interpolation,
               const char* coordinates) {
  return Emit(
      "resize", {x},
      {{"size", size}, {"interpolation", std::string(interpolation)}, {"coordinates", std::string(coordinates)}});
}

Tensor ResizedAsMindSpore(const char* name, const char* interpolation, const Tensor& x,
                          const std::vector<std::int64_t>& size, bool align_corners, bool half_pixel_centers) {
  if (align_corners && half_pixel_centers) {
    return Refuse(absl::StrCat(name, " takes align_corners or half_pixel_centers, not both"));
  }
  return Resized(x, size, interpolation,
                 align_corners        ? "align_corners"
                 : half_pixel_centers ? "half_pixel"
                                      : "asymmetric");
}

// The new height and width. Errors: no factor for each axis, or one that is out of range.
absl::StatusOr<std::vector<std::int64_t>> ScaledSize(const Tensor& x, const std::vector<double>& factors) {
  std::vector<std::int64_t> size;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const double factor = factors[axis % factors.size()];
    if (!(factor > 0 && factor <= 0x1p30)) {
      return absl::InvalidArgumentError(absl::StrCat("interpolate takes a scale_factor above 0, got ", factor));
    }
    const double extent = factor * static_cast<double>(x.dim(static_cast<std::int64_t>(axis) + 2));
    size.push_back(static_cast<std::int64_t>(extent < 0x1p31 ? extent : 0x1p31));
  }
  return size;
}

absl::StatusOr<std::vector<std::int64_t>> NewSize(const Tensor& x, const InterpolateOptions& options) {
  const std::size_t sizes = options.size.size(), factors = options.scale_factor.size();
  if (sizes + factors > 2 || sizes + factors == 0 || (sizes > 0 && factors > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "interpolate takes a size or a scale_factor of one or two values, got size [",
        absl::StrJoin(options.size, ", "), "] and scale_factor [", absl::StrJoin(options.scale_factor, ", "), "]"));
  }
  if (factors > 0) return ScaledSize(x, options.scale_factor);
  return std::vector<std::int64_t>{options.size.front(), options.size.back()};
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  if (x.rank() != 4) {
    return Refuse(absl::StrCat("interpolate takes an image [N, C, H, W], got ", x.spec().ToString()));
  }
  const bool bilinear = options.mode == "bilinear";
  if (!bilinear && options.mode != "nearest" && options.mode != "nearest-exact") {
    return Refuse(
        absl::StrCat("interpolate takes mode nearest, nearest-exact or bilinear, got \"", options.mode, "\""));
  }
  if (!bilinear && options.align_corners.has_value()) {
    return Refuse(absl::StrCat("interpolate takes align_corners with mode bilinear, not with ", options.mode));
  }
  const absl::StatusOr<std::vector<std::int64_t>> size = NewSize(x, options);
  if (!size.ok()) return Refuse(std::string(size.status().message()));
  if (bilinear)
    return Resized(x, *size, "bilinear", options.align_corners.value_or(false) ? "align_corners" : "half_pixel");
  return Resized(x, *size, "nearest", options.mode == "nearest" ? "asymmetric" : "half_pixel");
}

namespace ops {

Tensor ResizeNearestNeighbor(const Tensor& x, const std::vector<std::int64_t>& size, bool align_corners,
                             bool half_pixel_centers) {
  return ResizedAsMindSpore("ResizeNearestNeighbor", "nearest", x, size, align_corners, half_pixel_centers);
}

Tensor ResizeBilinear(const Tensor& x, const std::vector<std::int64_t>& size, bool align_corners,
                      bool half_pixel_centers) {
  return ResizedAsMindSpore("ResizeBilinear", "bilinear", x, size, align_corners, half_pixel_centers);
}

}  // namespace ops
}  // namespace mpc
