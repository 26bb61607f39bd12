#include "frontend/train/model.h"

#include <algorithm>

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
    : impl_(std::make_unique<Impl>(std::move(network), std::move(loss), optimizer, std::move(options))) {}

Model::Impl::Impl(nn::CellFunction network, nn::CellFunction loss, nn::Optimizer* optimizer, ModelOptions given)
    : cells(std::move(network), std::move(loss), optimizer), options(std::move(given)) {
  capsule_writer = {options.capsule_path, options.capsule_at, processes.communicator()};
  rng = internal::MakeRngState(GetSeed());
  absl::StatusOr<amp::Precision> resolved = internal::ResolveModelOptions(options);
  if (!resolved.ok()) {
    status = resolved.status();
    return;
  }
  precision = *resolved;
  scalers.Configure(precision.loss_scale);
  status = UseSession();
  if (status.ok() && cells.has_loss()) status = cells.CheckNames();
  if (status.ok()) status = scalers.config().Validate();
  if (status.ok()) status = options.metrics.status();
  if (status.ok()) status = CheckDevice();
  scalers.Create(resolved->num_losses);
  if (options.accumulation_steps < 1 || options.accumulation_steps > kMostAccumulationSteps) {
    status.Update(
        absl::InvalidArgumentError(absl::StrCat("accumulation_steps must be at least 1 and at most ",
                                                kMostAccumulationSteps, ", got ", options.accumulation_steps)));
  }
  updates = {options.accumulation_steps, processes.size(), processes.is_shared()};
  if (status.ok()) status = CheckUpdates();
  if (options.max_consecutive_skips < 0) {
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("max_consecutive_skips must be at least 0 (0: never stop), got ", options.max_consecutive_skips)));
  }
}

absl::Status Model::Impl::CheckDevice() const {
  const bool here = device() != GetContext().device || GetContext().arch.empty();
  return runtime::GetTarget(device(), here ? "" : GetContext().arch).status();
}

void Model::BuildStep() {
  if (impl_->status.ok()) impl_->status = impl_->cells.CheckTrainable(impl_->scalers.config());
  if (impl_->precision.num_losses > 1) {
    impl_->status.Update(absl::InvalidArgumentError(absl::StrCat("num_losses = ", impl_->precision.num_losses,
                                                                 " given to a Model that trains one loss; a training ",
                                                                 "step of your own takes several")));
  }
  const nn::GradientClip clip{impl_->options.clip_global_norm, impl_->options.clip_value};
  if (impl_->status.ok()) impl_->status = clip.Validate();
  if (impl_->status.ok()) impl_->status = impl_->CheckClipping();
  impl_->cells.BuildStep(clip);
  if (impl_->status.ok()) impl_->status = impl_->CheckAccumulation();
}

void Model::UseStep(nn::CellFunction step, nn::TrainingStep& cell) {
  impl_->status.Update(impl_->cells.UseStep(std::move(step), cell));
  impl_->scalers.UseStep(cell);
  StepOptions options;
  cell.ConfigureStep(options);
  impl_->status.Update(amp::internal::ApplySession(cell, options));
  impl_->cells.SetPrecisionNetworks(options.networks);
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
  if (absl::Status predicts = self.cells.CheckPredicts(); !predicts.ok()) return predicts;
  const InferenceMode inference(*self.cells.network());
  absl::StatusOr<CompiledStep*> program =
      self.Program(self.cells.network(), self.cells.NetworkFunction(), inputs, self.CommonOptions("predict"));
  if (!program.ok()) return program.status();
  if (absl::Status status = (*program)->Run(inputs); !status.ok()) return status;
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < (*program)->num_outputs(); ++i) outputs.push_back((*program)->Output(i));
  return outputs;
}

const std::vector<std::string>& Model::class_names() const { return impl_->position.class_names(); }
std::int64_t Model::global_step() const { return impl_->position.global_step(); }

std::int64_t Model::skipped_steps() const { return impl_->scalers.skipped_steps(); }

double Model::loss_scale(std::int64_t loss_id) const { return impl_->scalers.scale(loss_id); }

double Model::loss_scale() const { return impl_->scalers.scale(); }

const LossScaleConfig& Model::loss_scale_config() const { return impl_->scalers.config(); }
const amp::Precision& Model::precision() const { return impl_->precision; }

std::vector<const compiler::CompileResult*> Model::compiled() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->programs.compiled();
}

std::size_t Model::peak_bytes() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->programs.peak_bytes();
}

std::vector<Parameter> Model::AllState() const {
  const std::scoped_lock lock(impl_->mutex);
  std::vector<Parameter> state;
  // What a Program binds that is no longer used has the names of what has taken its place.
  const std::vector<Parameter> learned = impl_->learned.StateOf(impl_->cells.step());
  const auto append = [&](const std::vector<Parameter>& more) {
    for (const Parameter& entry : more) {
      if (std::find(state.begin(), state.end(), entry) == state.end()) state.push_back(entry);
    }
  };
  // A step of the user's own names what it has of the loss that it is evaluated by, and does so last.
  const std::vector<Parameter> of_loss =
      impl_->cells.has_loss() ? WithoutNames(impl_->cells.loss()->ParametersAndNames()) : std::vector<Parameter>();
  append(WithoutNames(impl_->cells.root()->ParametersAndNames()));
  append(of_loss);
  for (nn::Optimizer* optimizer : impl_->cells.optimizers()) append(optimizer->State());
  for (const LossScaler* scaler : impl_->scalers.all()) append(scaler->state());
  append({impl_->rng.seed, impl_->rng.step});
  append(impl_->pass_state->accumulators());
  append(learned);
  // What else a step of the user's own holds: further optimizers.
  for (const CompiledStep* program : impl_->programs.all()) {
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
  if (impl_->cells.step() == nullptr) return absl::FailedPreconditionError("this Model has no training step");
  impl_->cells.step()->SetTrain(true);
  return internal::TraceStep(impl_->cells.step(), impl_->cells.StepFunction(), columns, impl_->TrainOptions({}),
                             nullptr);
}

absl::StatusOr<compiler::Module> Model::TracePredict(const std::vector<TensorSpec>& inputs) const {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  if (absl::Status predicts = impl_->cells.CheckPredicts(); !predicts.ok()) return predicts;
  const InferenceMode inference(*impl_->cells.network());
  return internal::TraceStep(impl_->cells.network(), impl_->cells.NetworkFunction(), inputs,
                             impl_->CommonOptions("predict"), nullptr);
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
  if (self.cells.step() == nullptr) return absl::FailedPreconditionError("this Model has no training step");
  if (absl::Status status = self.CheckOneProgram("LoadTrainStep"); !status.ok()) return status;
  self.cells.step()->SetTrain(true);
  absl::StatusOr<CompiledStep*> program =
      self.Program(self.cells.step(), self.cells.StepFunction(), columns, self.TrainOptions({}));
  if (!program.ok()) return program.status();
  return &(*program)->executable();
}

}  // namespace mpc
