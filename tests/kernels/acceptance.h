// Whether a stored value may come from exact arithmetic with a bounded error.
#pragma once

#include <optional>

#include "kernels/dtype.h"

namespace mpc::test {

/// `error` bounds the arithmetic; storing in `dtype` rounds once more. Without it the rounded exact value is the only
/// answer. NaN equals NaN.
bool Accepts(DType dtype, double actual, double exact, std::optional<double> error);

}  // namespace mpc::test
