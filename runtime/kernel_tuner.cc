#include "runtime/kernel_tuner.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace mpc::runtime {
namespace {

constexpr int kRounds = 3;
constexpr double kRoundMicroseconds = 2000;
constexpr int kMostRunsARound = 20;
constexpr std::chrono::seconds kBetweenWrites{5};

}  // namespace

absl::StatusOr<double> TimeOfOneRun(const std::function<absl::StatusOr<double>(int runs)>& run) {
  // The first run loads code. The second tells how many runs make a round.
  absl::StatusOr<double> once = run(1);
  if (once.ok()) once = run(1);
  if (!once.ok()) return once;
  const int runs =
      static_cast<int>(std::clamp(kRoundMicroseconds / std::max(*once, 1.0), 1.0, double{kMostRunsARound}));
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    absl::StatusOr<double> time = run(runs);
    if (!time.ok()) return time;
    best = std::min(best, *time / runs);
  }
  return best;
}

MeasuredChoice FastestChoice(absl::Span<const std::string> choices, const ChoiceTimer& time,
                             std::string* first_failure) {
  std::vector<std::pair<double, std::string>> timed;
  bool has_failed = false;
  for (const std::string& choice : choices) {
    if (const absl::StatusOr<double> microseconds = time(choice); microseconds.ok()) {
      timed.emplace_back(*microseconds, choice);
    } else if (first_failure != nullptr && !std::exchange(has_failed, true)) {
      *first_failure = absl::StrCat(choice, ": ", microseconds.status().message());
    }
  }
  if (timed.empty()) return {};
  std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto write = [](std::string* text, const std::pair<double, std::string>& each) {
    absl::StrAppendFormat(text, "%s %.1f us", each.second, each.first);
  };
  return {timed.front().second, absl::StrJoin(timed, ", ", write)};
}

absl::StatusOr<MeasuredChoice> KernelTuner::Choose(const std::string& key, absl::Span<const std::string> candidates,
                                                   const PlanOptions& options, const ChoiceTimer& time) {
  if (candidates.size() < 2) return MeasuredChoice();
  const std::lock_guard<std::mutex> lock(mutex_);
  ChoiceCache& cache = CacheOf(options);
  // A choice that the libraries no longer offer is no choice.
  MeasuredChoice choice = cache.Find(key);
  if (std::find(candidates.begin(), candidates.end(), choice.choice) != candidates.end()) return choice;
  if (!options.tune) return MeasuredChoice();
  std::string first_failure;
  choice = FastestChoice(candidates, time, &first_failure);
  if (choice.choice.empty()) {
    if (warned_.insert(key).second) {
      std::cerr << "warning: none of the " << candidates.size() << " kernels of " << key
                << " could be timed, so that heuristics choose. The first, " << first_failure << "\n";
    }
    return choice;
  }
  cache.Set(key, choice);
  if (absl::Status status = cache.WriteEvery(kBetweenWrites); !status.ok()) return status;
  return choice;
}

absl::Status KernelTuner::WriteCache(const PlanOptions& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return CacheOf(options).Write();
}

}  // namespace mpc::runtime
