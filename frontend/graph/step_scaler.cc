#include "frontend/graph/step_scaler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::amp::internal {

Trace* TrainingTrace(const char* caller, absl::Status* status) {
  Trace* trace = Trace::Current();
  if (trace == nullptr) {
    if (status->ok()) {
      *status = absl::FailedPreconditionError(
          absl::StrCat(caller, " belongs into the Construct of a training step; no trace is running"));
    }
    return nullptr;
  }
  if (!trace->training()) {
    trace->Fail(absl::StrCat(caller, " belongs into a training step: derive the Cell from nn::TrainingStep or ",
                             "nn::TrainOneStepCell, or call SetTrain"));
  } else if (!trace->in_step()) {
    trace->Fail(absl::StrCat(caller, " belongs into the training step, not into a function that is differentiated"));
  }
  return trace->failed() ? nullptr : trace;
}

Tensor AllOf(Trace& trace, const std::vector<Tensor>& flags) {
  if (flags.empty()) return {};
  return flags.size() == 1 ? flags[0] : trace.Emit("all_of", flags, {})[0];
}

// ---- One scaler -----------------------------------------------------------------------------------------------------

StepScaler::StepScaler(Trace& trace, std::shared_ptr<LossScaler> scaler) : trace_(trace), scaler_(std::move(scaler)) {
  scaler_->SetPrefix(trace.state().scalers().PrefixOf(scaler_->state()[0]));
}

const Tensor& StepScaler::Scale() {
  if (!scale_.defined()) scale_ = scaler_->state()[0].Read();
  if (!first_scale_.defined()) first_scale_ = scale_;
  return scale_;
}

Tensor StepScaler::ScaleLoss(const Tensor& loss) {
  const Tensor f32 = loss.dtype() == DType::kF32 ? loss : trace_.Emit("cast", {loss}, {}, DType::kF32)[0];
  if (!active() || trace_.failed()) return f32;
  losses_.push_back(f32);
  return trace_.Emit("scale_loss", {f32, Scale()}, {})[0];
}

Tensor StepScaler::Check(const std::vector<Tensor>& gradients, const std::vector<Tensor>& losses,
                         std::vector<std::string> names) {
  if (!active() || trace_.failed()) return {};
  std::vector<Tensor> flags;
  // The gradients go with the first loss. A further loss has a check of its own.
  for (std::size_t i = 0; i < std::max<std::size_t>(1, losses.size()); ++i) {
    std::vector<Tensor> operands{Scale(), losses.empty() ? trace_.Splat({DType::kF32, {}}, 0.0) : losses[i]};
    if (i == 0) operands.insert(operands.end(), gradients.begin(), gradients.end());
    const std::vector<Tensor> results = trace_.Emit("all_finite", operands, {});
    if (trace_.failed()) return {};
    flags.push_back(results[0]);
    checks_.push_back(results[1]);
    finite_.push_back(results[0]);
    first_bad_.push_back(results[1]);
    checked_names_.push_back(std::exchange(names, {}));
  }
  return AllOf(trace_, flags);
}

Tensor StepScaler::Unscale(const Tensor& gradient) {
  if (!active() || trace_.failed()) return gradient;
  return trace_.Emit("unscale", {gradient, Scale()}, {})[0];
}

void StepScaler::Update() {
  if (trace_.failed()) return;
  const std::vector<Tensor> checks = std::exchange(checks_, {});
  losses_.clear();
  if (checks.empty()) return;
  std::vector<Tensor> operands{checks.size() == 1 ? checks[0] : trace_.Emit("merge_checks", checks, {})[0]};
  for (const Parameter& field : scaler_->state()) operands.push_back(field.Read());
  const std::vector<Tensor> moved = trace_.Emit("update_loss_scale", operands, {});
  if (trace_.failed()) return;
  for (std::size_t i = 0; i < moved.size(); ++i) trace_.state().Assign(scaler_->state()[i], moved[i]);
  scale_ = Tensor();
  ++updates_;
}

