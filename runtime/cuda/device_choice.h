// Which GPU of a machine a process uses.
#pragma once

#include <cstdlib>
#include <functional>

#include "absl/status/statusor.h"

namespace mpc::runtime {

/// The index of this process's GPU among `count` that CUDA_VISIBLE_DEVICES shows: the local rank that the launcher says
/// (ReadLaunchEnvironment). Where one is shown it is that one, since launchers may show each process its own. `get`
/// reads a variable. Errors (INVALID_ARGUMENT): a local rank that has no GPU; those of the launcher's variables.
absl::StatusOr<int> ChooseGpu(
    int count, const std::function<const char*(const char*)>& get = [](const char* name) { return std::getenv(name); });

}  // namespace mpc::runtime
