// pack_weight: a weight in the layout that oneDNN multiplies it in, converted on the way where it is stored in another
// type.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/onednn_calls.h"
#include "kernels/cpu/onednn_layout.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

class PackWeightKernel final : public Kernel {
 public:
  explicit PackWeightKernel(const Port& port) : change_(port, workspace_) {}

  std::size_t workspace_bytes() const override { return workspace_.size(); }
  void Run(const KernelOperands& operands) override {
    change_.Execute(operands.inputs[0], operands.outputs[0], static_cast<std::byte*>(operands.workspace));
  }

 private:
  WorkspaceLayout workspace_;
  LayoutChange change_;
};

/// True if elements at `strides` fill `elements` places, each one once.
bool IsPermutation(const dnnl::memory::dims& extents, const dnnl::memory::dims& strides, std::int64_t elements) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] != 1) dimensions.emplace_back(strides[i], extents[i]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  std::int64_t next = 1;
  for (const auto& [stride, extent] : dimensions) {
    if (stride != next || extent < 1) return false;
    next *= extent;
  }
  return next == elements;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePackWeight(const KernelSpec& spec) {
  const dnnl::memory::dims extents = spec.attributes.GetInts("extents"), strides = spec.attributes.GetInts("strides");
  const auto invalid = [&](const std::string& wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pack_weight takes ", wanted, "; got ", spec.inputs.empty() ? "nothing" : spec.inputs[0].ToString(), " to ",
        spec.outputs.empty() ? "nothing" : spec.outputs[0].ToString(), " with extents [", absl::StrJoin(extents, ","),
        "] at strides [", absl::StrJoin(strides, ","), "]"));
  };
  if (spec.inputs.size() != 1 || spec.outputs.size() != 1) return invalid("one weight to one packed weight");
  const TensorSpec &weight = spec.inputs[0], &packed = spec.outputs[0];
  if (!IsFloating(weight.dtype)) return UnsupportedTypes(spec);
  const bool is_bf16 = packed.dtype == DType::kBF16;
  const bool is_low =
      packed.dtype == weight.dtype && (is_bf16 || (packed.dtype == DType::kF16 && IsNative(DType::kF16)));
  if (packed.dtype != DType::kF32 && !is_low) return UnsupportedTypes(spec);
  if (extents.size() != strides.size() || !IsPermutation(extents, strides, weight.num_elements())) {
    return invalid("extents and strides of all elements of the weight, one of each for a dimension");
  }
  const dnnl::memory::data_type type = OnednnType(packed.dtype);
  const absl::StatusOr<dnnl::memory::desc> layout = NamedLayout(extents, type, spec.attributes.GetString("layout"));
  if (!layout.ok()) return layout.status();
  if (packed.shape.size() != 1 || packed.bytes() != layout->get_size()) {
    return invalid(absl::StrCat("a flat tensor of ", layout->get_size(), " bytes for the packed weight"));
  }
  try {
    return std::make_unique<PackWeightKernel>(Port{0, weight.dtype, {extents, type, strides}, *layout});
  } catch (const dnnl::error& error) {
    return absl::FailedPreconditionError(absl::StrCat("oneDNN packs no ", weight.ToString(), " as \"",
                                                      spec.attributes.GetString("layout"), "\": ", error.message));
  }
}

}  // namespace

void RegisterPackWeight(Registry& registry) { registry.Add("pack_weight", CreatePackWeight); }

}  // namespace mpc::cpu
