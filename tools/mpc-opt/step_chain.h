// The values of a measured step that lead to one of them. Free of MLIR headers.
#pragma once

#include <string>
#include <vector>

#include "frontend/inspect/value_statistics.h"
#include "runtime/program.h"

namespace mpc::opt {

/// A table of the values that `values[last]` is computed from. It goes from there back to parameters and inputs, along
/// the operand with the largest magnitude each time. The other operands stand beside it. `values` are those that
/// ReadStatistics gives of `program`, in its order. A line has the range of a value: largest magnitude, smallest and
/// largest exponent, zeros, elements that are not finite.
std::string DescribeChain(const runtime::Program& program, const std::vector<ValueStatistics>& values,
                          std::size_t last);

}  // namespace mpc::opt
