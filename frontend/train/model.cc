#include "frontend/train/model.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "compiler/dialect/step_limits.h"
#include "frontend/graph/amp_session.h"
#include "frontend/train/model_impl.h"

namespace mpc {
namespace {

using internal::CompiledStep;
using internal::InferenceMode;
using internal::StepOptions;

std::vector<Parameter> WithoutNames(const std::vector<std::pair<std::string, Parameter>>& named) {
  std::vector<Parameter> parameters;
  for (const auto& [name, parameter] : named) parameters.push_back(parameter);
  return parameters;
}

}  // namespace

Model::Model(Model&&) noexcept = default;
Model::~Model() = default;

Model::Model(nn::CellFunction network, nn::CellFunction loss, nn::Optimizer* optimizer, ModelOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->network = std::move(network);
  impl_->loss = std::move(loss);
  impl_->optimizer = optimizer;
  impl_->options = std::move(options);
  impl_->capsule_writer = {impl_->options.capsule_path, impl_->options.capsule_at, impl_->processes.communicator()};
  impl_->networks = {impl_->network.cell()};
  if (impl_->loss.defined()) impl_->with_loss = std::make_unique<nn::WithLossCell>(impl_->network, impl_->loss);
  impl_->rng = internal::MakeRngState(GetSeed());
  const ModelOptions& given = impl_->options;
  absl::StatusOr<amp::Precision> precision = internal::ResolveModelOptions(given);
  if (!precision.ok()) {
    impl_->status = precision.status();
    return;
  }
  impl_->precision = *precision;
  impl_->scale_config = precision->loss_scale;
  impl_->status = impl_->UseSession();
  if (impl_->status.ok() && impl_->loss.defined()) impl_->status = impl_->CheckNames();
  if (impl_->status.ok()) impl_->status = impl_->scale_config.Validate();
  if (impl_->status.ok()) impl_->status = given.metrics.status();
  if (impl_->status.ok()) impl_->status = impl_->CheckDevice();
  if (impl_->scaler == nullptr && impl_->scale_config.mode != LossScaleConfig::Mode::kNone) {
    impl_->scaler = std::make_shared<LossScaler>(impl_->scale_config);
    for (std::int64_t loss = 1; loss < precision->num_losses; ++loss) {
      impl_->more_scalers.push_back(std::make_shared<LossScaler>(impl_->scale_config));
      impl_->more_scalers.back()->SetPrefix(absl::StrCat("scaler", loss));
    }
    if (precision->num_losses > 1) impl_->scaler->SetPrefix("scaler0");
  }
  if (given.accumulation_steps < 1 || given.accumulation_steps > kMostAccumulationSteps) {
    impl_->status.Update(
        absl::InvalidArgumentError(absl::StrCat("accumulation_steps must be at least 1 and at most ",
                                                kMostAccumulationSteps, ", got ", given.accumulation_steps)));
  }
  impl_->updates = {given.accumulation_steps, impl_->processes.size(), impl_->processes.is_shared()};
  if (impl_->status.ok()) impl_->status = impl_->CheckUpdates();
  if (given.max_consecutive_skips < 0) {
    impl_->status.Update(absl::InvalidArgumentError(
        absl::StrCat("max_consecutive_skips must be at least 0 (0: never stop), got ", given.max_consecutive_skips)));
  }
}

absl::Status Model::Impl::CheckDevice() const {
  const bool here = device() != GetContext().device || GetContext().arch.empty();
  return runtime::GetTarget(device(), here ? "" : GetContext().arch).status();
}

absl::Status Model::Impl::CheckPredicts() const {
  // Without predicted_network() the network is the step itself, which would train.
  if (user_step == nullptr || network.cell() != user_step) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("Predict: the training step ", user_step->TypeName(),
                   " does not say what it predicts with; override predicted_network() in it"));
}

absl::Status Model::Impl::CheckNoRun(const char* what) const {
  if (!in_train || resumes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, " is called while this Model trains; in a callback RunContext::trained()->SetWeights sets weights, and ",
      "RunContext::trained()->Resume continues a checkpoint in OnTrainBegin"));
}

