#include "frontend/train/process_training.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "frontend/distributed/activity.h"
#include "frontend/distributed/distributed.h"
#include "frontend/distributed/exchange.h"

namespace mpc::internal {
namespace {

/// What a process wishes at the end of a step; the number of a signal is added to kInterrupt.
constexpr std::int64_t kStop = 1;
constexpr std::int64_t kInterrupt = 2;

// What ranks gather bytes for.
constexpr std::string_view kSettings = "the settings of Train or Fit";
constexpr std::string_view kEvaluation = "the end of an evaluation";
constexpr std::string_view kMetrics = "the metrics of an evaluation";
constexpr std::string_view kWrites = "what callbacks have written";

constexpr char kAfterRun[] = "what follows Train";

/// A line of settings: "NAME: VALUE".
using Setting = std::pair<std::string, std::string>;

/// Names that occur twice are told apart by their place among equal ones.
std::vector<Setting> ParseSettings(const std::string& text) {
  std::vector<Setting> settings;
  std::map<std::string, int> counts;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    Setting setting = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (const int before = counts[setting.first]++; before > 0) absl::StrAppend(&setting.first, " #", before + 1);
    settings.push_back(std::move(setting));
  }
  return settings;
}

const std::string* FindSetting(const std::vector<Setting>& settings, const std::string& name) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const auto& each) { return each.first == name; });
  return found == settings.end() ? nullptr : &found->second;
}

/// How the first setting differs that does: in the order of `first`, then those that `other` alone has. Empty: none.
std::string FirstDifference(const std::vector<Setting>& first, const std::vector<Setting>& other, std::size_t rank) {
  for (const auto& [name, value] : first) {
    const std::string* const of_other = FindSetting(other, name);
    if (of_other == nullptr) return absl::StrCat(name, ": rank 0 has ", value, ", rank ", rank, " has none");
    if (*of_other == value) continue;
    return absl::StrCat("rank 0 has \"", name, ": ", value, "\", rank ", rank, " has \"", name, ": ", *of_other, "\"");
  }
  for (const auto& [name, value] : other) {
    if (FindSetting(first, name) != nullptr) continue;
    return absl::StrCat(name, ": rank 0 has none, rank ", rank, " has ", value);
  }
  return "";
}

std::atomic<std::int64_t> runs_begun{0};

}  // namespace

std::int64_t ProcessTraining::runs() { return runs_begun; }

absl::StatusOr<std::vector<std::string>> ProcessTraining::Gather(std::string_view purpose,
                                                                 const std::string& bytes) const {
  absl::StatusOr<std::vector<std::string>> all =
      distributed::GatherBytes(*processes_, absl::StrCat(std::string(purpose), "\n", bytes));
  if (!all.ok()) return all;
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    std::string& each = (*all)[rank];
    const std::string other = each.substr(0, each.find('\n'));
    if (other != purpose) {
      const bool is_known = other == kSettings || other == kEvaluation || other == kMetrics || other == kWrites;
      return absl::FailedPreconditionError(absl::StrCat("processes that train together do different things: rank ",
                                                        processes_->rank(), " sends ", std::string(purpose), ", rank ",
                                                        rank, " sends ", is_known ? other : "something else",
                                                        "; all of them call Train, Fit and Eval in one order"));
    }
    each.erase(0, purpose.size() + 1);
  }
  return all;
}

ProcessTraining ProcessTraining::FromContext() {
  const AutoParallelOptions& options = GetAutoParallelContext();
  if (options.parallel_mode != ParallelMode::kDataParallel) return ProcessTraining(nullptr);
  return ProcessTraining(distributed::internal::GetTrainingCommunicator(), options);
}

