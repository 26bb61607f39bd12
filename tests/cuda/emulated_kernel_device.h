// The CUDA kernels as tests run them on the host: the project's own, in the emulation, without the vendor's libraries.
#pragma once

#include <memory>

#include "kernels/cuda/kernel.h"
#include "tests/kernels/kernel_device.h"

namespace mpc::test {

const KernelDevice& EmulatedKernels();

/// As EmulatedKernels(), created for another device or with other limits.
std::unique_ptr<KernelDevice> EmulatedKernelsIn(const cuda::KernelContext& context);

/// Where EmulatedKernels() creates its kernels.
cuda::KernelContext EmulatedContext();

}  // namespace mpc::test
