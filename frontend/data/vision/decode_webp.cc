#include <webp/decode.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "frontend/data/vision/codecs.h"

namespace mpc::data::vision::internal {
namespace {

constexpr std::size_t kFileHeaderBytes = 12;  // "RIFF", the file's size, "WEBP"
constexpr std::size_t kChunkHeaderBytes = 8;  // four letters and a size

std::size_t LittleEndian(EncodedBytes bytes) {
  return bytes[0] | std::size_t{bytes[1]} << 8 | std::size_t{bytes[2]} << 16 | std::size_t{bytes[3]} << 24;
}

/// The orientation in the chunk "EXIF", if there is one.
int Orientation(EncodedBytes encoded) {
  encoded.remove_prefix(kFileHeaderBytes);
  while (encoded.size() >= kChunkHeaderBytes) {
    const std::size_t size = LittleEndian(encoded.subspan(4, 4));
    const bool is_exif = std::memcmp(encoded.data(), "EXIF", 4) == 0;
    encoded.remove_prefix(kChunkHeaderBytes);
    if (size > encoded.size()) return 1;
    if (is_exif) {
      EncodedBytes exif = encoded.first(size);
      // Some programs keep the prefix of JPEG's segment.
      if (exif.size() >= 6 && std::memcmp(exif.data(), "Exif\0\0", 6) == 0) exif.remove_prefix(6);
      return ExifOrientation(exif);
    }
    encoded.remove_prefix(std::min(encoded.size(), size + size % 2));
  }
  return 1;
}

absl::Status Damage() { return absl::InvalidArgumentError("the WebP is truncated or damaged"); }

}  // namespace

absl::StatusOr<DecodedPicture> DecodeWebp(EncodedBytes encoded, std::int64_t max_pixels) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(encoded.data(), encoded.size(), &features) != VP8_STATUS_OK) return Damage();
  if (features.has_animation != 0) return absl::InvalidArgumentError("the WebP is an animation, which is no picture");
  DecodedPicture picture{.height = features.height, .width = features.width, .orientation = Orientation(encoded)};
  if (absl::Status status = CheckPixelCount(picture.height, picture.width, max_pixels); !status.ok()) return status;
  picture.rgb = runtime::AlignedBuffer(static_cast<std::size_t>(picture.height * picture.width) * 3);
  const std::uint8_t* rows =
      WebPDecodeRGBInto(encoded.data(), encoded.size(), reinterpret_cast<std::uint8_t*>(picture.rgb.data()),
                        picture.rgb.size(), features.width * 3);
  if (rows == nullptr) return Damage();
  return picture;
}

}  // namespace mpc::data::vision::internal
