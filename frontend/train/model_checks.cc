// What a Model checks before it trains and reports after every step.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/dialect/gradient_names.h"
#include "frontend/train/model_impl.h"

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

using internal::StepResults;

absl::Status Model::Impl::CheckTrainable() const {
  if (!optimizer->status().ok()) return optimizer->status();
  std::vector<std::string> unowned;
  const std::vector<Parameter>& owned = optimizer->parameters();
  const auto registered = evaluated()->ParametersAndNames();
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
  return optimizer->CheckLossScale(scale_config);
}

absl::Status Model::Impl::CheckAccumulation() const {
  if (options.accumulation_steps == 1) return absl::OkStatus();
  const compiler::CompileOptions compile = TrainOptions({}).compile;
  if (compile.loss_scale == "none" || compile.unscale) return absl::OkStatus();
  const bool is_of_step = dynamic_cast<const nn::TrainOneStepWithLossScaleCell*>(user_step) != nullptr;
  return absl::InvalidArgumentError(absl::StrCat(
      "Model: accumulation_steps = ", options.accumulation_steps, " and a loss_scale_manager",
      is_of_step ? absl::StrCat(" of ", user_step->TypeName()) : "",
      " with drop_overflow_update = false contradict each other: gradients are accumulated without the loss scale, "
      "and the optimizer would divide by it; take accumulation_steps = 1, or drop_overflow_update = true and an "
      "optimizer without loss_scale"));
}

absl::Status Model::Impl::CheckNames() const {
  std::set<std::string> names;
  for (const auto& [name, parameter] : evaluated()->ParametersAndNames()) {
    if (names.insert(name).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("Model: ", network.cell()->TypeName(), " and ",
                                                   loss.cell()->TypeName(), " both have a Parameter '", name,
                                                   "'; give the member of one of them another name"));
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

void Model::Impl::TellScaling(RunContext& context) const {
  context.skipped_steps = 0;
  context.loss_scale = 1;
  if (!step_is_scaled) return;
  const std::vector<const LossScaler*> active = ActiveScalers();
  for (const LossScaler* each : active) context.skipped_steps += StateAfterStep(*each).skipped;
  if (!active.empty()) context.loss_scale = static_cast<float>(StateAfterStep(*active.front()).scale);
}

absl::Status Model::Impl::AfterStep(const StepResults& results, bool completes, RunContext& context) {
  context.set_loss([results] { return MeanOf(results.Output(0)); });
  context.set_tap([results](const std::string& name) { return results.Tap(name); });
  // Before the last batch of an update it is that of the batches so far.
  if (completes) context.gradient_norm = results.Record("gradient_norm");
  context.learning_rate = results.Record("learning_rate");
  context.state_hash = results.StateHash();
  context.overflow = false;
  const std::string where = absl::StrCat("epoch ", context.epoch, " step ", context.step_in_epoch);
  const std::vector<Scaling> scalings = ScalingOf(results);
  // A scaler keeps what it finds in a micro-step until the last one of the update. Without one it is said at once.
  if (scalings.empty() && (completes || ActiveScalers().empty())) WarnOfLoss(context, where);
  TellScaling(context);
  if (!completes || scalings.empty()) return absl::OkStatus();
  context.loss_scale = static_cast<float>(StateAfterStep(*scalings.front().scaler).scale);
  absl::Status status;
  for (const Scaling& scaling : scalings) {
    if (results.Record("finite" + scaling.suffix) != 0) continue;
    if (!context.overflow) context.loss_scale = static_cast<float>(StateAfterStep(*scaling.scaler).scale);
    context.overflow = true;
    status.Update(ReportOverflow(results, scaling, where, !in_overflow_run));
  }
  in_overflow_run = context.overflow;
  return status;
}

void Model::Impl::WarnOfLoss(const RunContext& context, const std::string& where) {
  if (warned_about_nan || std::isfinite(context.loss())) return;
  Say(absl::StrCat("warning: ", where, ": the loss is ", context.loss(),
                   " and no scaler skips the step; parameters may be lost"));
  warned_about_nan = true;
}

void Model::Impl::Say(const std::string& line) const {
  if (processes.is_first()) std::cerr << line << "\n";
}

absl::Status Model::Impl::ReportOverflow(const StepResults& results, const Scaling& scaling, const std::string& where,
                                         bool first) const {
  const LossScaler& scaler = *scaling.scaler;
  const ScalerState after = StateAfterStep(scaler);
  const bool skips = scaler.config().skip;
  const auto first_bad = static_cast<std::int64_t>(results.Record("first_bad" + scaling.suffix).value_or(-2));
  const std::string bad = first_bad < 0 ? "the loss" : GradientName(results, scaling.suffix, first_bad);
  const bool is_gradient = first_bad >= 0 && bad != kNormOfGradients;
  const std::string culprit = absl::StrCat(is_gradient ? "the gradient of " : "", bad, " is not finite");
  if (first) {
    const std::string of_loss = scaling.suffix.empty() ? "" : absl::StrCat(" of loss ", scaling.suffix);
    // Ten digits: every power of two up to 2^33 in full.
    Say(absl::StrFormat("overflow at %s: %s; loss scale%s %.10g -> %.10g%s", where, culprit, of_loss,
                        results.Record("loss_scale" + scaling.suffix).value_or(1), after.scale,
                        skips ? "; step skipped" : ""));
  }
  const bool stuck =
      scaler.config().mode != LossScaleConfig::Mode::kDynamic || after.scale <= std::max(1.0, scaler.config().minimum);
  if (skips && stuck && options.max_consecutive_skips > 0 && after.consecutive >= options.max_consecutive_skips) {
    return absl::FailedPreconditionError(absl::StrCat(where, ": ", after.consecutive,
                                                      " steps in a row were not finite at loss scale ", after.scale,
                                                      ", which cannot shrink any more: ", culprit));
  }
  return absl::OkStatus();
}

}  // namespace mpc
