// How the tools end.
#pragma once

#include <iostream>
#include <string>
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
  std::string text = std::string(program) + ": " + std::string(status.message()) + "\n";
  if (exit_code == kBadUsage) text += "try '" + std::string(program) + " --help'\n";
  std::cerr << text;  // one piece, since other processes of a group write there too
  return exit_code;
}

}  // namespace mpc::tools