void StepScaler::Record(const std::string& suffix) const {
  const bool one = first_bad_.size() == 1;
  trace_.report().Record("finite" + suffix, AllOf(trace_, finite_));
  trace_.report().Record("first_bad" + suffix, one ? first_bad_[0] : trace_.Emit("merge_checks", first_bad_, {})[0]);
  trace_.report().Record("loss_scale" + suffix, first_scale_);
  for (std::size_t i = 0; !one && i < first_bad_.size(); ++i) {
    trace_.report().Record(absl::StrCat("check", suffix, ".", i), first_bad_[i]);
  }
}

// ---- The step -------------------------------------------------------------------------------------------------------

StepScaling& StepScaling::InTrace(Trace& trace) {
  StepScaling& scaling = trace.locals().Get<StepScaling>();
  if (scaling.trace_ == nullptr) {
    scaling.trace_ = &trace;
    trace.locals().AtEnd([&scaling, &trace] { scaling.Finish(trace); });
  }
  return scaling;
}

StepScaler& StepScaling::ScalerOf(const std::shared_ptr<LossScaler>& scaler) {
  for (const auto& known : scalers_) {
    if (known->scaler() == scaler) return *known;
  }
  scalers_.push_back(std::make_unique<StepScaler>(*trace_, scaler));
  return *scalers_.back();
}

Tensor StepScaling::Scale(StepScaler& scaler, const Tensor& loss) {
  const Tensor scaled = scaler.ScaleLoss(loss);
  if (scaler.active() && !trace_->failed()) scaled_.push_back({scaled, scaler.losses().back(), &scaler});
  return scaled;
}

const ScaledLoss* StepScaling::FindScaled(const Tensor& tensor) const {
  for (const ScaledLoss& scaled : scaled_) {
    if (SameValue(scaled.scaled, tensor)) return &scaled;
  }
  return nullptr;
}

const StepScaler* StepScaling::ScalerBehind(const Tensor& gradient) const {
  for (const BackwardPass& pass : passes_) {
    const ScaledLoss* scaled = FindScaled(pass.loss);
    const bool given = scaled != nullptr && std::any_of(pass.gradients.begin(), pass.gradients.end(),
                                                        [&](const Tensor& each) { return SameValue(each, gradient); });
    if (given) return scaled->scaler;
  }
  return nullptr;
}

std::vector<Tensor> StepScaling::LossesOf(const StepScaler& scaler, const std::vector<Tensor>& gradients) const {
  std::vector<Tensor> losses;
  for (const BackwardPass& pass : passes_) {
    const ScaledLoss* scaled = FindScaled(pass.loss);
    const bool used = scaled != nullptr && scaled->scaler == &scaler &&
                      std::any_of(gradients.begin(), gradients.end(), [&](const Tensor& gradient) {
                        return std::any_of(pass.gradients.begin(), pass.gradients.end(),
                                           [&](const Tensor& given) { return SameValue(given, gradient); });
                      });
    if (used) losses.push_back(scaled->loss);
  }
  return losses.empty() ? scaler.losses() : losses;
}

Tensor StepScaling::FindGradient(const Tensor& loss, const Parameter& parameter) const {
  for (const BackwardPass& pass : passes_) {
    if (!SameValue(pass.loss, loss)) continue;
    for (std::size_t i = 0; i < pass.parameters.size(); ++i) {
      if (pass.parameters[i] == parameter) return pass.gradients[i];
    }
  }
  return {};
}

std::vector<const StepScaler*> StepScaling::checking() const {
  std::vector<const StepScaler*> checking;
  for (const auto& scaler : scalers_) {
    if (!scaler->checked_names().empty()) checking.push_back(scaler.get());
  }
  return checking;
}

void StepScaling::Finish(Trace& trace) {
  if (trace.failed()) return;
  const std::vector<const StepScaler*> used = checking();
  for (std::size_t i = 0; i < used.size(); ++i) used[i]->Record(used.size() == 1 ? "" : absl::StrCat(i));
  for (const auto& scaler : scalers_) {
    if (scaler->checked() && !scaler->updates_at_end()) {
      trace.Fail("a gradient scaler has checked gradients and is not updated: call Update once at the end of the step");
    }
    if (scaler->updates_at_end()) scaler->Update();
  }
}

}  // namespace mpc::amp::internal
