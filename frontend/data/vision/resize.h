// Pictures of another size.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// How a pixel is computed of its neighbours: three of mindspore.dataset.vision.Inter's values.
enum class Inter { kNearest, kBilinear, kBicubic };

/// MindSpore's Resize has neither of these. Its bilinear and bicubic pictures are OpenCV's.
struct ResizeOptions {
  /// False: as MindSpore and OpenCV, a pixel is computed of 1, 4 or 16 neighbours whatever the sizes are. True: as
  /// Pillow, the filter widens where a picture becomes smaller, so that every pixel counts.
  bool antialias = false;
  /// A result of more pixels is refused before memory is taken. The default is that of DecodeOptions.
  std::int64_t max_pixels = 178'956'970;
};

/// MindSpore's vision.Resize for pictures of u8 or f32. `size` is {height, width}, or one value for the shorter edge,
/// where the longer one keeps the ratio and is rounded down. Results of u8 differ from OpenCV's by at most one level.
/// With antialias they have the bits of Pillow up to version 12. Pillow 13 may resize the height first, and then clips
/// elsewhere what bicubic overshoots. Errors (INVALID_ARGUMENT): a size below 1; a result of more than
/// `max_pixels`; what is no picture.
class Resize {
 public:
  explicit Resize(std::vector<std::int32_t> size, Inter interpolation = Inter::kBilinear, ResizeOptions options = {});
  absl::StatusOr<Tensor> operator()(const Tensor& image) const;

 private:
  std::vector<std::int32_t> size_;
  Inter interpolation_;
  ResizeOptions options_;
};

}  // namespace mpc::data::vision
