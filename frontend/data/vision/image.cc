#include "frontend/data/vision/image.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision::internal {

absl::StatusOr<Extents> ExtentsOf(const Tensor& image, const char* transform) {
  if (!image.status().ok()) return image.status();
  if (!image.concrete()) {
    return absl::InvalidArgumentError(absl::StrCat(transform, " takes a picture; the tensor has no data"));
  }
  if ((image.rank() != 2 && image.rank() != 3) || image.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(transform, " takes a picture [height, width, channels] or [height, width], got ",
                     image.spec().ToString(), image.rank() == 1 ? "; decode it first, with vision::Decode" : ""));
  }
  return Extents{.height = image.dim(0), .width = image.dim(1), .channels = image.rank() == 3 ? image.dim(2) : 1};
}

absl::StatusOr<Extents> PixelExtentsOf(const Tensor& image, const char* transform) {
  absl::StatusOr<Extents> extents = ExtentsOf(image, transform);
  if (extents.ok() && image.dtype() != DType::kU8 && image.dtype() != DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat(transform, " takes pixels of u8 or f32, got ", image.spec().ToString()));
  }
  return extents;
}

TensorSpec WithExtents(const Tensor& image, std::int64_t height, std::int64_t width) {
  TensorSpec spec = image.spec();
  spec.shape[0] = height;
  spec.shape[1] = width;
  return spec;
}

Box InTheMiddle(const Extents& extents, std::int64_t height, std::int64_t width) {
  return {(extents.height - height) / 2, (extents.width - width) / 2, height, width};
}

Tensor CutOut(const Tensor& image, const Box& box) {
  TensorSpec spec = WithExtents(image, box.height, box.width);
  const std::size_t pixel_bytes = image.bytes().size() / static_cast<std::size_t>(image.dim(0) * image.dim(1));
  const std::size_t row_bytes = static_cast<std::size_t>(box.width) * pixel_bytes;
  mpc::runtime::AlignedBuffer buffer(spec.bytes());
  for (std::int64_t y = 0; y < box.height; ++y) {
    const auto begin = static_cast<std::size_t>((box.top + y) * image.dim(1) + box.left) * pixel_bytes;
    std::memcpy(buffer.data() + static_cast<std::size_t>(y) * row_bytes, image.bytes().data() + begin, row_bytes);
  }
  return mpc::internal::MakeConcrete(std::move(spec), std::move(buffer));
}

absl::StatusOr<Box> SizeOf(const std::vector<std::int32_t>& size, const char* transform) {
  if (size.empty() || size.size() > 2 || size.front() < 1 || size.back() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        transform, ": size is one value or {height, width}, each at least 1; got {", absl::StrJoin(size, ", "), "}"));
  }
  return Box{.height = size.front(), .width = size.back()};
}

}  // namespace mpc::data::vision::internal
