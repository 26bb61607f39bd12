// What training begins from, and what it leaves as it is.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mpc/nn.h"
#include "tools/mpc-train/options.h"

namespace mpc::tools {

/// Freezes the Parameters that --freeze names; statistics of batches move all the same. Before an optimizer is made.
/// Errors: a path that the network does not have; no Parameter is left to train.
absl::Status Freeze(const TrainOptions& options, nn::Cell& network);

/// Compares the names of the classes that the file of --load was trained on with those of the data. Where one of them
/// has none, it does nothing. Errors: other names, where nothing is trained. Elsewhere they are a warning.
absl::Status CheckClassNames(const TrainOptions& options, const std::vector<std::string>& names);

/// Loads the file of --load or of --init; without one it does nothing. The names of --init's file are mpc's or those of
/// the network's preset, whichever has more of them. With --classes the head is not loaded. Errors: the file's.
absl::Status LoadInitialWeights(const TrainOptions& options, nn::Cell& network);

}  // namespace mpc::tools
