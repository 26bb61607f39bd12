// Conversions of stored values that lose none to infinity. Not part of the public API.
#pragma once

#include <cstddef>
#include <string>

#include "frontend/graph/tensor.h"

namespace mpc::internal {

/// What was lost where `count` elements became elements of type `to`. Empty where every element that was finite still
/// is. Else it reads "has values too large for f16, first 100000 at element 3".
std::string LostValues(DType from, const void* elements, DType to, const void* converted, std::size_t count);

/// As above, for a concrete tensor and what `To` made of it.
std::string LostValues(const Tensor& tensor, const Tensor& converted);

}  // namespace mpc::internal
