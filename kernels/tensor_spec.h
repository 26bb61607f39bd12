// Shape and element type of a tensor, without its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace mpc {

/// Extents, outermost first. A scalar has no extents.
using Shape = std::vector<std::int64_t>;

std::int64_t NumElements(const Shape& shape);  ///< the largest value where the product does not fit

/// Row-major strides in elements.
Shape RowMajorStrides(const Shape& shape);

/// "32x1x28x28"; "scalar" for rank 0.
std::string ShapeToString(const Shape& shape);

struct TensorSpec {
  DType dtype = DType::kF32;
  Shape shape;

  std::int64_t num_elements() const { return NumElements(shape); }
  std::size_t bytes() const { return static_cast<std::size_t>(num_elements()) * ElementSize(dtype); }
  /// The IR's spelling: "tensor<32x10xf32>".
  std::string ToString() const;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace mpc
