#include "frontend/train/reduce_lr_on_plateau.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc {

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : options_(std::move(options)),
      monitor_({.owner = "ReduceLROnPlateau",
                .monitor = options_.monitor,
                .mode = options_.mode,
                .min_delta = options_.min_delta}) {
  if (options_.stream == nullptr) options_.stream = &std::cout;
}

absl::Status ReduceLROnPlateau::Check() const {
  if (!(options_.factor > 0 && options_.factor < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ReduceLROnPlateau: factor must lie between 0 and 1, got ", options_.factor));
  }
  if (options_.patience < 0 || options_.cooldown < 0) {
    return absl::InvalidArgumentError(absl::StrCat("ReduceLROnPlateau: patience and cooldown must not be negative, ",
                                                   "got ", options_.patience, " and ", options_.cooldown));
  }
  if (!std::isfinite(options_.min_lr) || options_.min_lr < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ReduceLROnPlateau: min_lr must be finite and not negative, got ", options_.min_lr));
  }
  return absl::OkStatus();
}

absl::Status ReduceLROnPlateau::CheckRates(const RunContext& context, bool traced) const {
  if (context.trained() == nullptr) {
    return absl::FailedPreconditionError("ReduceLROnPlateau: there is no Model whose learning rates could fall");
  }
  const absl::StatusOr<std::vector<TrainedModel::RateGroup>> groups = context.trained()->LearningRates();
  if (!groups.ok()) return groups.status();
  if (traced && groups->empty()) {
    return absl::FailedPreconditionError("ReduceLROnPlateau: the step calls no optimizer whose rate could fall");
  }
  for (const TrainedModel::RateGroup& group : *groups) {
    if (group.learning_rate.has_value()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("ReduceLROnPlateau: a schedule computes the learning rate of ", group.name));
  }
  return absl::OkStatus();
}

void ReduceLROnPlateau::OnTrainBegin(RunContext& context) {
  wait_ = cooldown_left_ = 0;
  context.Fail(Check());
  context.Fail(monitor_.Begin(context));
  context.Fail(CheckRates(context, /*traced=*/false));
}

std::string ReduceLROnPlateau::SaveState() const {
  return monitor_.SaveState({{"wait", wait_}, {"cooldown_left", cooldown_left_}});
}

absl::Status ReduceLROnPlateau::LoadState(const std::string& state) {
  return monitor_.LoadState(state, {{"wait", &wait_}, {"cooldown_left", &cooldown_left_}});
}

void ReduceLROnPlateau::OnEpochEnd(RunContext& context) {
  // A step that does not name its optimizers has shown them by now.
  context.Fail(CheckRates(context, /*traced=*/true));
  const std::optional<double> value = monitor_.ValueAt(context);
  if (!context.failure().ok() || !value.has_value()) return;
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    wait_ = 0;
  }
  if (monitor_.Improves(*value)) {
    wait_ = 0;
    return;
  }
  if (cooldown_left_ > 0 || ++wait_ < options_.patience) return;
  context.Fail(Reduce(context));
  cooldown_left_ = options_.cooldown;
  wait_ = 0;
}

absl::Status ReduceLROnPlateau::Reduce(RunContext& context) const {
  const absl::StatusOr<std::vector<TrainedModel::RateGroup>> groups = context.trained()->LearningRates();
  if (!groups.ok()) return groups.status();
  for (std::size_t group = 0; group < groups->size(); ++group) {
    const double rate = (*groups)[group].learning_rate.value_or(0);
    const double reduced = std::max(rate * options_.factor, options_.min_lr);
    // Rates are state in f32: min_lr as it comes back may be above itself.
    if (static_cast<float>(reduced) >= static_cast<float>(rate)) continue;
    if (absl::Status set = context.trained()->SetLearningRate(group, reduced); !set.ok()) return set;
    if (!options_.verbose) continue;
    *options_.stream << absl::StrFormat("Epoch %05d: ReduceLROnPlateau reducing learning rate of %s to %g.",
                                        context.epoch, (*groups)[group].name, reduced)
                     << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace mpc
