// Names of records that the frontend makes and passes read.
#pragma once

#include <string_view>

namespace mpc {

/// The record of how many elements a loss counts, as a share of those that it could: an f32 scalar of the micro-batch.
/// Where there is one, a mean over the micro-batches of an update weighs each by it. A step that records several
/// numbers them: "loss_weight", "loss_weight#2".
inline constexpr std::string_view kLossWeight = "loss_weight";

} // namespace mpc
