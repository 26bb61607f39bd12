// A file of the hashes of a run's state: the line "mpc state hashes 1", then one line a step.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace mpc::tools {

/// What such a file begins with; behind it stands its version.
inline constexpr char kStateHashesHead[] = "mpc state hashes ";
inline constexpr char kStateHashesVersion[] = "1";

/// By number of the step, counted as RunContext::global_step.
using StateHashes = std::map<std::int64_t, std::uint64_t>;

/// "17 00c0ffee00c0ffee\n".
std::string StateHashLine(std::int64_t step, std::uint64_t hash);

/// Errors (INVALID_ARGUMENT) name `path` and the line: another head or version, a line that StateHashLine does not
/// write, steps that do not grow. Those of reading the file.
absl::StatusOr<StateHashes> ReadStateHashes(const std::string& path);

}  // namespace mpc::tools
