// What a measured step says about its values: see the pass mpc-instrument.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "runtime/executable.h"

namespace mpc {

/// The exponents of one value of a step, a parameter or an input.
struct ValueStatistics {
  std::string cell;       ///< "lenet5/conv1"; the name of a parameter or an input
  std::string operation;  ///< "conv2d"; "parameter", "statistic" or "input"
  bool backward = false;  ///< a cotangent; `cell` and `operation` are then those of the operation that computes it
  std::int64_t result = 0;
  DType dtype = DType::kF32;
  /// Elements by the biased exponent of their f32 value: [0] zeros and f32 subnormals, [127] magnitudes in [1, 2),
  /// [255] infinities and NaN.
  std::array<std::int64_t, 256> exponents{};
  std::int64_t zeros = 0;  ///< elements that are exactly zero
  double largest = 0;      ///< largest finite magnitude

  std::int64_t count() const;
  std::int64_t not_finite() const { return exponents[255]; }
  /// "conv2d in 'lenet5/conv1'", with "the gradient of" or "parameter" where that fits.
  std::string Describe() const;
};

namespace internal {

/// The measurements of the last run of a step compiled with CompileOptions::instrument, in program order. Errors
/// (FAILED_PRECONDITION): the step was not instrumented.
absl::StatusOr<std::vector<ValueStatistics>> ReadStatistics(const runtime::Executable& step);

}  // namespace internal
}  // namespace mpc
