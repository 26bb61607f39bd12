#include "frontend/graph/step_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::internal {

void StepReport::Record(std::string_view name, const Tensor& value) {
  if (graph_.failed()) return;
  if (!graph_.in_step()) {
    graph_.Fail(
        absl::StrCat("the record '", std::string(name), "' belongs into the step, not into a differentiated function"));
    return;
  }
  const Tensor imported = graph_.Import(value);
  for (auto& [known, current] : records_) {
    if (known == name) {
      current = imported;
      return;
    }
  }
  records_.emplace_back(name, imported);
}

bool StepReport::wants(std::string_view record) const {
  return std::find(requested_.begin(), requested_.end(), record) != requested_.end();
}

void StepReport::AddTap(const std::string& name, const Tensor& value) {
  std::string unique = name;
  const auto taken = [&](const auto& tap) { return tap.first == unique; };
  for (int use = 2; std::any_of(taps_.begin(), taps_.end(), taken); ++use) unique = absl::StrCat(name, "#", use);
  taps_.emplace_back(unique, value);
}

void StepReport::ExpectLabels(const Tensor& labels, std::int64_t classes, std::optional<std::int64_t> ignored) {
  if (graph_.failed() || !labels.symbolic()) return;
  if (labels.dtype() != DType::kI32 && labels.dtype() != DType::kI64) return;
  if (const std::optional<std::size_t> input = graph_.FindInput(labels)) {
    labels_.push_back({*input, classes, ignored});
  }
}

void StepReport::AppendTo(std::vector<compiler::NamedResult>& results) const {
  for (const auto& [name, value] : records_) results.push_back({value.node()->value, name, Role::kRecord});
  for (const auto& [name, value] : taps_) results.push_back({value.node()->value, name, Role::kRecord});
}

}  // namespace mpc::internal
