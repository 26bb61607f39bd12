#include "frontend/nn/clip.h"

#include "absl/strings/str_cat.h"
#include "frontend/graph/eager.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/tensor_node.h"
#include "frontend/graph/trace.h"
#include "frontend/nn/finite_numbers.h"

namespace mpc {
namespace {

Tensor EmitNorm(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes = {},
                std::optional<DType> dtype = std::nullopt) {
  if (auto* trace = internal::Trace::Current()) return trace->Emit(op, operands, attributes, dtype)[0];
  return internal::RunOperation(op, operands, attributes, dtype)[0];
}

// The norm that clips. It is f64, which the squares of finite gradients do not overflow.
Tensor WideNorm(const std::vector<Tensor>& gradients) { return EmitNorm("global_norm", gradients); }

// The norm that is returned. The user's own arithmetic takes it, so its rounding stays.
Tensor ReportedNorm(const Tensor& wide) { return EmitNorm("cast", {wide}, {{"user", true}}, DType::kF32); }

absl::Status CheckLimit(const char* field, const std::optional<double>& value) {
  return value.has_value() ? nn::internal::CheckPositive(field, *value) : absl::OkStatus();
}

}  // namespace

namespace ops {

Tensor GlobalNorm(const std::vector<Tensor>& gradients) { return ReportedNorm(WideNorm(gradients)); }

ClippedGradients ClipByGlobalNorm(const std::vector<Tensor>& gradients, double max_norm) {
  ClippedGradients clipped;
  if (const absl::Status status = CheckLimit("ClipByGlobalNorm: max_norm", max_norm); !status.ok()) {
    auto* trace = internal::Trace::Current();
    if (trace == nullptr)
      return {std::vector<Tensor>(gradients.size(), internal::MakeInvalid(status)), internal::MakeInvalid(status)};
    trace->Fail(std::string(status.message()));
  }
  const Tensor norm = WideNorm(gradients);
  clipped.norm = ReportedNorm(norm);
  for (const Tensor& gradient : gradients) {
    clipped.gradients.push_back(EmitNorm("clip_by_norm", {gradient, norm}, {{"max_norm", max_norm}}));
  }
  return clipped;
}

std::vector<Tensor> ClipByValue(const std::vector<Tensor>& gradients, double limit) {
  return ClipByValue(gradients, -limit, limit);
}

std::vector<Tensor> ClipByValue(const std::vector<Tensor>& gradients, double minimum, double maximum) {
  std::vector<Tensor> clipped;
  for (const Tensor& gradient : gradients) {
    clipped.push_back(clamp(gradient, minimum, maximum));
  }
  return clipped;
}

}  // namespace ops

namespace nn {

absl::Status GradientClip::Validate() const {
  absl::Status status = CheckLimit("clip_global_norm", global_norm);
  return status.ok() ? CheckLimit("clip_value", value) : status;
}

std::vector<Tensor> GradientClip::Apply(std::vector<Tensor> gradients) const {
  auto* trace = mpc::internal::Trace::Current();
  if (trace == nullptr || gradients.empty()) return gradients;
  if (trace->report().wants("gradient_norm")) trace->report().Record("gradient_norm", ops::GlobalNorm(gradients));
  if (value.has_value()) gradients = ops::ClipByValue(gradients, *value);
  if (global_norm.has_value()) gradients = ops::ClipByGlobalNorm(gradients, *global_norm).gradients;
  return gradients;
}

}  // namespace nn
}  // namespace mpc
