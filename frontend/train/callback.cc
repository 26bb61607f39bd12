#include "frontend/train/callback.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace mpc {
namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

std::ostream* OrStandardOutput(std::ostream* stream) { return stream != nullptr ? stream : &std::cout; }

}  // namespace

std::string FormatLoss(double loss) {
  const bool small = loss != 0 && std::fabs(loss) < 1e-3;
  return small ? absl::StrFormat("%.4g", loss) : absl::StrFormat("%.4f", loss);
}

CallbackList::CallbackList(std::initializer_list<CallbackRef> callbacks) {
  for (const CallbackRef& callback : callbacks) {
    if (callback.get() != nullptr) callbacks_.push_back(callback.get());
  }
}

CallbackList::CallbackList(std::vector<std::shared_ptr<Callback>> callbacks) : callbacks_(std::move(callbacks)) {
  std::erase(callbacks_, nullptr);
}

void CallbackList::OnTrainBegin(RunContext& context) const {
  for (const auto& callback : callbacks_) callback->OnTrainBegin(context);
}
void CallbackList::OnEpochBegin(RunContext& context) const {
  for (const auto& callback : callbacks_) callback->OnEpochBegin(context);
}
void CallbackList::OnStepBegin(RunContext& context) const {
  for (const auto& callback : callbacks_) callback->OnStepBegin(context);
}
void CallbackList::OnStepEnd(RunContext& context) const {
  for (const auto& callback : callbacks_) callback->OnStepEnd(context);
}
void CallbackList::OnEvalBegin(RunContext& context) const {
  for (const auto& callback : callbacks_) callback->OnEvalBegin(context);
}
void CallbackList::OnEvalEnd(RunContext& context) const {
  for (const auto& callback : callbacks_) callback->OnEvalEnd(context);
}
void CallbackList::OnEpochEnd(RunContext& context) const {
  VisitSaversLast([&](Callback& callback) { callback.OnEpochEnd(context); });
}
void CallbackList::OnTrainEnd(RunContext& context) const {
  VisitSaversLast([&](Callback& callback) { callback.OnTrainEnd(context); });
}

void CallbackList::VisitSaversLast(const std::function<void(Callback& callback)>& hook) const {
  for (const bool saves : {false, true}) {
    for (const auto& callback : callbacks_) {
      if (callback->SavesRun() == saves) hook(*callback);
    }
  }
}

void CallbackList::VisitStates(const std::function<void(const std::string& name, Callback& callback)>& visit) const {
  std::map<std::string, int> count;
  for (const auto& callback : callbacks_) {
    const std::string name = callback->StateName();
    if (name.empty()) continue;
    const int number = ++count[name];
    visit(number == 1 ? name : absl::StrCat(name, " #", number), *callback);
  }
}

std::map<std::string, std::string> CallbackList::SaveStates() const {
  std::map<std::string, std::string> states;
  VisitStates([&](const std::string& name, Callback& callback) { states[name] = callback.SaveState(); });
  return states;
}

absl::Status CallbackList::LoadStates(const std::map<std::string, std::string>& states) const {
  absl::Status status;
  VisitStates([&](const std::string& name, Callback& callback) {
    const auto found = states.find(name);
    if (found != states.end()) status.Update(callback.LoadState(found->second));
  });
  return status;
}

CallbackList CallbackList::OnRank(int rank) const {
  CallbackList chosen;
  for (const std::shared_ptr<Callback>& callback : callbacks_) {
    if (rank == 0 || callback->RunsOnEveryRank()) chosen.callbacks_.push_back(callback);
  }
  return chosen;
}

bool CallbackList::NeedsState(const RunContext& context) const {
  return std::any_of(callbacks_.begin(), callbacks_.end(),
                     [&](const auto& callback) { return callback->NeedsState(context); });
}

std::vector<Callback*> CallbackList::WantingTiming(const RunContext& context) const {
  std::vector<Callback*> wanting;
  for (const auto& callback : callbacks_) {
    if (callback->WantsTiming(context)) wanting.push_back(callback.get());
  }
  return wanting;
}

LossMonitor::LossMonitor(LossMonitorOptions options) : options_(options) {
  options_.stream = OrStandardOutput(options_.stream);
}

LossMonitor::LossMonitor(std::int64_t per_print_times)
    : LossMonitor(LossMonitorOptions{.per_print_times = per_print_times}) {}

void LossMonitor::OnEpochBegin(RunContext& context) { last_step_ = context.global_step; }

void LossMonitor::OnStepEnd(RunContext& context) {
  // A micro-step before the last of an update is no step.
  const bool stepped = context.global_step != last_step_;
  last_step_ = context.global_step;
  if (stepped && options_.per_print_times > 0 && last_step_ % options_.per_print_times == 0) Print(context);
}

void LossMonitor::OnEpochEnd(RunContext& context) {
  if (options_.per_print_times <= 0) Print(context);
  if (context.eval_results().empty()) return;
  std::vector<std::string> values;
  for (const auto& [name, value] : context.eval_results()) {
    values.push_back(absl::StrCat("'", name, "': ", FormatLoss(value)));
  }
  *options_.stream << "Eval result: epoch " << context.epoch << ", metrics: {" << absl::StrJoin(values, ", ") << "}"
                   << std::endl;
}

void LossMonitor::Print(const RunContext& context) const {
  *options_.stream << "epoch: " << context.epoch << " step: " << context.step_in_epoch << ", loss is "
                   << FormatLoss(context.loss()) << std::endl;
}

TimeMonitor::TimeMonitor(std::ostream* stream) : stream_(OrStandardOutput(stream)) {}

void TimeMonitor::OnEpochBegin(RunContext& context) {
  steps_before_ = context.step_in_epoch;
  begin_ = Clock::now();
}

void TimeMonitor::OnEvalBegin(RunContext& context) { eval_begin_ = Clock::now(); }

void TimeMonitor::OnEvalEnd(RunContext& context) { begin_ += Clock::now() - eval_begin_; }

void TimeMonitor::OnEpochEnd(RunContext& context) {
  const double milliseconds = Milliseconds(Clock::now() - begin_);
  const double steps = static_cast<double>(std::max<std::int64_t>(context.step_in_epoch - steps_before_, 1));
  *stream_ << absl::StrFormat("Train epoch time: %.3f ms, per step time: %.3f ms", milliseconds, milliseconds / steps)
           << std::endl;
}

}  // namespace mpc
