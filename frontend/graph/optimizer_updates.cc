#include "frontend/graph/optimizer_updates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mpc::internal {
namespace {

bool Holds(const std::vector<Parameter>& list, const Parameter& parameter) {
  return std::find(list.begin(), list.end(), parameter) != list.end();
}

}  // namespace

void OptimizerUpdates::AddDifferentiated(absl::Span<const Parameter> parameters) {
  differentiated_.insert(differentiated_.end(), parameters.begin(), parameters.end());
}

void OptimizerUpdates::AddGradients(absl::Span<const Tensor> gradients) {
  gradients_.insert(gradients_.end(), gradients.begin(), gradients.end());
}

bool OptimizerUpdates::Claim(const Parameter& parameter) {
  if (Holds(claimed_, parameter)) return false;
  claimed_.push_back(parameter);
  return true;
}

bool OptimizerUpdates::IsUnused(const Parameter& parameter) const {
  return Holds(differentiated_, parameter) && !Holds(read_, parameter);
}

absl::Status OptimizerUpdates::CheckAllTaken() const {
  for (const Parameter& parameter : differentiated_) {
    if (Holds(claimed_, parameter) || !Holds(read_, parameter)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the step computes the gradient of '", parameter.name(),
                     "', and no optimizer updates it; give it to one, or freeze it with SetRequiresGrad(path, false)"));
  }
  return absl::OkStatus();
}

}  // namespace mpc::internal
