#include "frontend/data/vision/resize.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/resampling.h"

namespace mpc::data::vision {

Resize::Resize(std::vector<std::int32_t> size, Inter interpolation, ResizeOptions options)
    : size_(std::move(size)), interpolation_(interpolation), options_(options) {}

absl::StatusOr<Tensor> Resize::operator()(const Tensor& image) const {
  absl::StatusOr<internal::Box> size = internal::SizeOf(size_, "Resize");
  if (!size.ok()) return size.status();
  const absl::StatusOr<internal::Extents> extents = internal::PixelExtentsOf(image, "Resize");
  if (!extents.ok()) return extents.status();
  if (size_.size() == 1) {
    const std::int64_t shorter = std::min(extents->height, extents->width);
    size->height = extents->height * size_[0] / shorter;
    size->width = extents->width * size_[0] / shorter;
  }
  // Both sides fit in 63 bits, their product may not.
  if (size->height > options_.max_pixels / std::max<std::int64_t>(size->width, 1)) {
    return absl::InvalidArgumentError(absl::StrCat("Resize: ", extents->width, " x ", extents->height,
                                                   " pixels become ", size->width, " x ", size->height,
                                                   ", more than max_pixels = ", options_.max_pixels));
  }
  return internal::Resample(image, *extents, *size, interpolation_, options_.antialias);
}

}  // namespace mpc::data::vision
