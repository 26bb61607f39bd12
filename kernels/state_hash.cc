#include "kernels/state_hash.h"

#include "absl/strings/str_cat.h"

namespace mpc {

absl::Status CheckStateHash(const KernelSpec& spec) {
  const std::size_t keys = spec.attributes.GetInts(kHashKeys).size();
  const bool is_hash = spec.outputs.size() == 1 && spec.outputs[0] == TensorSpec{DType::kI64, {}};
  if (is_hash && keys == spec.inputs.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(kStateHash, " takes a key for each input and gives one i64; got ",
                                                 spec.inputs.size(), " inputs, ", keys, " keys and ",
                                                 spec.outputs.empty() ? "no result" : spec.outputs[0].ToString()));
}

}  // namespace mpc
