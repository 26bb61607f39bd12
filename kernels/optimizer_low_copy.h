// The low copy of an f32 parameter that an optimizer writes in the pass that updates it.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/kernel_spec.h"
#include "kernels/known_attributes.h"

namespace mpc {

/// The type of the low copy, which is result `position`; f32 where there is none to write. Nothing where the spec
/// contradicts itself: the parameter itself has low precision, or the result has another type.
inline std::optional<DType> LowCopyType(const KernelSpec& spec, std::size_t position) {
  const LowCopy low_copy = spec.attributes.Get(attribute::kLowCopy);
  if (low_copy == LowCopy::kNone) return DType::kF32;
  const DType dtype = low_copy == LowCopy::kF16 ? DType::kF16 : DType::kBF16;
  if (spec.inputs[0].dtype != DType::kF32 || spec.outputs.size() <= position) return std::nullopt;
  if (!spec.uses(position)) return DType::kF32;
  return spec.outputs[position].dtype == dtype ? std::optional(dtype) : std::nullopt;
}

}  // namespace mpc
