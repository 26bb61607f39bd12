#include "frontend/train/hook_writes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mpc::internal {

HookWrites::Versions HookWrites::VersionsOf(const std::vector<Parameter>& state) {
  Versions versions;
  for (const Parameter& each : state) versions.emplace_back(each.entry(), each.entry()->version());
  return versions;
}

absl::Status HookWrites::Share(RunContext& context, const std::function<void()>& hook) {
  if (processes_.size() == 1) {
    hook();
    return context.failure();
  }
  const Versions before = VersionsOf(processes_.is_first() ? state_() : std::vector<Parameter>());
  hook();
  if (!context.failure().ok()) return context.failure();
  const std::vector<Parameter> state = state_();
  std::vector<std::string> written;
  for (const Parameter& each : state) {
    if (!processes_.is_first()) break;
    const std::pair now(each.entry(), each.entry()->version());
    if (std::find(before.begin(), before.end(), now) == before.end()) written.push_back(each.name());
  }
  if (absl::Status sent = processes_.SendWritten(state, written); !sent.ok()) return sent;
  if (absl::Status sent = processes_.SendLearningRates(*context.trained()); !sent.ok()) return sent;
  between_steps_ = VersionsOf(state);
  return absl::OkStatus();
}

absl::Status HookWrites::Refuse(const char* name, const std::function<void()>& hook) {
  if (processes_.size() == 1 || !processes_.is_first() || !first_alone_) {
    hook();
    return absl::OkStatus();
  }
  for (auto& [entry, version] : between_steps_) version = entry->version();
  hook();
  for (const auto& [entry, version] : between_steps_) {
    if (entry->version() == version) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "a callback has written ", entry->name(), " in ", name, " in rank 0 alone, where the steps of other ranks do ",
        "not see it; accepted are writes in OnEpochBegin, OnEvalBegin, OnEvalEnd, OnEpochEnd and OnTrainEnd, and ",
        "those of callbacks that all run on every rank (Callback::RunsOnEveryRank)"));
  }
  return absl::OkStatus();
}

}  // namespace mpc::internal
