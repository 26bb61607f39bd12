// Running other programs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc::tools {

/// A program (looked up in PATH) with its arguments, and what it has in its environment beside ours: "NAME=value". A
/// variable of ours with such a name is not passed on.
struct Command {
  std::vector<std::string> words;
  std::vector<std::string> environment = {};
};

/// Runs `command` and returns what it wrote to its standard output; its standard error is ours. Errors: it cannot be
/// started; it ends with another status than 0, which is named.
absl::StatusOr<std::string> RunAndCapture(const std::vector<std::string>& command);

/// Runs all of `commands` at once and returns what each wrote. Errors are as above; the other programs are then killed,
/// since they may wait for the one that has failed.
absl::StatusOr<std::vector<std::string>> RunTogether(const std::vector<Command>& commands);

}  // namespace mpc::tools
