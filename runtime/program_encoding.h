// Packages as FlatBuffers tables. Not part of the public API.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/program_file.h"

namespace mpc::runtime::file {

/// The tables of runtime/program.fbs.
std::vector<std::uint8_t> Encode(const runtime::Package& package);

/// Verifies `tables`, whose first byte is on an 8-byte boundary, and reads them. Errors (INVALID_ARGUMENT): an offset
/// or a length leads outside, or an enumerator does not exist. Or there are more tables, or more repeated text and
/// numbers, than a file of this size has reason to hold.
absl::StatusOr<runtime::Package> Decode(absl::Span<const std::uint8_t> tables);

}  // namespace mpc::runtime::file
