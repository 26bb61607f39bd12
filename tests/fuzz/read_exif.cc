#include "frontend/data/vision/codecs.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {

void ReadExif(absl::Span<const std::uint8_t> input) {
  const int orientation = data::vision::internal::ExifOrientation(input);
  Require(orientation >= 1 && orientation <= 8, "the orientation is none of EXIF's");
}

}  // namespace mpc::fuzz
