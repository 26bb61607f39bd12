// The device on which cuda_networks_test.cc trains: emulated in tests/cuda, the GPU of this machine in tests/gpu.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mpc::test {

/// OK where "cuda" is a device of this process, which the first call may make it; UNAVAILABLE where there is no GPU.
absl::Status NetworkDeviceStatus();

/// Misuse of the device so far. Empty where nobody watches: on hardware.
std::vector<std::string> NetworkDeviceProblems();

/// Graphs launched so far; nothing where they are not counted: on hardware.
std::optional<std::size_t> GraphLaunches();

}  // namespace mpc::test
