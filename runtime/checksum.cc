#include "runtime/checksum.h"

#include <zlib.h>

#include "absl/strings/str_format.h"

namespace mpc::runtime {

void Checksum::Add(const void* bytes, std::size_t size) {
  // Without bytes zlib answers with the first value, not with the one so far.
  if (size > 0) value_ = static_cast<std::uint32_t>(::crc32_z(value_, static_cast<const unsigned char*>(bytes), size));
}

std::string Checksum::Text() const { return absl::StrFormat("%08x", value_); }

}  // namespace mpc::runtime
