// What a region gives, checked operation by operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "kernels/tensor_spec.h"

namespace mpc::test {

/// The storage of a tensor.
using Bits = std::vector<std::uint8_t>;

/// Equal values, element by element, with the sign of zero; any NaN equals any other.
bool SameValues(const TensorSpec& spec, const Bits& ours, const Bits& theirs);

/// Expects of `outputs`, which `fusion` yields from `inputs`:
///  * of operations without a reduction the bits of the CPU kernel on the same operands;
///  * of the others values within the bound derived for f32 arithmetic, and one rounding.
/// The operands of each operation are those that the region has itself, so no error adds up over operations. Operations
/// on results of reductions that are not yielded, and what follows from those, are left out; returns how many.
int ExpectOperations(FusionOp fusion, const std::vector<Bits>& inputs, const std::vector<Bits>& outputs);

}  // namespace mpc::test
