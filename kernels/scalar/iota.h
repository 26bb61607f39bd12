// The numbers of mpc.iota: what kernels compute.
#pragma once

#include <cstdint>

#include "kernels/axis_lines.h"

namespace mpc::scalar {

/// start + step * i at index i of the lines' axis.
struct Iota {
  std::int64_t start, step;
  AxisLines lines;

  static Iota Of(const Attributes& attributes, const Shape& shape) {
    return {attributes.GetInt("start", 0), attributes.GetInt("step", 1), AxisLines::Of(attributes, shape)};
  }

  /// The number at element `index` of the result, in row-major order.
  MPC_HOST_DEVICE std::int64_t At(std::int64_t index) const {
    return start + step * (index / lines.inner % lines.extent);
  }
};

}  // namespace mpc::scalar
