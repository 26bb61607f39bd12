// Sizes on command lines: "1GiB".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace mpc::tools {

/// Bytes of a positive number with one of the suffixes KiB, MiB, GiB, or none. Fractions are accepted with a suffix
/// ("1.5GiB"). Errors (INVALID_ARGUMENT): anything else, with what is accepted.
absl::StatusOr<std::int64_t> ParseByteSize(std::string_view text);

inline double MiB(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace mpc::tools
