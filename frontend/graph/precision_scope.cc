#include "frontend/graph/precision_scope.h"

#include <algorithm>

namespace mpc::internal {
namespace {

thread_local int untraced_scopes = 0;

bool Lists(const std::vector<std::string>& operations, std::string_view op) {
  return std::find(operations.begin(), operations.end(), op) != operations.end();
}

}  // namespace

void PrecisionScope::Apply(std::string_view op, compiler::Scope& scope) const {
  scope.level = level;
  scope.low = low;
  if (!scope.pin.has_value() && Lists(f32_operations, op)) scope.pin = DType::kF32;
  if (!scope.pin.has_value() && Lists(low_operations, op)) scope.pin = low;
}

void CountUntracedScope(int change) { untraced_scopes += change; }

absl::Status CheckNoUntracedScope() {
  if (untraced_scopes == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "amp::AutoCast was opened outside tracing, where no operation can take its level; open it inside the Construct "
      "of a network or of a training step");
}

}  // namespace mpc::internal
