// Conversion of elements between storage types on the host.
#pragma once

#include <cstddef>

#include "kernels/dtype.h"

namespace mpc::internal {

/// Writes `count` elements of `from` at `source` as `to` at `destination`; the two must not overlap.
///
/// Widening is exact. Narrowing to a floating type rounds once, to nearest even, whatever the source (f64 to f16 does
/// not pass through a rounded f32). Floating to integer truncates towards zero; what does not fit becomes the nearest
/// representable integer and NaN becomes 0. To bool: true unless equal to zero, so NaN is true.
void ConvertElements(DType from, const void* source, DType to, void* destination, std::size_t count);

}  // namespace mpc::internal
