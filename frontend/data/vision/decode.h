// Pictures from the bytes of their files.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// MindSpore's Decode has `rgb`, which is always true here. It has no limit of pixels.
struct DecodeOptions {
  /// A picture whose header announces more pixels is refused before memory is taken. The default is the number beyond
  /// which Pillow refuses one.
  std::int64_t max_pixels = 178'956'970;
};

/// MindSpore's vision.Decode: u8 [bytes], a JPEG, PNG or WebP, to u8 [height, width, 3] in RGB. Grey pictures and
/// palettes become RGB, alpha is dropped, and of 16 bits the upper 8 are kept. Rows are turned as the EXIF orientation
/// says. Errors (INVALID_ARGUMENT) begin with the path where ImageFolderDataset read the bytes: another format, a
/// picture that is truncated or damaged, an animation, too many pixels.
class Decode {
 public:
  explicit Decode(DecodeOptions options = {}) : options_(options) {}
  absl::StatusOr<Tensor> operator()(const Tensor& encoded) const;

 private:
  DecodeOptions options_;
};

}  // namespace mpc::data::vision
