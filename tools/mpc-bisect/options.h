// What mpc-bisect is asked to do.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mpc::tools {

struct BisectOptions {
  std::string first_path;    ///< called A in what is printed
  std::string second_path;   ///< called B
  std::int64_t threads = 0;  ///< threads of both replays; 0: each has as many as its run
};

struct BisectCommandLine {
  BisectOptions options;
  std::string help;  ///< not empty: print it and end
};

/// Reads the command line. Errors are bad usage.
absl::StatusOr<BisectCommandLine> ParseBisectCommandLine(int argc, const char* const* argv);

}  // namespace mpc::tools
