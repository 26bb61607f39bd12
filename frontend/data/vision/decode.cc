#include "frontend/data/vision/decode.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/codecs.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::data::vision {
namespace internal {

absl::Status CheckPixelCount(std::int64_t height, std::int64_t width, std::int64_t max_pixels) {
  // Extents have at most 31 bits.
  if (height * width <= max_pixels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the picture announces ", width, " x ", height, " pixels, more than max_pixels = ", max_pixels));
}

}  // namespace internal

namespace {

absl::StatusOr<internal::DecodedPicture> DecodeAny(internal::EncodedBytes encoded, std::int64_t max_pixels,
                                                   const internal::ChoosePart& choose) {
  const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  if (text.empty()) return absl::InvalidArgumentError("the picture is empty");
  if (text.starts_with("\xff\xd8\xff")) return internal::DecodeJpeg(encoded, max_pixels, choose);
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return internal::DecodePng(encoded, max_pixels);
  if (text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP") {
    return internal::DecodeWebp(encoded, max_pixels);
  }
  return absl::InvalidArgumentError("this is no JPEG, PNG or WebP picture: it begins as none of them");
}

/// Turns the rows as orientation 2 .. 8 of EXIF says: from 5 on rows become columns.
Tensor Upright(const internal::DecodedPicture& picture) {
  const int orientation = picture.orientation;
  const bool transposed = orientation >= 5;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const std::int64_t height = transposed ? picture.width : picture.height;
  const std::int64_t width = transposed ? picture.height : picture.width;
  runtime::AlignedBuffer turned(picture.rgb.size());
  std::byte* target = turned.data();
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x, target += 3) {
      const std::int64_t row = transposed ? x : y;
      const std::int64_t column = transposed ? y : x;
      const std::int64_t source_row = from_bottom ? picture.height - 1 - row : row;
      const std::int64_t source_column = from_right ? picture.width - 1 - column : column;
      std::memcpy(target, picture.rgb.data() + 3 * (source_row * picture.width + source_column), 3);
    }
  }
  return mpc::internal::MakeConcrete({DType::kU8, {height, width, 3}}, std::move(turned));
}

/// What DecodeAny makes of a tensor of bytes. Its errors begin with where the bytes are from.
absl::StatusOr<internal::DecodedPicture> DecodeTensor(const Tensor& encoded, const DecodeOptions& options,
                                                      const internal::ChoosePart& choose) {
  if (!encoded.status().ok()) return encoded.status();
  if (!encoded.concrete() || encoded.dtype() != DType::kU8 || encoded.rank() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Decode takes the bytes of a picture, u8 [bytes], got ", encoded.spec().ToString()));
  }
  absl::StatusOr<internal::DecodedPicture> picture =
      DecodeAny(encoded.data<std::uint8_t>(), options.max_pixels, choose);
  if (picture.ok()) return picture;
  const std::string& origin = encoded.node()->origin;
  return absl::Status(picture.status().code(),
                      absl::StrCat(origin, origin.empty() ? "" : ": ", picture.status().message()));
}

Tensor TensorOf(internal::DecodedPicture picture) {
  if (picture.orientation != 1) return Upright(picture);
  return mpc::internal::MakeConcrete({DType::kU8, {picture.height, picture.width, 3}}, std::move(picture.rgb));
}

}  // namespace

absl::StatusOr<Tensor> Decode::operator()(const Tensor& encoded) const {
  absl::StatusOr<internal::DecodedPicture> picture = DecodeTensor(encoded, options_, /*choose=*/nullptr);
  if (!picture.ok()) return picture.status();
  return TensorOf(*std::move(picture));
}

absl::StatusOr<Tensor> internal::DecodePart(const Tensor& encoded, const DecodeOptions& options,
                                            const ChoosePart& choose) {
  // An error of `choose` is about no file.
  absl::Status refusal;
  const ChoosePart choose_once = [&](const Extents& extents) {
    absl::StatusOr<Box> part = choose(extents);
    refusal = part.status();
    return part;
  };
  absl::StatusOr<DecodedPicture> picture = DecodeTensor(encoded, options, choose_once);
  if (!refusal.ok()) return refusal;
  if (!picture.ok()) return picture.status();
  const bool is_part = picture->is_part;
  Tensor image = TensorOf(*std::move(picture));
  if (is_part) return image;
  const absl::StatusOr<Box> part = choose({.height = image.dim(0), .width = image.dim(1), .channels = 3});
  if (!part.ok()) return part.status();
  return CutOut(image, *part);
}

}  // namespace mpc::data::vision
