// Operations on the CPU as a compiled step computes them, on buffers of tests.
#pragma once

#include <string_view>

#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// Whether kernels/cpu has a kernel written by hand for the operation.
bool HasCpuKernel(std::string_view name);

/// Each operation by the kernel written by hand, or else by a Program: a function that holds nothing else goes through
/// mpc-layout and mpc-fusion, as a step's operations do, then code generation and lowering.
const KernelDevice& CpuOperations();

}  // namespace mpc::test
