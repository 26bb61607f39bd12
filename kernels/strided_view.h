// A tensor read in the order of a result's elements: what broadcasting and transposing have in common.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/tensor_spec.h"

namespace mpc {

/// Axes of extent 1 are dropped and neighbours that step alike are merged. Result axis i then has `extents[i]`
/// elements, which lie `strides[i]` apart in the operand. Examples: [N, C] + [C] is one row repeated N times. [N, C, H,
/// W] + [1, C, 1, 1] is C values, each repeated H * W times. NCHW -> NHWC swaps two axes.
struct StridedView {
  static constexpr int kMaxRank = 8;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> extents{};
  std::array<std::int64_t, kMaxRank> strides{};
  std::int64_t count = 1;  ///< elements of the result

  /// The result's elements are the operand's, in order.
  bool is_identity() const { return count == 0 || (rank == 1 && strides[0] == 1); }
  /// Every element of the result is the operand's first.
  bool is_scalar() const { return rank == 0 || (rank == 1 && strides[0] == 0); }
};

/// `operand` stretched to `result`: aligned at the right, extents of 1 (and missing axes) repeat. Errors
/// (INVALID_ARGUMENT): it does not broadcast to `result`; more than eight merged axes.
absl::StatusOr<StridedView> BroadcastView(const Shape& operand, const Shape& result);

/// Result axis i is axis `permutation[i]` of `operand`. Errors: INVALID_ARGUMENT for a permutation of another rank,
/// UNIMPLEMENTED beyond eight merged axes.
absl::StatusOr<StridedView> TransposeView(const Shape& operand, const std::vector<std::int64_t>& permutation);

}  // namespace mpc
