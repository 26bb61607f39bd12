#include <cstddef>

#include "frontend/data/vision/codecs.h"

namespace mpc::data::vision::internal {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::size_t kEntryBytes = 12;

/// Numbers of a TIFF structure in its byte order; 0 beyond its end.
class TiffReader {
 public:
  TiffReader(EncodedBytes bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  std::uint32_t Number(std::size_t offset, std::size_t count) const {
    if (offset > bytes_.size() || count > bytes_.size() - offset) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes_[offset + (big_endian_ ? i : count - 1 - i)];
    return value;
  }

 private:
  EncodedBytes bytes_;
  bool big_endian_;
};

}  // namespace

int ExifOrientation(EncodedBytes exif) {
  if (exif.size() < 8 || exif[0] != exif[1] || (exif[0] != 'I' && exif[0] != 'M')) return 1;
  const TiffReader reader(exif, exif[0] == 'M');
  if (reader.Number(2, 2) != 42) return 1;
  const std::size_t directory = reader.Number(4, 4);
  const std::size_t entries = reader.Number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (reader.Number(entry, 2) != kOrientationTag) continue;
    const std::uint32_t orientation = reader.Number(entry + 8, 2);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

}  // namespace mpc::data::vision::internal
