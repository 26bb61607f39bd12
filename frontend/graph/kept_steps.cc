#include "frontend/graph/kept_steps.h"

#include <utility>

namespace mpc::internal {

CompiledStep* KeptSteps::Find(const std::string& asked) const {
  if (const auto kept = steps_.find(asked); kept != steps_.end()) {
    return kept->second->facts().PartsAreThere() ? kept->second.get() : nullptr;
  }
  const auto traced = keys_after_tracing_.find(asked);
  if (traced == keys_after_tracing_.end()) return nullptr;
  const auto kept = steps_.find(traced->second);
  return kept != steps_.end() && kept->second->is_current() ? kept->second.get() : nullptr;
}

CompiledStep& KeptSteps::Keep(const std::string& asked, const std::string& traced, Owned step, Owned* earlier) {
  if (traced != asked) keys_after_tracing_[asked] = traced;
  Owned& place = steps_[traced];
  std::swap(place, step);
  if (earlier != nullptr) *earlier = std::move(step);
  return *place;
}

std::vector<KeptSteps::Owned> KeptSteps::TakeReplaced() {
  std::vector<Owned> replaced;
  for (auto& [key, step] : steps_) {
    if (!step->is_current()) replaced.push_back(std::move(step));
  }
  std::erase_if(steps_, [](const auto& kept) { return kept.second == nullptr; });
  std::erase_if(keys_after_tracing_, [this](const auto& keys) { return !steps_.contains(keys.second); });
  return replaced;
}

void KeptSteps::Forget(const CompiledStep* step) {
  std::erase_if(steps_, [step](const auto& kept) { return kept.second.get() == step; });
}

std::vector<CompiledStep*> KeptSteps::all() const {
  std::vector<CompiledStep*> steps;
  for (const auto& [key, step] : steps_) steps.push_back(step.get());
  return steps;
}

}  // namespace mpc::internal
