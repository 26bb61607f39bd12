#include "frontend/train/update_losses.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/dialect/record_names.h"
#include "frontend/graph/pass_state.h"

namespace mpc::internal {
namespace {

constexpr std::string_view kFirstBad = "first_bad";

/// What an accumulator keeps of a loss, `name` being what stands behind "accumulator.": "first_bad0". Empty where it
/// keeps something else, such as a gradient.
std::string KeptOfLoss(std::string_view name) {
  for (const std::string_view what : {kFirstBad, std::string_view(kLossWeight)}) {
    if (!name.starts_with(what)) continue;
    const std::string_view loss = name.substr(what.size());
    const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
    if (std::all_of(loss.begin(), loss.end(), is_digit)) return std::string(name);
  }
  return "";
}

/// What a Program keeps of its losses; empty where it has none. One that has losses keeps their gradients, as "".
std::set<std::string> KeptOfLosses(const runtime::Program& program) {
  constexpr std::string_view kPrefix = "accumulator.";
  std::set<std::string> kept;
  for (const runtime::StateBinding& binding : program.state) {
    std::string_view name = binding.name;
    if (binding.role != Role::kAccumulator || !name.starts_with(kPrefix) || name == kMicroStep) continue;
    name.remove_prefix(kPrefix.size());
    // Statistics move without a loss.
    if (!name.starts_with("old.") && !name.starts_with("batches.")) kept.insert(KeptOfLoss(name));
  }
  return kept;
}

/// "2 losses (first_bad0, first_bad1)". Without a scaler the number of losses is not known.
std::string Describe(std::set<std::string> kept) {
  kept.erase("");
  const auto losses =
      std::count_if(kept.begin(), kept.end(), [](const std::string& each) { return each.starts_with(kFirstBad); });
  if (kept.empty()) return "losses that count all elements";
  const std::string names = absl::StrCat(" (", absl::StrJoin(kept, ", "), ")");
  if (losses == 0) return absl::StrCat("losses that leave elements out", names);
  return absl::StrCat(losses, losses == 1 ? " loss" : " losses", names);
}

/// A batch in which every Parameter is frozen has the losses of the others, and no gradient.
bool AreOfSameLosses(std::set<std::string> one, std::set<std::string> other) {
  one.erase("");
  other.erase("");
  return one == other;
}

}  // namespace

absl::Status UpdateLosses::Next(const runtime::Program& program, std::int64_t micro_step, std::int64_t count) {
  std::set<std::string> kept = KeptOfLosses(program);
  if (micro_step == 0) kept_.clear();
  if (!kept.empty() && !kept_.empty() && !AreOfSameLosses(kept, kept_)) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", micro_step + 1, " of ", count, " of the step has ", Describe(kept),
                     ", and those before it have ", Describe(kept_), "; ", "what was found in the losses of a step ",
                     "cannot go on in others: let the step have the same losses on all batches that it accumulates"));
  }
  if (kept_.empty()) kept_ = std::move(kept);
  return absl::OkStatus();
}

}  // namespace mpc::internal
