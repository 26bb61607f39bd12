// Where two tensors differ, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "kernels/tensor_spec.h"

namespace mpc {

struct TensorDifference {
  std::size_t elements = 0;   ///< number of elements of each tensor
  std::size_t different = 0;  ///< elements whose bits differ
  std::size_t first = 0;      ///< the first of them, in row-major order
  std::string first_value;   ///< value of that element in the first tensor, with enough digits to tell neighbours apart
  std::string second_value;  ///< value of that element in the second tensor
  /// How many numbers of the type that element's values lie apart: 1 for neighbours, 0 for the two zeros. None for
  /// types that are not floating, and for a value that is not a number.
  std::optional<std::uint64_t> ulps;

  /// "3 of 10 elements differ, the first is element 4: 0.5 in A, 0.25 in B, 8388608 ulps apart".
  std::string ToString(std::string_view first_place, std::string_view second_place) const;
};

/// None where all bits are equal. Both tensors have `spec`.
std::optional<TensorDifference> FindDifference(const TensorSpec& spec, absl::Span<const std::uint8_t> first,
                                               absl::Span<const std::uint8_t> second);

}  // namespace mpc
