// The low copy of an f32 parameter that an optimizer writes in the pass that updates it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "kernels/kernel_spec.h"

namespace mpc {

/// The type of the shadow, which is result `position`; f32 where there is none to write. Nothing where the spec
/// contradicts itself: the parameter itself has low precision, or the result has another type.
inline std::optional<DType> ShadowType(const KernelSpec& spec, std::size_t position) {
  const std::string name = spec.attributes.GetString("shadow", "none");
  if (name == "none") return DType::kF32;
  const std::optional<DType> dtype = ParseDType(name);
  if (spec.inputs[0].dtype != DType::kF32 || spec.outputs.size() <= position) return std::nullopt;
  if (!spec.uses(position)) return DType::kF32;
  return spec.outputs[position].dtype == dtype ? dtype : std::nullopt;
}

}  // namespace mpc
