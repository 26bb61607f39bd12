// How far a kernel that computes and accumulates in f32 may be from exact arithmetic, derived for each operation.
#pragma once

#include <optional>
#include <vector>

#include "kernels/reference/reference.h"
#include "tests/op_cases/op_case.h"

namespace mpc::test {

/// One bound for each element of one result.
using ElementErrors = std::vector<double>;

/// For each result a bound on |value before it is stored - exact|, or nothing where the stored value must be equal to
/// the rounded exact one (data movement, comparison, selection, integers, random draws, loss-scale arithmetic).
/// `exact` holds the unrounded results of the reference on `inputs`.
std::vector<std::optional<ElementErrors>> ArithmeticErrors(const op_cases::OpCase& op_case,
                                                           const std::vector<reference::Tensor>& inputs,
                                                           const std::vector<reference::Tensor>& exact);

/// Half a unit in the last place of `dtype` at `magnitude` >= 0: what rounding once to storage adds.
double HalfUlp(DType dtype, double magnitude);

}  // namespace mpc::test
