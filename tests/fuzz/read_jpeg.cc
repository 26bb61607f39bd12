#include "tests/fuzz/read_picture.h"

namespace mpc::fuzz {

void ReadJpeg(absl::Span<const std::uint8_t> input) { ReadPicture(input, data::vision::internal::DecodeJpeg); }

}  // namespace mpc::fuzz
