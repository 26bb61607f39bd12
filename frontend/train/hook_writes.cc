#include "frontend/train/hook_writes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/checksum.h"

namespace mpc::internal {
namespace {

constexpr char kBetweenSteps[] = "between steps";
constexpr char kStep[] = "train_step";

}  // namespace

HookWrites::Versions HookWrites::VersionsOf(const std::vector<Parameter>& state) {
  Versions versions;
  for (const Parameter& each : state) versions.emplace_back(each.entry(), each.entry()->version());
  return versions;
}

void HookWrites::NoteHook(const char* name) const { processes_.NoteActivity(absl::StrCat(name, " of a callback")); }

absl::Status HookWrites::Share(const char* name, RunContext& context, const std::function<void()>& hook) {
  if (processes_.size() == 1) {
    hook();
    return context.failure();
  }
  const Versions before = VersionsOf(processes_.is_first() ? state_() : std::vector<Parameter>());
  NoteHook(name);
  hook();
  processes_.NoteActivity(kBetweenSteps);
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

absl::Status HookWrites::NoteWritten(const char* name, const runtime::StateEntry& entry) {
  for (const Parameter& each : state_()) {
    if (each.entry().get() != &entry) continue;
    const absl::StatusOr<Tensor> value = each.Value();
    if (!value.ok()) return value.status();
    runtime::Checksum checksum;
    checksum.Add(value->bytes().data(), value->bytes().size());
    absl::StrAppend(&written_.text, written_.text.empty() ? "" : ", ", entry.name(), " in ", name, " (hash ",
                    checksum.Text(), ")");
  }
  runtime::Checksum all;
  all.Add(written_.text);
  written_.fingerprint = std::int64_t{all.value()} + 1;
  return absl::OkStatus();
}

absl::Status HookWrites::Refuse(const char* name, const std::function<void()>& hook) {
  // Ranks after the first may have no callbacks.
  if (processes_.size() == 1 || (first_alone_ && !processes_.is_first())) {
    hook();
    return absl::OkStatus();
  }
  for (auto& [entry, version] : between_steps_) version = entry->version();
  NoteHook(name);
  hook();
  processes_.NoteActivity(kStep);
  for (const auto& [entry, version] : between_steps_) {
    if (entry->version() == version) continue;
    if (!first_alone_) {
      if (absl::Status noted = NoteWritten(name, *entry); !noted.ok()) return noted;
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "a callback has written ", entry->name(), " in ", name, " in rank 0 alone, where the steps of other ranks do ",
        "not see it; accepted are writes in OnEpochBegin, OnEvalBegin, OnEvalEnd, OnEpochEnd and OnTrainEnd, and ",
        "those of callbacks that all run on every rank (Callback::RunsOnEveryRank)"));
  }
  return absl::OkStatus();
}

}  // namespace mpc::internal
