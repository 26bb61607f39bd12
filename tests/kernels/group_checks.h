// What one kernel for several instructions must do, on every device.
#pragma once

#include <cstddef>
#include <string>

#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// Cases of `op` that agree in attributes and types, in one kernel, have the bits of one kernel each.
void ExpectGroupsGiveTheBitsOfSingleKernels(const KernelDevice& device, const std::string& op);

/// The same for at least `instructions` of them.
void ExpectAGroupTakes(const KernelDevice& device, const std::string& op, std::size_t instructions);

}  // namespace mpc::test
