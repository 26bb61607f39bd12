// Sums of squares for norms of gradients and parameters.
#pragma once

#include <cstdint>

namespace mpc::cpu {

/// Sum of the squares of values[i] * factor, each product rounded to f32, in an order that depends on `count` alone. In
/// f64 each square is exact, and squares of finite values do not overflow.
inline double SumOfSquares(const float* values, std::int64_t count, float factor = 1.0f) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(values[i] * factor);
    sum += value * value;
  }
  return sum;
}

}  // namespace mpc::cpu
