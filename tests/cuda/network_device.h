// The device on which whole networks train in tests: emulated in tests/cuda, the GPU of this machine in tests/gpu.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/cuda/counting_api.h"
#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// OK where "cuda" is a device of this process, which the first call may make it; UNAVAILABLE where there is no GPU.
absl::Status NetworkDeviceStatus();

/// Whether steps are fused there, as ContextOptions::fusion has it: the emulation runs no generated code.
std::optional<bool> NetworkDeviceFusion();

/// Misuse of the device so far. Empty where nobody watches: on hardware.
std::vector<std::string> NetworkDeviceProblems();

/// The calls that the device makes; null where they are not counted: in libmpc_cuda.so. Valid once the status is OK.
CountingApi* NetworkDeviceCalls();

/// The kernels that steps are made of on the device, one at a time. Valid once the status is OK.
const KernelDevice& NetworkDeviceKernels();

}  // namespace mpc::test
