// An operation with everything a device needs to know before it makes a kernel of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"

namespace mpc {

/// What an instruction computes. Mnemonic, operands and attributes are those of the IR operation; a result that nothing
/// uses has no storage (`output_used` is false): its spec is empty and its pointer null.
struct KernelSpec {
  std::string name;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<bool> output_used;  ///< empty means all are used
  Attributes attributes;
  /// Of a weight that comes packed (weight_packing.h): inputs[1] is what the IR says of it, its storage has this layout
  /// and is for this implementation, in the form of a choice. Empty: it lies row-major.
  std::string weight_layout = {};
  std::string weight_choice = {};
  bool uses(std::size_t output) const { return output_used.empty() || output_used[output]; }
};

/// A number of the spec as kernels compute with it.
inline float FloatAttribute(const KernelSpec& spec, std::string_view name, float fallback) {
  return static_cast<float>(spec.attributes.GetDouble(name, static_cast<double>(fallback)));
}

}  // namespace mpc
