#include "kernels/weight_packing.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace mpc {
namespace {

constexpr char kLayout[] = "packed_layout";
constexpr char kShape[] = "packed_shape";
constexpr char kType[] = "packed_type";
constexpr char kChoice[] = "packed_for";

}  // namespace

Attributes PackingAttributes(const WeightPacking& packing) {
  return {{"layout", packing.layout}, {"extents", packing.extents}, {"strides", packing.strides}};
}

void MarkPacked(const WeightPacking& packing, const TensorSpec& weight, Attributes& attributes) {
  attributes.Set(kLayout, packing.layout);
  attributes.Set(kShape, std::vector<std::int64_t>(weight.shape));
  attributes.Set(kType, std::string(DTypeName(weight.dtype)));
  attributes.Set(kChoice, packing.choice);
}

void UnmarkPacked(Attributes& attributes) {
  for (const char* name : {kLayout, kShape, kType, kChoice}) attributes.Erase(name);
}

absl::Status ReadPacked(KernelSpec& spec) {
  if (spec.attributes.Find(kLayout) == nullptr) return absl::OkStatus();
  const std::string layout = spec.attributes.GetString(kLayout), type = spec.attributes.GetString(kType),
                    choice = spec.attributes.GetString(kChoice);
  const std::optional<DType> dtype = ParseDType(type);
  const bool is_complete = !layout.empty() && !choice.empty() && dtype && spec.attributes.Find(kShape) != nullptr;
  if (!is_complete || spec.inputs.size() <= kWeightOperand) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, " of ", spec.inputs.size(), " inputs says that its second is packed, with layout \"",
                     layout, "\", type \"", type, "\", for \"", choice, "\"; it needs all of them and a shape"));
  }
  spec.inputs[kWeightOperand] = {*dtype, spec.attributes.GetInts(kShape)};
  spec.weight_layout = layout;
  spec.weight_choice = choice;
  UnmarkPacked(spec.attributes);
  return absl::OkStatus();
}

}  // namespace mpc