void Model::BuildStep() {
  if (impl_->status.ok()) impl_->status = impl_->CheckTrainable();
  if (impl_->precision.num_losses > 1) {
    impl_->status.Update(absl::InvalidArgumentError(absl::StrCat("num_losses = ", impl_->precision.num_losses,
                                                                 " given to a Model that trains one loss; a training ",
                                                                 "step of your own takes several")));
  }
  const nn::GradientClip clip{impl_->options.clip_global_norm, impl_->options.clip_value};
  if (impl_->status.ok()) impl_->status = clip.Validate();
  impl_->own_step = std::make_unique<nn::TrainOneStepCell>(*impl_->with_loss, *impl_->optimizer);
  impl_->own_step->set_gradient_clip(clip);
  impl_->step = nn::CellFunction(*impl_->own_step);
  if (impl_->status.ok()) impl_->status = impl_->CheckAccumulation();
}

void Model::UseStep(nn::CellFunction step, nn::TrainingStep& cell) {
  impl_->step = std::move(step);
  impl_->user_step = &cell;
  // Prediction runs what the step trains.
  if (nn::CellFunction predicted = cell.predicted_network(); predicted.defined()) {
    impl_->network = predicted;
    if (impl_->loss.defined()) impl_->with_loss = std::make_unique<nn::WithLossCell>(impl_->network, impl_->loss);
  } else if (impl_->loss.defined()) {
    impl_->status.Update(absl::InvalidArgumentError(
        absl::StrCat("Model: a loss is given to evaluate ", cell.TypeName(),
                     " with, which does not say what it predicts with; override predicted_network()")));
  }
  StepOptions options;
  cell.ConfigureStep(options);
  impl_->status.Update(amp::internal::ApplySession(cell, options));
  impl_->networks = options.networks;
  for (const nn::Optimizer* optimizer : cell.optimizers()) impl_->status.Update(optimizer->status());
  if (const auto* scales = dynamic_cast<const nn::TrainOneStepWithLossScaleCell*>(&cell);
      scales != nullptr && scales->scaler().config().mode != LossScaleConfig::Mode::kNone) {
    if (const std::string scaling = impl_->GivenScaling(); !scaling.empty()) {
      impl_->status.Update(absl::InvalidArgumentError(absl::StrCat(
          "Model: ", scaling, ", but ", cell.TypeName(), " has a manager of its own; leave one of them out")));
    }
  }
  if (impl_->options.clip_global_norm.has_value() || impl_->options.clip_value.has_value()) {
    impl_->status.Update(absl::InvalidArgumentError(
        "clip_global_norm and clip_value act in the Model's own step; clip in this step with ops::ClipByGlobalNorm or "
        "ops::ClipByValue"));
  }
  if (impl_->status.ok()) impl_->status = impl_->CheckAccumulation();
}

const absl::Status& Model::status() const { return impl_->status; }

absl::StatusOr<std::vector<Tensor>> Model::PredictAll(const std::vector<Tensor>& inputs) {
  Impl& self = *impl_;
  const std::scoped_lock lock(self.mutex);
  if (!self.status.ok()) return self.status;
  if (absl::Status predicts = self.CheckPredicts(); !predicts.ok()) return predicts;
  const InferenceMode inference(*self.network.cell());
  absl::StatusOr<CompiledStep*> program = self.Program(
      self.network.cell(), [&](const std::vector<Tensor>& symbolic) { return self.network.Flat(symbolic); }, inputs,
      self.CommonOptions("predict"));
  if (!program.ok()) return program.status();
  if (absl::Status status = (*program)->Run(inputs); !status.ok()) return status;
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < (*program)->num_outputs(); ++i) outputs.push_back((*program)->Output(i));
  return outputs;
}

const std::vector<std::string>& Model::class_names() const { return impl_->class_names; }
std::int64_t Model::global_step() const { return impl_->global_step; }

std::int64_t Model::skipped_steps() const { return impl_->SkippedSteps(); }

double Model::loss_scale(std::int64_t loss_id) const {
  if (!impl_->step_is_scaled) return 1.0;
  const std::vector<const LossScaler*> scalers = impl_->ActiveScalers();
  return loss_id < 0 || loss_id >= static_cast<std::int64_t>(scalers.size())
             ? 1.0
             : scalers[static_cast<std::size_t>(loss_id)]->scale();
}

double Model::loss_scale() const {
  if (!impl_->step_is_scaled) return 1.0;
  const LossScaler* scaler = impl_->ActiveScaler();
  return scaler == nullptr ? 1.0 : scaler->scale();
}

