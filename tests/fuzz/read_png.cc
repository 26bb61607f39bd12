#include <zlib.h>

#include <vector>

#include "tests/fuzz/read_picture.h"

namespace mpc::fuzz {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kHeaderBytes = 8;  ///< of a chunk: its size and type
constexpr std::size_t kChecksumBytes = 4;

/// The input with the checksum that each of its whole chunks should have.
std::vector<std::uint8_t> WithChecksums(absl::Span<const std::uint8_t> input) {
  std::vector<std::uint8_t> png(input.begin(), input.end());
  std::size_t at = kSignatureBytes;
  while (at + kHeaderBytes + kChecksumBytes <= png.size()) {
    const std::size_t size = std::size_t{png[at]} << 24 | std::size_t{png[at + 1]} << 16 |
                             std::size_t{png[at + 2]} << 8 | std::size_t{png[at + 3]};
    if (size > png.size() - at - kHeaderBytes - kChecksumBytes) break;
    // A checksum is of type and data.
    const uLong checksum = ::crc32(0, png.data() + at + 4, static_cast<uInt>(size + 4));
    at += kHeaderBytes + size;
    for (std::size_t i = 0; i < kChecksumBytes; ++i) png[at++] = static_cast<std::uint8_t>(checksum >> (24 - 8 * i));
  }
  return png;
}

}  // namespace

void ReadPng(absl::Span<const std::uint8_t> input) {
  ReadPicture(input, data::vision::internal::DecodePng);
  ReadPicture(WithChecksums(input), data::vision::internal::DecodePng);
}

}  // namespace mpc::fuzz
