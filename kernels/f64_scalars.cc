#include "kernels/f64_scalars.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace mpc {
namespace {

bool IsF64(const TensorSpec& tensor) { return tensor.dtype == DType::kF64; }

bool MayBeF64Operand(const KernelSpec& spec, std::size_t operand) {
  const std::size_t count = spec.inputs.size();
  if (spec.name == "clip_by_norm") return operand == 1;
  if (spec.name == "check_finite") return operand == 0;
  if (spec.name == "cast") return spec.outputs[0].dtype == DType::kF32;
  if (spec.name == "global_norm") {
    return operand + static_cast<std::size_t>(spec.attributes.GetInt("sums")) >= count;
  }
  // An optimizer that clips: the predicate, where there is one, follows the norm.
  if (!(spec.attributes.GetDouble("max_norm") > 0)) return false;
  const std::size_t behind = spec.inputs.back().dtype == DType::kBool ? 2 : 1;
  return operand + behind == count;
}

bool MayBeF64Result(const KernelSpec& spec) { return spec.name == "global_norm" || spec.name == "sum_of_squares"; }

}  // namespace

bool TakesStorageTypes(const KernelSpec& spec) {
  const auto is_cast_only = [](const TensorSpec& tensor) { return InfoOf(tensor.dtype).cast_only; };
  if (std::any_of(spec.inputs.begin(), spec.inputs.end(), is_cast_only)) return false;
  if (std::any_of(spec.outputs.begin(), spec.outputs.end(), is_cast_only)) return false;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (IsF64(spec.inputs[i]) && !(spec.inputs[i].shape.empty() && MayBeF64Operand(spec, i))) return false;
  }
  for (const TensorSpec& output : spec.outputs) {
    if (IsF64(output) && !(output.shape.empty() && MayBeF64Result(spec))) return false;
  }
  return true;
}

}  // namespace mpc
