// The codecs behind vision::Decode. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "frontend/data/vision/decode.h"
#include "frontend/data/vision/image.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision::internal {

using EncodedBytes = absl::Span<const std::uint8_t>;

struct DecodedPicture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  runtime::AlignedBuffer rgb;  ///< [height, width, 3]
  int orientation = 1;         ///< EXIF's number, 1 .. 8, for how the rows are to be turned; `rgb` is not turned
  bool is_part = false;        ///< `rgb` is what ChoosePart chose; otherwise it is the whole picture
};

/// The part of a picture that is wanted, of its extents in pixels as they are shown.
using ChoosePart = std::function<absl::StatusOr<Box>(const Extents& extents)>;

/// The bits of Decode and then CutOut with the box that `choose` returns. A damaged picture is an error wherever the
/// damage is. Errors: those of Decode and of `choose`.
absl::StatusOr<Tensor> DecodePart(const Tensor& encoded, const DecodeOptions& options, const ChoosePart& choose);

/// Each reads the header first, and takes no memory for the pixels where there are more than `max_pixels`. Every kind
/// of picture becomes RGB of 8 bits: grey is repeated, 16 bits lose the lower half, alpha is dropped, inks are
/// converted. Errors (INVALID_ARGUMENT) say what is wrong with the picture, without its path. An animated WebP is one.
/// DecodeJpeg asks `choose` where it is given, rows are not to be turned, colours are no inks and one scan has them
/// all. The pixels of that part alone are computed then.
absl::StatusOr<DecodedPicture> DecodeJpeg(EncodedBytes encoded, std::int64_t max_pixels, const ChoosePart& choose);
absl::StatusOr<DecodedPicture> DecodePng(EncodedBytes encoded, std::int64_t max_pixels);
absl::StatusOr<DecodedPicture> DecodeWebp(EncodedBytes encoded, std::int64_t max_pixels);

/// The error (INVALID_ARGUMENT) of a header that announces more than `max_pixels`.
absl::Status CheckPixelCount(std::int64_t height, std::int64_t width, std::int64_t max_pixels);

/// The orientation in EXIF data, which begin at the TIFF header. It is 1 where they have none or are damaged.
int ExifOrientation(EncodedBytes exif);

}  // namespace mpc::data::vision::internal
