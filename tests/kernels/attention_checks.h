// What holds of attention's kernels beside the claims of kernel_checks.h.
#pragma once

#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// packed_attention and its gradient have the bits of attention and attention_grad on the same heads, for every case
/// and type.
void ExpectPackedAttentionGivesTheBitsOfAttention(const KernelDevice& device);

}  // namespace mpc::test
