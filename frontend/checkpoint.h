// Saving what was trained and loading it into a network.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/cell.h"

namespace mpc {

/// Writes every Parameter of `net` (running statistics included) under its dotted path as safetensors: beside `path`,
/// synced, renamed. Errors: the path and the reason.
absl::Status SaveCheckpoint(nn::Cell& net, const std::string& path);

struct LoadOptions {
  /// Strict: every Parameter must be in the file and every entry must fit one; otherwise nothing is loaded. Partial:
  /// what fits is loaded and the report names the rest; a misshapen entry is an error in both.
  bool strict = true;
};

struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     ///< Parameters that the file does not have
  std::vector<std::string> unexpected;  ///< entries that the network does not have
};

/// Loads a checkpoint into `net`. Everything is checked first: on an error, which lists every problem, the network is
/// as it was. Floating entries of another type are converted to f32.
absl::StatusOr<LoadReport> LoadParamIntoNet(nn::Cell& net, const std::string& path, const LoadOptions& options = {});

}  // namespace mpc
