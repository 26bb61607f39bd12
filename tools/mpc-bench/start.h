// What a peer begins from: mpc's initial weights and the batches of the run.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/mpc-bench/options.h"

namespace mpc::tools {

/// Files of WriteStart in `folder`.
std::string WeightsIn(const std::string& folder);  ///< safetensors under PyTorch's names
std::string BatchesIn(const std::string& folder);  ///< safetensors: "batch0.column0", ...

/// Writes both for the row, into an existing folder: what MeasureSteps begins from in a process of its own, where
/// equal seeds give equal bits. Errors: those of making the network and of writing.
absl::Status WriteStart(const BenchOptions& row, const std::string& folder);

}  // namespace mpc::tools
