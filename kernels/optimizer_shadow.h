// The low copy of an f32 parameter that an optimizer writes in the pass that updates it.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/kernel_spec.h"
#include "kernels/known_attributes.h"

namespace mpc {

/// The type of the shadow, which is result `position`; f32 where there is none to write. Nothing where the spec
/// contradicts itself: the parameter itself has low precision, or the result has another type.
inline std::optional<DType> ShadowType(const KernelSpec& spec, std::size_t position) {
  const Shadow shadow = spec.attributes.Get(attribute::kShadow);
  if (shadow == Shadow::kNone) return DType::kF32;
  const DType dtype = shadow == Shadow::kF16 ? DType::kF16 : DType::kBF16;
  if (spec.inputs[0].dtype != DType::kF32 || spec.outputs.size() <= position) return std::nullopt;
  if (!spec.uses(position)) return DType::kF32;
  return spec.outputs[position].dtype == dtype ? std::optional(dtype) : std::nullopt;
}

}  // namespace mpc
