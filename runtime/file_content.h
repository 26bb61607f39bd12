// Whole files in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc::runtime {

/// The bytes of the file at `path`. Errors: NOT_FOUND where there is no file; UNAVAILABLE with the system's reason.
absl::StatusOr<std::vector<std::uint8_t>> ReadFileContent(const std::string& path);

}  // namespace mpc::runtime
