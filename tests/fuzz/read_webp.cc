#include "tests/fuzz/read_picture.h"

namespace mpc::fuzz {

void ReadWebp(absl::Span<const std::uint8_t> input) { ReadPicture(input, data::vision::internal::DecodeWebp); }

}  // namespace mpc::fuzz
