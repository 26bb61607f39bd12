#include "frontend/train/active_scalers.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/dialect/gradient_names.h"
#include "frontend/graph/compiled_step.h"

namespace mpc::internal {

using amp::internal::ScalerHistory;

void ActiveScalers::Share(const std::shared_ptr<LossScaler>& scaler) {
  config_ = scaler->config();
  own_.clear();
  if (config_.mode != LossScaleConfig::Mode::kNone) own_.push_back(scaler);
}

void ActiveScalers::Create(std::int64_t num_losses) {
  if (!own_.empty() || config_.mode == LossScaleConfig::Mode::kNone) return;
  for (std::int64_t loss = 0; loss < num_losses; ++loss) {
    own_.push_back(std::make_shared<LossScaler>(config_));
    if (num_losses > 1) own_.back()->SetPrefix(absl::StrCat("scaler", loss));
  }
}

void ActiveScalers::UseStep(const nn::TrainingStep& step) {
  scaled_step_ = dynamic_cast<const nn::TrainOneStepWithLossScaleCell*>(&step);
}

void ActiveScalers::NoteCalled(const StepFacts& facts) {
  if (!facts.scalers.empty()) called_ = facts.scalers;
}

std::vector<Parameter> ActiveScalers::OwnState() const {
  std::vector<Parameter> state;
  for (const auto& scaler : own_) state.insert(state.end(), scaler->state().begin(), scaler->state().end());
  return state;
}

std::vector<const LossScaler*> ActiveScalers::all() const {
  if (scaled_step_ != nullptr) return {&scaled_step_->scaler()};
  std::vector<const LossScaler*> scalers;
  for (const StepFacts::Scaler& called : called_) scalers.push_back(called.scaler.get());
  if (!scalers.empty()) return scalers;
  for (const auto& scaler : own_) scalers.push_back(scaler.get());
  return scalers;
}

const LossScaler* ActiveScalers::worst() const {
  const std::vector<const LossScaler*> scalers = all();
  // Comparing would wait for the device.
  if (scalers.size() == 1) return scalers.front();
  const LossScaler* worst = nullptr;
  for (const LossScaler* active : scalers) {
    if (worst == nullptr || active->consecutive_skips() > worst->consecutive_skips()) worst = active;
  }
  return worst;
}

double ActiveScalers::scale(std::int64_t loss_id) const {
  if (!step_is_scaled_) return 1.0;
  const std::vector<const LossScaler*> scalers = all();
  return loss_id < 0 || loss_id >= static_cast<std::int64_t>(scalers.size())
             ? 1.0
             : scalers[static_cast<std::size_t>(loss_id)]->scale();
}

double ActiveScalers::scale() const {
  if (!step_is_scaled_) return 1.0;
  const LossScaler* scaler = worst();
  return scaler == nullptr ? 1.0 : scaler->scale();
}

std::int64_t ActiveScalers::skipped_steps() const {
  std::int64_t skipped = 0;
  for (const LossScaler* active : all()) skipped += active->skipped_steps();
  return skipped;
}

std::vector<ActiveScalers::Scaling> ActiveScalers::Of(const StepResults& results) const {
  std::vector<Scaling> scalings;
  if (results.Record("finite").has_value()) return {{worst(), ""}};
  const std::vector<const LossScaler*> scalers = all();
  for (std::size_t loss = 0; loss < scalers.size(); ++loss) {
    const std::string suffix = absl::StrCat(loss);
    if (results.Record("finite" + suffix).has_value()) scalings.push_back({scalers[loss], suffix});
  }
  return scalings;
}

std::optional<double> ActiveScalers::FirstBad(const StepResults& results, const LossScaler& scaler) const {
  if (const std::optional<double> only = results.Record("first_bad"); only.has_value()) return only;
  const std::vector<const LossScaler*> scalers = all();
  const auto found = std::find(scalers.begin(), scalers.end(), &scaler);
  return results.Record(absl::StrCat("first_bad", found - scalers.begin()));
}

ActiveScalers::State ActiveScalers::StateAfterStep(const LossScaler& scaler) const {
  const auto followed = histories_.find(&scaler);
  if (followed == histories_.end()) {
    return {scaler.scale(), scaler.skipped_steps(), scaler.consecutive_skips()};
  }
  const ScalerHistory& history = *followed->second;
  return {history.scale(), history.skipped_steps(), history.consecutive_skips()};
}

void ActiveScalers::TellScaling(RunContext& context) const {
  context.skipped_steps = 0;
  context.loss_scale = 1;
  if (!step_is_scaled_) return;
  const std::vector<const LossScaler*> active = all();
  for (const LossScaler* each : active) context.skipped_steps += StateAfterStep(*each).skipped;
  if (!active.empty()) context.loss_scale = static_cast<float>(StateAfterStep(*active.front()).scale);
}

absl::Status ActiveScalers::Follow() {
  for (const LossScaler* scaler : all()) {
    std::unique_ptr<ScalerHistory>& history = histories_[scaler];
    if (history != nullptr) continue;
    absl::StatusOr<std::unique_ptr<ScalerHistory>> created = ScalerHistory::Create(*scaler);
    if (!created.ok()) return created.status();
    history = *std::move(created);
  }
  return absl::OkStatus();
}

absl::StatusOr<ActiveScalers::Writes> ActiveScalers::TakeWrites() {
  Writes taken;
  for (const auto& [scaler, history] : histories_) {
    absl::StatusOr<ScalerHistory::Writes> writes = history->TakeWrites();
    if (!writes.ok()) return writes.status();
    taken[scaler] = *std::move(writes);
  }
  return taken;
}

void ActiveScalers::NoteLaunch() {
  for (const auto& [scaler, history] : histories_) history->NoteLaunch();
}

void ActiveScalers::FollowStep(const Writes& writes, const StepResults& results, bool completes) {
  for (const auto& [scaler, history] : histories_) {
    std::int32_t first_bad = -1;
    if (const std::optional<double> record = FirstBad(results, *scaler); record.has_value()) {
      first_bad = static_cast<std::int32_t>(*record);
    }
    const auto of_scaler = writes.find(scaler);
    history->Step(of_scaler == writes.end() ? ScalerHistory::Writes() : of_scaler->second,
                  completes ? &first_bad : nullptr);
  }
}

std::string GradientName(const StepResults& results, const std::string& suffix, std::int64_t index,
                         const std::vector<nn::Optimizer*>& optimizers) {
  // The wrap names what its records count: those of one loss, or of each loss of a shared scaler.
  for (const auto& [record, names] : results.step().compiled().gradients) {
    if (record != "first_bad" + suffix && (!suffix.empty() || !absl::EndsWith(record, ".first_bad"))) continue;
    const double found = results.Record(record).value_or(-1);
    if (found >= 0 && found < static_cast<double>(names.size())) return names[static_cast<std::size_t>(found)];
  }
  const std::vector<StepFacts::Scaler>& scalers = results.step().facts().scalers;
  if (scalers.empty()) {
    // Frozen parameters have no gradient in the step.
    for (const nn::Optimizer* owner : optimizers) {
      for (const Parameter& parameter : owner->parameters()) {
        if (parameter.requires_grad() && index-- == 0) return parameter.name();
      }
    }
    return "";
  }
  const std::size_t scaler = suffix.empty() ? 0 : static_cast<std::size_t>(std::stoi(suffix));
  const std::vector<std::vector<std::string>>& checked = scalers[scaler].checked;
  for (std::size_t check = 0; check < checked.size(); ++check) {
    const double found = checked.size() == 1 ? static_cast<double>(index)
                                             : results.Record(absl::StrCat("check", suffix, ".", check)).value_or(-1);
    if (found < 0) continue;
    const auto place = static_cast<std::size_t>(found);
    // The wrap adds norms behind the gradients that the scaler checks.
    return place < checked[check].size() ? checked[check][place] : std::string(kNormOfGradients);
  }
  return "";
}

}  // namespace mpc::internal