std::vector<std::string> ProcessTraining::Settings() const {
  return {absl::StrCat("bucket_mib: ", options_.bucket_mib),
          absl::StrCat("gradients_mean: ", options_.gradients_mean ? "true" : "false"),
          absl::StrCat("communication_dtype: ", std::string(DTypeName(options_.communication_dtype))),
          absl::StrCat("reduction: ", options_.reduction == GradientReduction::kFast ? "kFast" : "kOrdered"),
          absl::StrCat("loss_weight: ", options_.loss_weight == LossWeight::kElements ? "kElements" : "kRows")};
}

absl::Status ProcessTraining::Run(const std::function<absl::Status()>& run) const {
  if (size() == 1) return run();
  ++runs_begun;
  if (absl::Status status = distributed::internal::GroupStatus(); !status.ok()) return status;
  try {
    const absl::Status status = distributed::internal::TellOthers(run());
    NoteActivity(kAfterRun);
    return status;
  } catch (const std::exception& thrown) {
    distributed::internal::TellOthers(absl::InternalError(absl::StrCat("an exception: ", thrown.what()))).IgnoreError();
    throw;
  } catch (...) {
    distributed::internal::TellOthers(absl::InternalError("an exception")).IgnoreError();
    throw;
  }
}

void ProcessTraining::NoteStep(std::int64_t step) const {
  if (size() > 1) distributed::internal::NotePlace(step, "train_step");
}

void ProcessTraining::NoteActivity(std::string_view what) const {
  if (size() > 1) distributed::internal::NoteActivity(what);
}

absl::Status ProcessTraining::SendText(std::string& text) const {
  if (size() == 1) return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> all = Gather(kSettings, is_first() ? text : "");
  if (all.ok()) text = std::move(all->front());
  return all.status();
}

absl::Status ProcessTraining::SendNumber(std::int64_t& number) const {
  return size() == 1 ? absl::OkStatus() : processes_->Broadcast(&number, sizeof(number), 0);
}

absl::Status ProcessTraining::CompareSettings(const std::vector<std::string>& settings) const {
  if (size() == 1) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> all = Gather(kSettings, absl::StrJoin(settings, "\n"));
  if (!all.ok()) return all.status();
  const std::vector<Setting> first = ParseSettings(all->front());
  for (std::size_t rank = 1; rank < all->size(); ++rank) {
    if ((*all)[rank] == all->front()) continue;
    const std::string difference = FirstDifference(first, ParseSettings((*all)[rank]), rank);
    if (difference.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("processes that train together differ: ", difference));
  }
  return absl::OkStatus();
}

