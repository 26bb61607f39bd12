// An operation with everything a device needs to know before it makes a kernel of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"

namespace mpc {

/// What an instruction computes. Mnemonic, operands and attributes are those of the IR operation. A result that nothing
/// uses has no storage (`output_used` is false). Its spec is empty and its pointer null.
struct KernelSpec {
  std::string name;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<bool> output_used;  ///< empty means all are used
  Attributes attributes;
  /// Layout and implementation of a weight that comes packed (weight_packing.h). inputs[1] is then the IR's spec of the
  /// weight. The storage has the layout `weight_layout` and is for the implementation `weight_choice`, a choice. Both
  /// are empty where the weight lies row-major.
  std::string weight_layout = {};
  std::string weight_choice = {};
  bool uses(std::size_t output) const { return output_used.empty() || output_used[output]; }
};

/// A number of the spec as kernels compute with it, 0 where it is left out.
inline float FloatAttribute(const KernelSpec& spec, std::string_view name) {
  return static_cast<float>(spec.attributes.GetDouble(name));
}

}  // namespace mpc
