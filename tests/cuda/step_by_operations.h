// A compiled step run one operation at a time with the kernels of a device, each of which is checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/module/graph_builder.h"
#include "frontend/graph/tensor.h"
#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// The storage of values by name.
using NamedBytes = std::map<std::string, std::vector<std::uint8_t>>;

/// Runs `@train_step` of `final_ir` from `state` on `inputs`, and expects of every operation that its kernel is within
/// the bound derived for f32 arithmetic, and one rounding, of the reference on the operands that the kernel was given:
/// errors of one operation do not add to those of another, and a relu decides by the same value on both sides. Returns
/// the state that the step leaves.
NamedBytes RunByOperations(const KernelDevice& device, const compiler::Module& final_ir, const NamedBytes& state,
                           const std::vector<Tensor>& inputs);

}  // namespace mpc::test