absl::Status ProcessTraining::SendState(const std::vector<Parameter>& state) const {
  if (size() == 1) return absl::OkStatus();
  for (Parameter entry : state) {
    const absl::StatusOr<Tensor> value = entry.Value();
    if (!value.ok()) return value.status();
    std::vector<std::uint8_t> bytes(value->bytes().begin(), value->bytes().end());
    if (absl::Status status = processes_->Broadcast(bytes.data(), bytes.size(), 0); !status.ok()) return status;
    if (is_first()) continue;
    const Tensor sent = Tensor::FromBytes(value->spec(), bytes.data(), bytes.size());
    if (absl::Status status = entry.SetData(sent); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ProcessTraining::SendWritten(const std::vector<Parameter>& state,
                                          const std::vector<std::string>& written) const {
  if (size() == 1) return absl::OkStatus();
  std::string names = absl::StrJoin(written, "\n");
  if (absl::Status sent = distributed::BroadcastBytes(*processes_, names); !sent.ok()) return sent;
  std::vector<Parameter> entries;
  for (const absl::string_view name : absl::StrSplit(names, '\n', absl::SkipEmpty())) {
    const auto found =
        std::find_if(state.begin(), state.end(), [&](const Parameter& entry) { return entry.name() == name; });
    if (found == state.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("a callback of rank 0 has written ", name, ", and rank ", rank(), " has no such state"));
    }
    entries.push_back(*found);
  }
  return SendState(entries);
}

absl::Status ProcessTraining::NameOtherWrites(const std::string& own) const {
  const absl::StatusOr<std::vector<std::string>> all = Gather(kWrites, own);
  if (!all.ok()) return all.status();
  const auto other = std::find_if(all->begin(), all->end(), [&](const auto& each) { return each != all->front(); });
  const auto text = [](const std::string& written) { return written.empty() ? "nothing" : written; };
  return absl::FailedPreconditionError(absl::StrCat(
      "callbacks have written other state in OnStepBegin or OnStepEnd of one rank than of another, so that their "
      "steps ",
      "differ: rank 0 ", text(all->front()), ", rank ", other - all->begin(), " ",
      text(other == all->end() ? std::string() : *other), "; accepted are writes in OnEpochBegin, OnEvalBegin, ",
      "OnEvalEnd, OnEpochEnd and OnTrainEnd, and equal ones of callbacks that run on every rank ",
      "(Callback::RunsOnEveryRank)"));
}

absl::Status ProcessTraining::AgreeOnStop(RunContext& context, const WrittenByHooks& written) const {
  if (size() == 1) return absl::OkStatus();
  // Of two signals the one with the larger number counts.
  const std::int64_t own = context.interrupted() ? kInterrupt + context.signal() : context.stop_requested() ? kStop : 0;
  // Of the fingerprints the largest and the smallest.
  std::array<std::int64_t, 3> numbers = {own, written.fingerprint, -written.fingerprint};
  const absl::Status agreed = distributed::AgreeOnMaxima(*processes_, absl::MakeSpan(numbers));
  if (!agreed.ok()) return agreed;
  const std::int64_t wish = numbers[0];
  if (wish >= kStop) context.RequestStop();
  if (wish >= kInterrupt) context.Interrupt(static_cast<int>(wish - kInterrupt));
  if (numbers[1] != -numbers[2]) return NameOtherWrites(written.text);
  return absl::OkStatus();
}

absl::Status ProcessTraining::AgreeOnEvaluation(const absl::Status& own) const {
  if (size() == 1) return own;
  const std::string text = own.ok() ? "" : absl::StrCat(static_cast<int>(own.code()), " ", std::string(own.message()));
  const absl::StatusOr<std::vector<std::string>> all = Gather(kEvaluation, text);
  if (!own.ok()) return own;
  if (!all.ok()) return all.status();
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    if ((*all)[rank].empty()) continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit((*all)[rank], absl::MaxSplits(' ', 1));
    int code = 0;
    if (!absl::SimpleAtoi(parts.first, &code)) code = static_cast<int>(absl::StatusCode::kInternal);
    return absl::Status(static_cast<absl::StatusCode>(code),
                        absl::StrCat("rank ", rank, " could not evaluate: ", parts.second));
  }
  return absl::OkStatus();
}

absl::Status ProcessTraining::MergeMetrics(const MetricList& metrics) const {
  if (size() == 1) return absl::OkStatus();
  const absl::StatusOr<std::string> own = metrics.SaveState();
  if (!own.ok()) return own.status();
  const absl::StatusOr<std::vector<std::string>> all = Gather(kMetrics, *own);
  if (!all.ok()) return all.status();
  metrics.Clear();
  for (const std::string& state : *all) {
    if (absl::Status status = metrics.MergeState(state); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ProcessTraining::SendLearningRates(TrainedModel& model) const {
  if (size() == 1) return absl::OkStatus();
  const absl::StatusOr<std::vector<TrainedModel::RateGroup>> groups = model.LearningRates();
  if (!groups.ok()) return groups.status();
  std::vector<double> rates;
  for (const TrainedModel::RateGroup& group : *groups) rates.push_back(group.learning_rate.value_or(0));
  absl::Status status = processes_->Broadcast(rates.data(), rates.size() * sizeof(double), 0);
  for (std::size_t i = 0; status.ok() && i < rates.size() && !is_first(); ++i) {
    if ((*groups)[i].learning_rate.has_value()) status = model.SetLearningRate(i, rates[i]);
  }
  return status;
}

}  // namespace mpc::internal
