#include "frontend/train/update_losses.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/dialect/record_names.h"

namespace mpc::internal {
namespace {

constexpr std::string_view kFirstBad = "first_bad";

/// What the accumulator `name` keeps of a loss, "first_bad0"; empty where it keeps something else.
std::string KeptOfLoss(std::string_view name) {
  constexpr std::string_view kPrefix = "accumulator.";
  if (!name.starts_with(kPrefix)) return "";
  name.remove_prefix(kPrefix.size());
  for (const std::string_view what : {kFirstBad, std::string_view(kLossWeight)}) {
    if (!name.starts_with(what)) continue;
    const std::string_view loss = name.substr(what.size());
    const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
    if (std::all_of(loss.begin(), loss.end(), is_digit)) return std::string(name);
  }
  return "";
}

/// "2 losses (first_bad0, first_bad1)".
std::string Describe(const std::set<std::string>& kept) {
  const auto losses =
      std::count_if(kept.begin(), kept.end(), [](const std::string& each) { return each.starts_with(kFirstBad); });
  return absl::StrCat(losses, losses == 1 ? " loss (" : " losses (", absl::StrJoin(kept, ", "), ")");
}

}  // namespace

absl::Status UpdateLosses::Next(const runtime::Program& program, std::int64_t micro_step, std::int64_t count) {
  std::set<std::string> kept;
  for (const runtime::StateBinding& binding : program.state) {
    std::string name = binding.role == Role::kAccumulator ? KeptOfLoss(binding.name) : std::string();
    if (!name.empty()) kept.insert(std::move(name));
  }
  if (micro_step == 0) kept_.clear();
  if (!kept.empty() && !kept_.empty() && kept != kept_) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", micro_step + 1, " of ", count, " of the step has ", Describe(kept),
                     ", and those before it have ", Describe(kept_), "; ", "what was found in the losses of a step ",
                     "cannot go on in others: let the step have the same losses on all batches that it accumulates"));
  }
  if (kept_.empty()) kept_ = std::move(kept);
  return absl::OkStatus();
}

}  // namespace mpc::internal
