// The CPU kernels as tests run them.
#pragma once

#include <memory>
#include <string>

#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// As rules choose them.
const KernelDevice& CpuKernels();

/// Those called `choice`; creating another one is an error.
std::unique_ptr<KernelDevice> CpuKernelsChosen(std::string choice);

}  // namespace mpc::test
