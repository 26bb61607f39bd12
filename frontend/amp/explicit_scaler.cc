#include "frontend/amp/explicit_scaler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/gradient_ops.h"
#include "frontend/graph/step_scaler.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::amp {
namespace {

using internal::StepScaler;
using internal::StepScaling;
using internal::Trace;

/// How far an optimizer has come with a scaler since the scaler's last update.
struct OptimizerStage {
  const LossScaler* scaler;
  const nn::Optimizer* optimizer;
  Tensor finite;
  bool stepped = false;
};

struct OptimizerStages {
  std::vector<OptimizerStage> stages;

  OptimizerStage* Find(const LossScaler* scaler, const nn::Optimizer* optimizer) {
    for (OptimizerStage& stage : stages) {
      if (stage.scaler == scaler && stage.optimizer == optimizer) return &stage;
    }
    return nullptr;
  }
};

}  // namespace

ExplicitScaler::ExplicitScaler(std::string name, bool enabled, const LossScaleConfig& config)
    : name_(std::move(name)),
      enabled_(enabled),
      scaler_(std::make_shared<LossScaler>(enabled ? config : LossScaleConfig{})),
      status_(std::make_shared<absl::Status>()) {
  if (enabled) {
    if (const absl::Status status = config.Validate(); !status.ok()) {
      *status_ = absl::InvalidArgumentError(absl::StrCat(name_, ": ", std::string(status.message())));
    }
  }
}

Trace* ExplicitScaler::BeginUse(const char* method) {
  if (Trace* trace = Trace::Current(); trace != nullptr && !status_->ok()) trace->Fail(std::string(status_->message()));
  return internal::TrainingTrace(absl::StrCat(name_, "::", method).c_str(), status_.get());
}

Tensor ExplicitScaler::Scale(const Tensor& loss) {
  if (Trace* trace = Trace::Current(); trace != nullptr) trace->NotePart(identity_);
  if (!enabled_) return loss;
  Trace* trace = BeginUse("Scale");
  if (trace == nullptr) {
    Trace* failed = Trace::Current();
    return failed != nullptr ? failed->Poison(loss.shape()) : mpc::internal::MakeInvalid(*status_);
  }
  StepScaling& scaling = StepScaling::InTrace(*trace);
  return scaling.Scale(scaling.ScalerOf(scaler_), loss);
}

std::vector<Tensor> ExplicitScaler::Unscale(nn::Optimizer& optimizer, const std::vector<Tensor>& gradients) {
  if (!enabled_) return gradients;
  Trace* trace = BeginUse("Unscale");
  if (trace == nullptr) return gradients;
  auto& stages = trace->locals().Get<OptimizerStages>();
  if (const OptimizerStage* stage = stages.Find(scaler_.get(), &optimizer)) {
    trace->Fail(stage->stepped ? absl::StrCat(name_, "::Unscale is called after Step for this optimizer")
                               : absl::StrCat(name_, "::Unscale has already been called for this optimizer since the ",
                                              "last Update: its gradients would be unscaled twice"));
    return gradients;
  }
  const std::vector<Parameter>& parameters = optimizer.parameters();
  if (gradients.size() != parameters.size()) {
    trace->Fail(absl::StrCat(name_, ": got ", gradients.size(), " gradients for ", parameters.size(), " parameters"));
    return gradients;
  }
  StepScaling& scaling = StepScaling::InTrace(*trace);
  StepScaler& scaler = scaling.ScalerOf(scaler_);
  if (scaler.active() && scaler.losses().empty()) {
    trace->Fail(
        absl::StrCat(name_, ": no loss has been scaled since the last Update: differentiate what Scale returns"));
    return gradients;
  }
  std::vector<Tensor> checked;
  std::vector<Tensor> unscaled = gradients;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].requires_grad()) continue;
    checked.push_back(gradients[i]);
    names.push_back(parameters[i].name());
    unscaled[i] = scaler.Unscale(gradients[i]);
  }
  const Tensor finite = scaler.Check(checked, scaling.LossesOf(scaler, checked), std::move(names));
  stages.stages.push_back({scaler_.get(), &optimizer, finite, false});
  return unscaled;
}

