#include "frontend/train/monitor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace mpc::internal {
namespace {

constexpr char kTrainingLoss[] = "loss";
constexpr char kEvalPrefix[] = "eval_";
constexpr char kBest[] = "best";

/// Quantities of which less is better at "auto", whatever their metrics say: MindSpore's list.
constexpr std::array<std::string_view, 7> kSmallerIsBetter = {
    "hausdorff_distance", "mae", "mse", "loss", "perplexity", "mean_surface_distance", "root_mean_square_distance"};

/// Whether the list has a quantity.
bool IsListed(std::string_view name) {
  const std::string_view metric = name.substr(name.starts_with(kEvalPrefix) ? sizeof(kEvalPrefix) - 1 : 0);
  return std::find(kSmallerIsBetter.begin(), kSmallerIsBetter.end(), metric) != kSmallerIsBetter.end();
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Monitor::Monitor(MonitorOptions options) : options_(std::move(options)) {}

std::string Monitor::ResultName(const RunContext& context) const {
  // A metric may go by its own name, as MindSpore's do.
  return Contains(context.eval_names(), options_.monitor) ? options_.monitor : kEvalPrefix + options_.monitor;
}

absl::Status Monitor::Begin(const RunContext& context) {
  best_.reset();
  larger_is_better_ = options_.mode == "auto"
                          ? !IsListed(options_.monitor) && !Contains(context.smaller_is_better(), ResultName(context))
                          : options_.mode == "max";
  if (options_.mode != "auto" && options_.mode != "min" && options_.mode != "max") {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.owner, ": mode must be \"auto\", \"min\" or \"max\", got \"", options_.mode, "\""));
  }
  if (!std::isfinite(options_.min_delta) || options_.min_delta < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.owner, ": min_delta must be finite and not negative, got ", options_.min_delta));
  }
  if (options_.monitor == kTrainingLoss || Contains(context.eval_names(), ResultName(context))) return absl::OkStatus();
  std::vector<std::string> known = {kTrainingLoss};
  known.insert(known.end(), context.eval_names().begin(), context.eval_names().end());
  return absl::InvalidArgumentError(absl::StrCat(
      options_.owner, ": there is no '", options_.monitor, "' to monitor; there is ", absl::StrJoin(known, ", "),
      context.eval_names().empty() ? "; Model::Fit evaluates, Model::Train does not" : ""));
}

std::optional<double> Monitor::ValueAt(const RunContext& context) const {
  if (!context.epoch_complete) return std::nullopt;
  if (options_.monitor == kTrainingLoss) return context.loss();
  const auto found = context.eval_results().find(ResultName(context));
  return found == context.eval_results().end() ? std::nullopt : std::optional<double>(found->second);
}

bool Monitor::IsBetter(double value, double than) const {
  return larger_is_better_ ? value > than + options_.min_delta : value < than - options_.min_delta;
}

std::string Monitor::StateName() const {
  return absl::StrCat(options_.owner, " of ", options_.monitor, " (", options_.mode, ")");
}

std::string Monitor::SaveState(std::initializer_list<std::pair<const char*, std::int64_t>> counts) const {
  std::vector<std::string> fields;
  // 17 digits hold every bit of an f64.
  if (best_.has_value()) fields.push_back(absl::StrFormat("%s=%.17g", kBest, *best_));
  for (const auto& [name, count] : counts) fields.push_back(absl::StrCat(name, "=", count));
  return absl::StrJoin(fields, " ");
}

absl::Status Monitor::LoadState(const std::string& state,
                                std::initializer_list<std::pair<const char*, std::int64_t*>> counts) {
  std::map<std::string, std::string> fields;
  for (const absl::string_view field : absl::StrSplit(state, ' ', absl::SkipEmpty())) {
    fields.insert(absl::StrSplit(field, absl::MaxSplits('=', 1)));
  }
  const auto best = fields.find(kBest);
  double value = 0;
  bool good = best == fields.end() || (absl::SimpleAtod(best->second, &value) && !std::isnan(value));
  std::vector<std::int64_t> read;
  for (const auto& [name, count] : counts) {
    good = good && absl::SimpleAtoi(fields[name], &read.emplace_back()) && read.back() >= 0;
  }
  if (!good) {
    const auto text = [](std::string* out, const auto& count) { absl::StrAppend(out, count.first, "=COUNT"); };
    return absl::InvalidArgumentError(absl::StrCat(options_.owner, ": the checkpoint keeps '", state,
                                                   "' of it; accepted is '", absl::StrJoin(counts, " ", text),
                                                   "', with ", kBest, "=NUMBER where there is a best value"));
  }
  best_ = best == fields.end() ? std::nullopt : std::optional(value);
  std::size_t at = 0;
  for (const auto& [name, count] : counts) *count = read[at++];
  return absl::OkStatus();
}

bool Monitor::Improves(double value) {
  if (std::isnan(value) || (best_.has_value() && !IsBetter(value, *best_))) return false;
  best_ = value;
  return true;
}

}  // namespace mpc::internal
