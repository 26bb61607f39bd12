#include "kernels/cpu/onednn_common.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::cpu {

const dnnl::engine& OnednnEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

bool HasNativeBf16() {
  constexpr auto kBf16 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  static const bool native = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kBf16) == kBf16;
  return native;
}

dnnl::primitive_attr StrictAttributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

dnnl::memory::data_type OnednnType(DType dtype) {
  return dtype == DType::kBF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::data_type ResultType(dnnl::memory::data_type computed, DType storage, Activation activation) {
  const bool commutes = activation == Activation::kNone || activation == Activation::kRelu;
  return commutes && computed == OnednnType(storage) ? computed : dnnl::memory::data_type::f32;
}

std::vector<dnnl::memory::data_type> OperandTypes(const std::vector<DType>& operands) {
  const bool all_bf16 =
      std::all_of(operands.begin(), operands.end(), [](DType dtype) { return dtype == DType::kBF16; });
  if (all_bf16 && HasNativeBf16()) return {dnnl::memory::data_type::bf16, dnnl::memory::data_type::f32};
  return {dnnl::memory::data_type::f32};
}

absl::StatusOr<std::unique_ptr<Kernel>> FirstFastCandidate(const KernelSpec& spec,
                                                           const std::vector<Candidate>& candidates,
                                                           const std::function<Attempt(const Candidate&)>& attempt) {
  std::vector<std::string> offered;
  for (const Candidate& candidate : candidates) {
    try {
      const Attempt result = attempt(candidate);
      const bool reference = absl::StrContains(result.implementation, "ref");
      if (!reference && result.defect.empty()) return MakePrimitiveKernel(result.staged);
      offered.push_back(absl::StrCat(result.implementation, result.defect.empty() ? "" : ": ", result.defect));
    } catch (const dnnl::error& error) {
      offered.emplace_back(error.message);
    }
  }
  const auto types = [](const std::vector<TensorSpec>& specs) {
    return absl::StrJoin(specs, ", ",
                         [](std::string* text, const TensorSpec& tensor) { text->append(tensor.ToString()); });
  };
  return absl::InternalError(absl::StrCat("oneDNN has no implementation but its reference loop for mpc.", spec.name,
                                          " (", types(spec.inputs), ") -> (", types(spec.outputs), "); it offered ",
                                          absl::StrJoin(offered, "; ")));
}

}  // namespace mpc::cpu
