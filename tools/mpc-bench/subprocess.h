// Running another program.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc::tools {

/// Runs `command` (the program is looked up in PATH) and returns what it wrote to its standard output; its standard
/// error is ours. Errors: it cannot be started; it ends with another status than 0, which is named.
absl::StatusOr<std::string> RunAndCapture(const std::vector<std::string>& command);

}  // namespace mpc::tools
