// Whole files that may be gzip-compressed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc::data::internal {

/// The content of the file at `path`, decompressed if it begins as a gzip file. Errors: NOT_FOUND if there is no such
/// file; UNAVAILABLE, with the system's reason, if it cannot be read. INVALID_ARGUMENT if a gzip file is cut short or
/// damaged, or if the content exceeds `max_bytes`.
absl::StatusOr<std::vector<std::uint8_t>> ReadMaybeGzipped(const std::string& path,
                                                           std::size_t max_bytes = std::size_t{1} << 31);

}  // namespace mpc::data::internal
