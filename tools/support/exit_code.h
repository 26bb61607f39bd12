// How the tools end.
#pragma once

#include <iostream>
#include <string_view>

#include "absl/status/status.h"

namespace mpc::tools {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;   ///< something went wrong while running
inline constexpr int kBadUsage = 2;  ///< the command line alone is wrong; nothing was begun

/// The exit code of a run that `signal` stopped in good order: what a shell reports for a process that the signal
/// ended.
inline int StoppedBy(int signal) { return 128 + signal; }

/// Prints "program: message" to std::cerr and returns `exit_code`.
inline int Fail(std::string_view program, const absl::Status& status, int exit_code) {
  std::cerr << program << ": " << status.message() << "\n";
  if (exit_code == kBadUsage) std::cerr << "try '" << program << " --help'\n";
  return exit_code;
}

}  // namespace mpc::tools
