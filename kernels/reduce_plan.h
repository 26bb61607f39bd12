// How a reduction walks its operand: neighbouring axes that are both kept or both reduced are merged, and the innermost
// merged axis, contiguous, stands alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/kernel_spec.h"

namespace mpc {

/// Merged axes of one kind (kept or reduced), outermost first. Axes of extent 1 are left out. Strides are in elements.
struct AxisList {
  static constexpr int kMaxRank = 8;
  int rank = 0;
  std::int64_t extents[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};

  /// The product of the extents; 1 without axes.
  std::int64_t count() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis) product *= extents[axis];
    return product;
  }
  /// Offset in the operand of the element `index` of these axes.
  std::int64_t Offset(std::int64_t index) const {
    std::int64_t offset = 0;
    for (int axis = rank - 1; axis > 0; --axis) {
      offset += index % extents[axis] * strides[axis];
      index /= extents[axis];
    }
    return rank > 0 ? offset + index * strides[0] : offset;
  }
  /// Adds an axis inside the others. There are at most kMaxRank, which is not checked.
  void Push(std::int64_t extent, std::int64_t stride) {
    extents[rank] = extent;
    strides[rank] = stride;
    ++rank;
  }
};

struct ReducePlan {
  AxisList kept, reduced;  ///< without the inner axis
  std::int64_t inner = 1;  ///< extent of the innermost merged axis, contiguous; 1 and reduced where there is none
  bool inner_reduced = true;
  float divisor = 1;  ///< elements that meet in one result, whatever the reduction; means divide by it
  DType in = DType::kF32, out = DType::kF32;
};

/// The plan of the reduction of operand `position`, counted from 0, over the attribute `axes` (none: all). `out` is the
/// type of the first result. Errors: UNIMPLEMENTED for an operand of more than eight axes; INVALID_ARGUMENT for an axis
/// that it lacks, as every negative one.
absl::StatusOr<ReducePlan> PlanReduce(const KernelSpec& spec, std::size_t position);

}  // namespace mpc