const LossScaleConfig& Model::loss_scale_config() const { return impl_->scale_config; }
const amp::Precision& Model::precision() const { return impl_->precision; }

std::vector<const compiler::CompileResult*> Model::compiled() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->compiled;
}

std::size_t Model::peak_bytes() const {
  const std::scoped_lock lock(impl_->mutex);
  std::size_t peak = 0;
  for (const compiler::CompileResult* result : impl_->compiled) {
    peak = std::max(peak, result->program.planned_bytes());
  }
  return peak;
}

std::vector<Parameter> Model::AllState() const {
  const std::scoped_lock lock(impl_->mutex);
  std::vector<Parameter> state;
  // What a Program binds that is no longer used has the names of what has taken its place.
  const bool traced_is_current = internal::IsCurrent(impl_->traced_facts, impl_->traced_state, impl_->step.cell());
  const auto append = [&](const std::vector<Parameter>& more) {
    for (const Parameter& entry : more) {
      if (std::find(state.begin(), state.end(), entry) == state.end()) state.push_back(entry);
    }
  };
  // A step of the user's own names what it has of the loss that it is evaluated by, and does so last.
  const std::vector<Parameter> of_loss =
      impl_->loss.defined() ? WithoutNames(impl_->loss.cell()->ParametersAndNames()) : std::vector<Parameter>();
  append(WithoutNames(impl_->root()->ParametersAndNames()));
  append(of_loss);
  for (nn::Optimizer* optimizer : impl_->optimizers()) append(optimizer->State());
  for (const LossScaler* scaler : impl_->ActiveScalers()) append(scaler->state());
  append({impl_->rng.seed, impl_->rng.step});
  append(impl_->pass_state->accumulators());
  if (traced_is_current) append(impl_->traced_state);
  // What else a step of the user's own holds: further optimizers.
  for (const auto& [key, program] : impl_->programs) {
    if (program->is_current()) append(program->state());
  }
  return state;
}

std::vector<std::shared_ptr<const runtime::StateEntry>> Model::DerivedState() const {
  const std::scoped_lock lock(impl_->mutex);
  return {impl_->pass_state->derived().begin(), impl_->pass_state->derived().end()};
}

Parameter Model::State(std::string_view name) const {
  for (const Parameter& parameter : AllState()) {
    if (parameter.name() == name) return parameter;
  }
  return {};
}

absl::StatusOr<compiler::Module> Model::TraceTrainStep(const std::vector<TensorSpec>& columns) const {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  if (!impl_->step.defined()) return absl::FailedPreconditionError("this Model has no training step");
  impl_->step.cell()->SetTrain(true);
  return internal::TraceStep(
      impl_->step.cell(), [this](const std::vector<Tensor>& inputs) { return impl_->step.Flat(inputs); }, columns,
      impl_->TrainOptions({}), nullptr);
}

absl::StatusOr<compiler::Module> Model::TracePredict(const std::vector<TensorSpec>& inputs) const {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  if (absl::Status predicts = impl_->CheckPredicts(); !predicts.ok()) return predicts;
  const InferenceMode inference(*impl_->network.cell());
  return internal::TraceStep(
      impl_->network.cell(), [this](const std::vector<Tensor>& symbolic) { return impl_->network.Flat(symbolic); },
      inputs, impl_->CommonOptions("predict"), nullptr);
}

compiler::CompileOptions Model::compile_options(bool training) const {
  StepOptions options = training ? impl_->TrainOptions({}) : impl_->CommonOptions("predict");
  options.compile.function = options.name;
  return options.compile;
}

absl::StatusOr<runtime::Executable*> Model::LoadTrainStep(const std::vector<Tensor>& columns) {
  Impl& self = *impl_;
  const std::scoped_lock lock(self.mutex);
  if (!self.status.ok()) return self.status;
  if (!self.step.defined()) return absl::FailedPreconditionError("this Model has no training step");
  if (absl::Status status = self.CheckOneProgram("LoadTrainStep"); !status.ok()) return status;
  self.step.cell()->SetTrain(true);
  absl::StatusOr<CompiledStep*> program = self.Program(
      self.step.cell(), [&](const std::vector<Tensor>& inputs) { return self.step.Flat(inputs); }, columns,
      self.TrainOptions({}));
  if (!program.ok()) return program.status();
  return &(*program)->executable();
}

}  // namespace mpc
