#include "frontend/train/early_stopping.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)),
      monitor_({.owner = "EarlyStopping",
                .monitor = options_.monitor,
                .mode = options_.mode,
                .min_delta = options_.min_delta}) {
  if (options_.stream == nullptr) options_.stream = &std::cout;
}

void EarlyStopping::OnTrainBegin(RunContext& context) {
  wait_ = stopped_epoch_ = best_epoch_ = 0;
  best_weights_.clear();
  context.Fail(monitor_.Begin(context));
  if (options_.patience < 0) {
    context.Fail(absl::InvalidArgumentError(
        absl::StrCat("EarlyStopping: patience must not be negative, got ", options_.patience)));
  }
  if (options_.baseline.has_value() && !std::isfinite(*options_.baseline)) {
    context.Fail(
        absl::InvalidArgumentError(absl::StrCat("EarlyStopping: baseline must be finite, got ", *options_.baseline)));
  }
  if (options_.restore_best_weights && context.trained() == nullptr) {
    context.Fail(absl::FailedPreconditionError("EarlyStopping: there is no Model whose weights could be restored"));
  }
}

std::string EarlyStopping::SaveState() const {
  return monitor_.SaveState({{"wait", wait_}, {"best_epoch", best_epoch_}});
}

absl::Status EarlyStopping::LoadState(const std::string& state) {
  return monitor_.LoadState(state, {{"wait", &wait_}, {"best_epoch", &best_epoch_}});
}

bool EarlyStopping::Count(double value, RunContext& context) {
  ++wait_;
  if (monitor_.Improves(value)) {
    best_epoch_ = context.epoch;
    if (options_.restore_best_weights) {
      absl::StatusOr<TrainedModel::Weights> weights = context.trained()->CopyWeights();
      context.Fail(weights.status());
      if (weights.ok()) best_weights_ = *std::move(weights);
    }
    if (!options_.baseline.has_value() || monitor_.IsBetter(value, *options_.baseline)) wait_ = 0;
  }
  return wait_ >= std::max<std::int64_t>(options_.patience, 1);
}

void EarlyStopping::OnEpochEnd(RunContext& context) {
  const std::optional<double> value = monitor_.ValueAt(context);
  if (!context.failure().ok() || !value.has_value() || !Count(*value, context)) return;
  stopped_epoch_ = context.epoch;
  context.RequestStop();
  Restore(context);
}

void EarlyStopping::Restore(RunContext& context) {
  if (best_weights_.empty() || !context.failure().ok()) return;
  if (options_.verbose) {
    *options_.stream << "Restoring model weights from the end of the best epoch: " << best_epoch_ << "." << std::endl;
  }
  context.Fail(context.trained()->SetWeights(best_weights_));
  best_weights_.clear();
}

void EarlyStopping::OnTrainEnd(RunContext& context) {
  best_weights_.clear();
  if (stopped_epoch_ > 0 && options_.verbose) {
    *options_.stream << absl::StrFormat("Epoch %05d: early stopping", stopped_epoch_) << std::endl;
  }
}

}  // namespace mpc
