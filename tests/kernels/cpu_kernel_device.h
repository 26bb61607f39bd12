// The CPU kernels as tests run them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"
#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// As rules choose them.
const KernelDevice& CpuKernels();

/// Those called `choice`; creating another one is an error.
std::unique_ptr<KernelDevice> CpuKernelsChosen(std::string choice);

/// Those that `make` makes.
using MakeCpuKernel = std::function<absl::StatusOr<std::unique_ptr<cpu::Kernel>>(const KernelSpec&)>;
std::unique_ptr<KernelDevice> CpuKernelsMadeBy(MakeCpuKernel make);

}  // namespace mpc::test
