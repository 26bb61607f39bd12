// What a Model checks before it trains and reports after every step.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

using internal::ActiveScalers;
using internal::StepResults;

absl::Status Model::Impl::CheckAccumulation() const {
  if (options.accumulation_steps == 1) return absl::OkStatus();
  const compiler::CompileOptions compile = TrainOptions({}).compile;
  if (compile.loss_scale == "none" || compile.unscale) return absl::OkStatus();
  const bool is_of_step = dynamic_cast<const nn::TrainOneStepWithLossScaleCell*>(cells.user_step()) != nullptr;
  return absl::InvalidArgumentError(absl::StrCat(
      "Model: accumulation_steps = ", options.accumulation_steps, " and a loss_scale_manager",
      is_of_step ? absl::StrCat(" of ", cells.user_step()->TypeName()) : "",
      " with drop_overflow_update = false contradict each other: gradients are accumulated without the loss scale, "
      "and the optimizer would divide by it; take accumulation_steps = 1, or drop_overflow_update = true and an "
      "optimizer without loss_scale"));
}

absl::Status Model::Impl::CheckClipping() const {
  const compiler::CompileOptions compile = TrainOptions({}).compile;
  if (compile.loss_scale == "none" || compile.unscale) return absl::OkStatus();
  std::string name, value;
  if (options.clip_global_norm.has_value()) {
    name = "clip_global_norm";
    value = absl::StrCat(" = ", *options.clip_global_norm);
  } else if (options.clip_value.has_value()) {
    name = "clip_value";
    value = absl::StrCat(" = ", *options.clip_value);
  } else if (options.record_gradient_norm) {
    name = "record_gradient_norm";
  } else {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "Model: ", name, value, " and a loss_scale_manager with drop_overflow_update = false contradict each other: ",
      "gradients are ", value.empty() ? "measured" : "clipped", " without the loss scale, and the optimizer divides ",
      "by it afterwards; leave out ", name, ", or take drop_overflow_update = true and an optimizer without ",
      "loss_scale"));
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
  const std::vector<ActiveScalers::Scaling> scalings = scalers.Of(results);
  // A scaler keeps what it finds in a micro-step until the last one of the update. Without one it is said at once.
  if (scalings.empty() && (completes || scalers.all().empty())) WarnOfLoss(context, where);
  scalers.TellScaling(context);
  if (!completes || scalings.empty()) return absl::OkStatus();
  context.loss_scale = static_cast<float>(scalers.StateAfterStep(*scalings.front().scaler).scale);
  absl::Status status;
  for (const ActiveScalers::Scaling& scaling : scalings) {
    if (results.Record("finite" + scaling.suffix) != 0) continue;
    if (!context.overflow) context.loss_scale = static_cast<float>(scalers.StateAfterStep(*scaling.scaler).scale);
    context.overflow = true;
    status.Update(ReportOverflow(results, scaling, where, !scalers.in_overflow_run()));
  }
  scalers.NoteOverflow(context.overflow);
  return status;
}

void Model::Impl::WarnOfLoss(const RunContext& context, const std::string& where) {
  if (remarks.has_said(kLossTopic) || std::isfinite(context.loss())) return;
  remarks.SayOnce(kLossTopic, absl::StrCat("warning: ", where, ": the loss is ", context.loss(),
                                           " and no scaler skips the step; parameters may be lost"));
}

absl::Status Model::Impl::ReportOverflow(const StepResults& results, const ActiveScalers::Scaling& scaling,
                                         const std::string& where, bool first) const {
  const LossScaler& scaler = *scaling.scaler;
  const ActiveScalers::State after = scalers.StateAfterStep(scaler);
  const bool skips = scaler.config().skip;
  const auto first_bad = static_cast<std::int64_t>(results.Record("first_bad" + scaling.suffix).value_or(-2));
  const std::string bad =
      first_bad < 0 ? "the loss" : internal::GradientName(results, scaling.suffix, first_bad, cells.optimizers());
  const bool is_gradient = first_bad >= 0 && bad != kNormOfGradients;
  const std::string culprit = absl::StrCat(is_gradient ? "the gradient of " : "", bad, " is not finite");
  if (first) {
    const std::string of_loss = scaling.suffix.empty() ? "" : absl::StrCat(" of loss ", scaling.suffix);
    // Ten digits: every power of two up to 2^33 in full.
    remarks.Say(absl::StrFormat("overflow at %s: %s; loss scale%s %.10g -> %.10g%s", where, culprit, of_loss,
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
