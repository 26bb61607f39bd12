// The flags of pictures in folders: what is made of them before a network takes them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/mpc-train/options.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {

/// What --data says of pictures, with the networks that take them.
std::string PicturesHelp();

void AddPictureFlags(FlagSet& flags, TrainOptions& options);

/// Fills in the network's mean and deviation where no flag says otherwise. Errors: a network that takes no pictures, no
/// folder of them, or nothing to do with them.
absl::Status ResolvePictures(TrainOptions& options);

}  // namespace mpc::tools
