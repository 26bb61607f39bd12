// The initial values of weights and biases that are bounded by their number of terms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "frontend/graph/initializer.h"

namespace mpc::nn {

/// U(-1/sqrt(fan), 1/sqrt(fan)). A `fan` below 1 counts as 1.
inline Initializer UniformBelow(std::int64_t fan) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, fan)));
  return UniformRange(-bound, bound);
}

}  // namespace mpc::nn
