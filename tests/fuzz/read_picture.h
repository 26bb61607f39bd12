// What the fuzzers of pictures have in common.
#pragma once

#include "frontend/data/vision/codecs.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {

using Decoder = absl::StatusOr<data::vision::internal::DecodedPicture> (*)(absl::Span<const std::uint8_t>,
                                                                           std::int64_t);

/// Few enough pixels that a header of a few bytes is quick.
inline constexpr std::int64_t kMaxPixels = 1 << 14;

/// A codec knows no path: its refusals say what is wrong with the picture.
inline void ReadPicture(absl::Span<const std::uint8_t> input, Decoder decode) {
  const absl::StatusOr<data::vision::internal::DecodedPicture> picture = decode(input, kMaxPixels);
  if (!picture.ok()) return RequireRefusal(picture.status(), "the ");
  Require(picture->height > 0 && picture->width > 0, "the picture has no pixels");
  Require(picture->height * picture->width <= kMaxPixels, "the picture has more pixels than are allowed");
  Require(picture->orientation >= 1 && picture->orientation <= 8, "the orientation is none of EXIF's");
  const std::size_t bytes = static_cast<std::size_t>(picture->height * picture->width) * 3;
  Require(picture->rgb.size() == bytes, "the bytes are not those of the pixels");
  RequireReadable({reinterpret_cast<const std::uint8_t*>(picture->rgb.data()), bytes});
}

}  // namespace mpc::fuzz
