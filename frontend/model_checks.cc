// What a Model checks before it trains and reports after every step.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "frontend/model_impl.h"

namespace mpc {
namespace {

/// Mean of a loss of any shape: what monitors and records show.
float MeanOf(const Tensor& loss) {
  double sum = 0;
  const std::vector<float> values = loss.ToFloats();
  for (float value : values) sum += value;
  return static_cast<float>(sum / static_cast<double>(values.size()));
}

}  // namespace

using internal::CompiledStep;

absl::Status Model::Impl::CheckTrainable() const {
  if (!optimizer->status().ok()) return optimizer->status();
  std::vector<std::string> unowned;
  const std::vector<Parameter>& owned = optimizer->parameters();
  const auto registered = network.cell()->ParametersAndNames();
  for (const Parameter& parameter : owned) {
    const bool known =
        std::any_of(registered.begin(), registered.end(), [&](const auto& named) { return named.second == parameter; });
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat("the optimizer holds a parameter ",
                                                     parameter.entry()->spec().ToString(), " that ",
                                                     network.cell()->TypeName(), " does not have"));
    }
  }
  for (const auto& [name, parameter] : registered) {
    if (parameter.requires_grad() && std::find(owned.begin(), owned.end(), parameter) == owned.end()) {
      unowned.push_back(name);
    }
  }
  if (!unowned.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no optimizer updates ", absl::StrJoin(unowned, ", "),
                     "; give them to the optimizer, or freeze them with SetRequiresGrad(path, false)"));
  }
  const bool divides_itself = scale_config.mode == LossScaleConfig::Mode::kStatic && !scale_config.unscale;
  if (divides_itself && (!optimizer->divides_by_loss_scale() || optimizer->loss_scale() != scale_config.init)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FixedLossScaleManager(loss_scale = ", scale_config.init, ", drop_overflow_update = false) needs an optimizer ",
        "with the same loss_scale, but ", optimizer->TypeName(),
        optimizer->divides_by_loss_scale() ? absl::StrCat(" has ", optimizer->loss_scale()) : " has none",
        ": gradients would be scaled wrongly"));
  }
  return absl::OkStatus();
}

absl::Status Model::Impl::CheckColumns(const data::Dataset& dataset, int arity, const char* what) const {
  if (!dataset.status().ok()) return dataset.status();
  const auto columns = static_cast<int>(dataset.column_names().size());
  if (arity < 0 || columns == arity) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " takes ", arity, " columns, the data set has ", columns, " (",
                                                 absl::StrJoin(dataset.column_names(), ", "), ")"));
}

std::string Model::Impl::GradientName(std::int64_t index) const {
  const nn::Optimizer* owner = user_step != nullptr ? &user_step->trained_by() : optimizer;
  if (owner == nullptr) return "";
  // Frozen parameters have no gradient in the step.
  for (const Parameter& parameter : owner->parameters()) {
    if (parameter.requires_grad() && index-- == 0) return parameter.name();
  }
  return "";
}

absl::Status Model::Impl::AfterStep(const CompiledStep& run, RunContext& context) {
  ++global_step;
  context.global_step = global_step;
  context.set_loss([&run] { return MeanOf(run.Output(0)); });
  const std::optional<double> finite = run.Record("finite");
  const auto where = [&] { return absl::StrCat("epoch ", context.epoch, " step ", context.step_in_epoch); };
  if (!finite.has_value()) {
    if (!std::isfinite(context.loss()) && !warned_about_nan) {
      std::cerr << "warning: " << where() << ": the loss is " << context.loss()
                << " and no scaler skips the step; parameters may be lost\n";
      warned_about_nan = true;
    }
    return absl::OkStatus();
  }
  const LossScaler* state = ActiveScaler();
  context.overflow = *finite == 0;
  context.loss_scale = static_cast<float>(state->scale());
  context.skipped_steps = state->skipped_steps();
  if (!context.overflow) {
    in_overflow_run = false;
    return absl::OkStatus();
  }
  const bool skips = state->config().skip;
  const auto first_bad = static_cast<std::int64_t>(run.Record("first_bad").value_or(-2));
  const std::string culprit = first_bad < 0
                                  ? "the loss is not finite"
                                  : absl::StrCat("the gradient of ", GradientName(first_bad), " is not finite");
  if (!in_overflow_run) {
    // Ten digits: every power of two up to 2^33 in full.
    std::cerr << absl::StrFormat("overflow at %s: %s; loss scale %.10g -> %.10g%s\n", where(), culprit,
                                 run.Record("loss_scale").value_or(1), state->scale(), skips ? "; step skipped" : "");
  }
  in_overflow_run = true;
  const bool stuck = state->config().mode != LossScaleConfig::Mode::kDynamic ||
                     state->scale() <= std::max(1.0, state->config().minimum);
  if (skips && stuck && options.max_consecutive_skips > 0 &&
      state->consecutive_skips() >= options.max_consecutive_skips) {
    return absl::FailedPreconditionError(absl::StrCat(where(), ": ", state->consecutive_skips(),
                                                      " steps in a row were not finite at loss scale ", state->scale(),
                                                      ", which cannot shrink any more: ", culprit));
  }
  return absl::OkStatus();
}

}  // namespace mpc
