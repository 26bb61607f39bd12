// Numbers that tests and a reference in Python make alike.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc::testing {

/// Eighths from -6 / 8 to 6 / 8, whose order depends on `k`: element i is ((5 i + k) mod 13 - 6) / 8.
inline Tensor Eighths(std::int64_t k, const Shape& shape = {4, 3}) {
  std::vector<float> values(static_cast<std::size_t>(NumElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<std::int64_t>(i) * 5 + k) % 13 - 6) / 8;
  }
  return Tensor::From(values, shape);
}

}  // namespace mpc::testing
