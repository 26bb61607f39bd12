// Pictures as tensors: [height, width] of grey ones, else [height, width, channels]. Not part of the public API.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision::internal {

struct Extents {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;

  std::int64_t pixels() const { return height * width; }
};

/// Errors (INVALID_ARGUMENT, beginning with `transform`): a tensor that is symbolic or in error; a rank other than 2
/// and 3; no elements.
absl::StatusOr<Extents> ExtentsOf(const Tensor& image, const char* transform);

/// As ExtentsOf. Elements of another type than u8 and f32 are an error too.
absl::StatusOr<Extents> PixelExtentsOf(const Tensor& image, const char* transform);

/// The spec of a picture that has other extents than `image`, and the same channels, rank and element type.
TensorSpec WithExtents(const Tensor& image, std::int64_t height, std::int64_t width);

/// A rectangle of pixels.
struct Box {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// The part of `height` x `width` in the middle of a picture, or around it where it is larger.
Box InTheMiddle(const Extents& extents, std::int64_t height, std::int64_t width);

/// The pixels of `box`, which lies inside the picture.
Tensor CutOut(const Tensor& image, const Box& box);

/// The height and width that `size` asks for: one value is a square. Errors: another count, a value below 1.
absl::StatusOr<Box> SizeOf(const std::vector<std::int32_t>& size, const char* transform);

}  // namespace mpc::data::vision::internal
