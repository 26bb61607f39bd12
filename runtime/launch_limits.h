// The largest number of steps that one launch may make.
#pragma once

namespace mpc::runtime {

/// Each step has nodes of its own in the graph of a launch.
inline constexpr int kMostStepsPerLaunch = 64;

}  // namespace mpc::runtime
