// The CPU kernels as tests run them.
#pragma once

#include "tests/kernels/kernel_device.h"

namespace mpc::test {

const KernelDevice& CpuKernels();

}  // namespace mpc::test
