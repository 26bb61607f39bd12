// A network's Parameters in the names and the layout of a file. Not part of the public API.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/parameter.h"
#include "frontend/state/checkpoint.h"
#include "frontend/state/safetensors.h"

namespace mpc::internal {

/// The comparison of a network and a file, without any effect. Nothing may be written unless `problems` is empty.
struct WeightsFit {
  std::vector<std::pair<Parameter, Tensor>> assignments;
  LoadReport report;
  std::vector<std::string> problems;
  std::string advice;  ///< what makes the names fit, where all that are missing differ by a prefix; else empty
};

/// Looks for every Parameter of `net` in `entries`, and for every entry in `net`.
WeightsFit FitWeights(nn::Cell& net, const std::map<std::string, Tensor>& entries, const LoadOptions& options);

/// Every Parameter of `net` as a file with these names holds it. Errors (INVALID_ARGUMENT): the Parameter that cannot
/// be cut into equal parts, or whose entry holds rows of Parameters that `net` does not have.
absl::StatusOr<std::vector<std::pair<std::string, Tensor>>> ForeignTensors(nn::Cell& net, const NameMap& names);

}  // namespace mpc::internal
