// The part of an .mpcx file that no checksum guards.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace mpc::fuzz {

/// The tables behind the header of an .mpcx file, on an 8-byte boundary. Empty where there is no more than a header.
inline std::vector<std::uint8_t> TablesOf(absl::Span<const std::uint8_t> file) {
  constexpr std::size_t kHeaderBytes = 24;
  if (file.size() <= kHeaderBytes) return {};
  return std::vector<std::uint8_t>(file.begin() + kHeaderBytes, file.end());
}

}  // namespace mpc::fuzz
