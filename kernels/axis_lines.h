// A tensor as lines along one axis.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attributes.h"
#include "kernels/host_device.h"
#include "kernels/known_attributes.h"
#include "kernels/tensor_spec.h"

namespace mpc {

/// A shape as [outer, extent, inner] around the axis that the attribute `axis` names.
struct AxisLines {
  std::int64_t outer = 1, extent = 1, inner = 1;

  /// The axis lies in [-rank, rank), which is not checked. A scalar is one line of one element.
  static AxisLines Of(const Attributes& attributes, const Shape& shape) {
    const auto rank = static_cast<std::int64_t>(shape.size());
    std::int64_t axis = attributes.Get(attribute::kLastAxis);
    if (axis < 0) axis += rank;
    AxisLines lines;
    for (std::int64_t i = 0; i < rank; ++i) {
      (i < axis ? lines.outer : i == axis ? lines.extent : lines.inner) *= shape[static_cast<std::size_t>(i)];
    }
    return lines;
  }

  MPC_HOST_DEVICE std::int64_t count() const { return outer * inner; }
  /// The offset of element `index` of a line. Neighbours lie `inner` elements apart.
  MPC_HOST_DEVICE std::int64_t Offset(std::int64_t line, std::int64_t index) const {
    return (line / inner * extent + index) * inner + line % inner;
  }
};

}  // namespace mpc
