// What the error bounds of the families are written in.
//
// Notation: u = 2^-24 is the unit roundoff of f32: fl(a op b) = (a op b)(1 + d), |d| <= u (Higham, "Accuracy and
// Stability of Numerical Algorithms", chapters 2 to 4). A sum of n terms in any order is off by at most (n - 1) u times
// the sum of the terms' magnitudes; the few further roundings of a formula are counted beside its bound. Second-order
// terms are covered by counting one rounding more than there are.
#pragma once

#include <optional>
#include <vector>

#include "tests/kernels/error_bounds.h"

namespace mpc::test {

using op_cases::OpCase;
using Tensors = std::vector<reference::Tensor>;
/// Of each result, as ArithmeticErrors returns them.
using Errors = std::vector<std::optional<ElementErrors>>;

/// u.
constexpr double kU = 0x1p-24;
/// Kernels may flush f32 values below the smallest normal number.
constexpr double kUnderflow = 0x1p-126;
/// exp, log, log1p, tanh and sigmoid: their documented accuracy is 4 ulp, and an ulp of f32 is at most 2 u.
constexpr double kFunction = 8 * kU;

}  // namespace mpc::test