bool ExplicitScaler::Step(nn::Optimizer& optimizer, const std::vector<Tensor>& gradients) {
  if (!enabled_) return optimizer(gradients);
  Trace* trace = BeginUse("Step");
  if (trace == nullptr) return false;
  auto& stages = trace->locals().Get<OptimizerStages>();
  std::vector<Tensor> unscaled = gradients;
  if (stages.Find(scaler_.get(), &optimizer) == nullptr) unscaled = Unscale(optimizer, gradients);
  OptimizerStage* stage = stages.Find(scaler_.get(), &optimizer);
  if (stage == nullptr) return false;
  if (stage->stepped) {
    trace->Fail(absl::StrCat(name_, "::Step has already been called for this optimizer since the last Update"));
    return false;
  }
  stage->stepped = true;
  return optimizer.Apply(unscaled, stage->finite);
}

std::vector<Tensor> ExplicitScaler::GradientsOf(nn::Optimizer& optimizer, const Tensor& scaled_loss) {
  Trace* trace = Trace::Current();
  if (trace == nullptr || trace->failed()) return {};
  const StepScaling& scaling = StepScaling::InTrace(*trace);
  std::vector<Tensor> gradients;
  for (const Parameter& parameter : optimizer.parameters()) {
    gradients.push_back(scaling.FindGradient(scaled_loss, parameter));
    if (!gradients.back().defined()) return ops::Backward(scaled_loss, optimizer.parameters());
  }
  return gradients;
}

bool ExplicitScaler::Step(nn::Optimizer& optimizer, const Tensor& scaled_loss) {
  if (BeginUse("Step") == nullptr) return false;
  return Step(optimizer, GradientsOf(optimizer, scaled_loss));
}

bool ExplicitScaler::StepAndUpdate(nn::Optimizer& optimizer, const std::vector<Tensor>& gradients) {
  const bool stepped = Step(optimizer, gradients);
  if (Trace* trace = Trace::Current(); stepped && enabled_) {
    StepScaling::InTrace(*trace).ScalerOf(scaler_).UpdateAtEnd();
  }
  return stepped;
}

bool ExplicitScaler::Update() {
  if (!enabled_) return true;
  Trace* trace = BeginUse("Update");
  if (trace == nullptr) return false;
  StepScaler& scaler = StepScaling::InTrace(*trace).ScalerOf(scaler_);
  if (!scaler.checked()) {
    trace->Fail(absl::StrCat(name_, "::Update without Step or Unscale before it: no gradient has been checked"));
    return false;
  }
  scaler.Update();
  std::erase_if(trace->locals().Get<OptimizerStages>().stages,
                [&](const OptimizerStage& stage) { return stage.scaler == scaler_.get(); });
  return true;
}

absl::Status ExplicitScaler::Change(const std::function<void(LossScaleConfig&)>& change, std::optional<double> scale,
                                    std::optional<Counters> counters) {
  if (!enabled_) return absl::OkStatus();
  LossScaleConfig config = scaler_->current();
  change(config);
  absl::Status status = config.Validate();
  if (status.ok() && scale.has_value()) status = scaler_->CheckScale(*scale);
  if (status.ok() && counters.has_value()) status = scaler_->SetCounters(counters->good, counters->bad);
  if (status.ok()) status = scaler_->Configure(config);
  if (status.ok() && scale.has_value()) status = scaler_->SetScale(*scale);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(name_, ": ", std::string(status.message())));
}

absl::Status ExplicitScaler::CheckKeys(const ScalerState& state, const std::vector<std::string>& keys) const {
  if (state.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": the state is empty; was it saved from a disabled scaler?"));
  }
  std::vector<std::string> wrong;
  for (const std::string& key : keys) {
    if (state.count(key) == 0) wrong.push_back(absl::StrCat("'", key, "' is missing"));
  }
  for (const auto& [key, value] : state) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) wrong.push_back(absl::StrCat("'", key, "' is unknown"));
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name_, ": the state does not fit: ", absl::StrJoin(wrong, ", ")));
}

absl::Status ExplicitScaler::CheckCounts(const ScalerState& state, const std::vector<std::string>& keys) const {
  std::vector<std::string> wrong;
  for (const std::string& key : keys) {
    const double value = state.at(key);
    if (!LossScaler::IsCount(value)) wrong.push_back(absl::StrCat("'", key, "' is ", value));
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name_, ": the state does not fit: ", absl::StrJoin(wrong, ", "),
                                                 "; whole numbers in [0, 2^31) are accepted"));
}

}  // namespace mpc::amp
