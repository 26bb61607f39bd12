#include "tests/fuzz/read_picture.h"

namespace mpc::fuzz {

void ReadJpeg(absl::Span<const std::uint8_t> input) {
  using data::vision::internal::DecodeJpeg;
  ReadPicture(input, [](auto encoded, std::int64_t max_pixels) { return DecodeJpeg(encoded, max_pixels, nullptr); });
  // A part from the middle, which skips rows and blocks on every side.
  ReadPicture(input, [](auto encoded, std::int64_t max_pixels) {
    return DecodeJpeg(encoded, max_pixels, [](const auto& extents) -> absl::StatusOr<data::vision::internal::Box> {
      return InTheMiddle(extents, (extents.height + 1) / 2, (extents.width + 1) / 2);
    });
  });
}

}  // namespace mpc::fuzz
