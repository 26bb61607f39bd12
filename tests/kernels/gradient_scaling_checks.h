// Optimizers that unscale and clip the gradient themselves, on every device.
#pragma once

#include <string>

#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// The cases of `op` with a scale or a norm have the bits of mpc.unscale and mpc.clip_by_norm in front of the update.
void ExpectFoldedScalingGivesTheBitsOfSeparateOperations(const KernelDevice& device, const std::string& op);

}  // namespace mpc::test
