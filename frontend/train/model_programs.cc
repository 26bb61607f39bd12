// Which Programs a Model compiles, and with which options.

#include <iterator>

#include "absl/strings/str_cat.h"
#include "frontend/distributed/distributed.h"
#include "frontend/graph/amp_session.h"
#include "frontend/graph/device_rates.h"
#include "frontend/graph/step_key.h"
#include "frontend/train/model_impl.h"

namespace mpc {

using internal::CompiledStep;
using internal::StepOptions;

StepOptions Model::Impl::CommonOptions(const char* name) const {
  StepOptions common;
  common.name = name;
  common.networks = networks;
  common.rng = rng;
  common.pass_state = pass_state;
  amp::internal::SetPrecision(precision, common);
  internal::UseDevice(device(), common);
  if (options.record_gradient_norm) common.records.push_back("gradient_norm");
  if (options.record_learning_rate) common.records.push_back("learning_rate");
  if (options.record_state_hash) common.records.push_back("state_hash");
  return common;
}

StepOptions Model::Impl::TrainOptions(const std::vector<std::string>& columns) const {
  StepOptions train = CommonOptions(internal::kTrainStep);
  train.training = true;
  if (device() == GetContext().device) train.load.steps_per_launch = GetContext().steps_per_launch;
  train.input_names = columns;
  train.output_names = {"loss"};
  train.compile.loss_scale = std::string(scale_config.mode_name());
  train.compile.skip = scale_config.skip;
  train.compile.unscale = scale_config.unscale;
  if (scale_config.mode == LossScaleConfig::Mode::kStatic && !scale_config.unscale) {
    train.divided_scale = scale_config.init;
  }
  train.compile.num_losses = precision.num_losses;
  train.compile.accumulation_steps = options.accumulation_steps;
  internal::ShareGradients(processes.options(), processes.size(), train);
  // Where training is not spread over the group, a step may still exchange tensors in it.
  train.load.communicator = processes.size() > 1 ? processes.communicator() : distributed::internal::GetCommunicator();
  if (scaler != nullptr) train.scaler = scaler->state();
  for (const auto& more : more_scalers)
    train.scaler.insert(train.scaler.end(), more->state().begin(), more->state().end());
  if (user_step != nullptr) {
    // A step of the user's own brings its own wrap, if any.
    StepOptions own = train;
    own.optimizers.clear();
    step.cell()->ConfigureStep(own);
    train.optimizers = own.optimizers;
    if (own.compile.loss_scale != "none") {
      train.compile.loss_scale = own.compile.loss_scale;
      train.compile.skip = own.compile.skip;
      train.compile.unscale = own.compile.unscale;
      if (own.scaler != train.scaler) train.compile.num_losses = 1;
      train.scaler = own.scaler;
    }
  }
  return train;
}

StepOptions Model::Impl::OptionsBeforeLast(StepOptions train) {
  train.name = internal::kAccumulateStep;
  train.compile.last_micro_step = false;
  return train;
}

absl::StatusOr<StepOptions> Model::Impl::WithPrecision(StepOptions step_options) const {
  compiler::CompileOptions& compile = step_options.compile;
  // What Predict and Eval found before there was a training graph does not bind it.
  if (assignment_is_trained || !step_options.training) compile.assignment = assignment;
  // A device that is only compiled for cannot be measured: the pass has rates of its own.
  if (compile.level != "auto" || !compile.arch.empty()) return step_options;
  for (const auto& [signature, choices] : resumed.choices) {
    if (const std::optional<compiler::DeviceRates> rates = amp::RatesFromChoices(choices); rates.has_value()) {
      compile.rates = *rates;
      return step_options;
    }
  }
  absl::StatusOr<compiler::DeviceRates> rates = amp::MeasureDeviceRates(compile.device, precision.dtype);
  if (!rates.ok()) return rates.status();
  rates = AgreeOnRates(*rates);
  if (!rates.ok()) return rates.status();
  compile.rates = *rates;
  return step_options;
}

void Model::Impl::KeepAssignment(const compiler::PrecisionMap& decided, bool training) {
  if (!training && assignment_is_trained) return;
  // Without a training graph the new assignment only adds to the old one.
  if (training && decided != assignment) ++assignment_version;
  assignment = decided;
  assignment_is_trained |= training && !decided.empty();
}

absl::StatusOr<CompiledStep*> Model::Impl::Program(nn::Cell* root, const internal::TensorFunction& function,
                                                   const std::vector<Tensor>& inputs, const StepOptions& step_options) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].status().ok() || !inputs[i].concrete()) {
      return inputs[i].defined() && !inputs[i].status().ok()
                 ? inputs[i].status()
                 : absl::InvalidArgumentError(absl::StrCat("input ", i, " is not a concrete tensor"));
    }
  }
  // Parameters that are stored low from now on are part of the key, and so is the assignment.
  const auto key = [&] { return absl::StrCat(internal::StepKey(root, inputs, step_options), "|", assignment_version); };
  const std::string asked = key();
  auto known = KnownProgram(asked);
  if (known == programs.end()) {
    ForgetReplaced();
    absl::StatusOr<StepOptions> precise = WithPrecision(step_options);
    if (!precise.ok()) return precise.status();
    absl::StatusOr<std::unique_ptr<CompiledStep>> fresh =
        internal::CompileStep(root, function, internal::SpecsOf(inputs), *precise);
    if (!fresh.ok()) return fresh.status();
    const CompiledStep& step_run = **fresh;
    if (absl::Status status = CompareProgram(step_run, step_options); !status.ok()) return status;
    if (user_step != nullptr && step_options.training) {
      if (absl::Status status = CheckOwnStep(step_run.facts(), step_run.program()); !status.ok()) return status;
      step_rates = step_run.facts().rates;
      step_is_scaled = step_run.facts().wrapped || !step_run.facts().scalers.empty();
    }
    SayWhatIsStoredLow();
    KeepAssignment(step_run.compiled().assignment, step_options.training);
    const std::string traced = key();
    if (traced != asked) keys_after_tracing[asked] = traced;
    if (const auto same = programs.find(traced); same != programs.end()) GiveUp(same);
    known = programs.emplace(traced, *std::move(fresh)).first;
    compiled.push_back(&step_run.compiled());
    if (!step_run.facts().scalers.empty()) step_scalers = step_run.facts().scalers;
    CompareChoices(step_run);
    for (const std::string& remark : step_run.compiled().remarks) {
      if (said.insert(remark).second) Say("remark: " + remark);
    }
  }
  return known->second.get();
}

Model::Impl::ProgramMap::iterator Model::Impl::KnownProgram(const std::string& asked) {
  if (const auto known = programs.find(asked); known != programs.end()) {
    return known->second->facts().PartsAreThere() ? known : programs.end();
  }
  const auto traced = keys_after_tracing.find(asked);
  const auto known = traced == keys_after_tracing.end() ? programs.end() : programs.find(traced->second);
  return known != programs.end() && known->second->is_current() ? known : programs.end();
}

Model::Impl::ProgramMap::iterator Model::Impl::GiveUp(ProgramMap::iterator program) {
  std::erase(compiled, &program->second->compiled());
  if (runs > 0) replaced.push_back(std::move(program->second));
  return programs.erase(program);
}

void Model::Impl::ForgetReplaced() {
  for (auto program = programs.begin(); program != programs.end();) {
    program = program->second->is_current() ? std::next(program) : GiveUp(program);
  }
  std::erase_if(measuring, [](const auto& program) { return !program.second->is_current(); });
  std::erase_if(keys_after_tracing, [this](const auto& keys) { return !programs.contains(keys.second); });
}

void Model::Impl::SayWhatIsStoredLow() {
  if (!precision.master_weights) return;
  std::vector<std::string> names;
  std::string dtype;
  for (const auto& [name, parameter] : root()->ParametersAndNames()) {
    if (!parameter.low_storage().has_value()) continue;
    names.push_back(name);
    dtype = std::string(DTypeName(*parameter.low_storage()));
  }
  if (names.empty()) return;
  const std::string remark = absl::StrCat(
      "level ", precision.level, " with master weights, but ", names.front(),
      names.size() > 1 ? absl::StrCat(" and ", names.size() - 1, " more parameters are") : std::string(" is"),
      " stored in ", dtype, " since a step with master_weights = false: every update is rounded to it");
  if (said.insert(remark).second) Say("remark: " + remark);
}

internal::TensorFunction Model::Impl::EvalFunction() const {
  return [this](const std::vector<Tensor>& columns) {
    const std::vector<Tensor> data(columns.begin(), columns.end() - 1);
    const std::vector<Tensor> predictions = network.Flat(data);
    std::vector<Tensor> for_loss = predictions;
    for_loss.push_back(columns.back());
    return std::vector<Tensor>{loss.Flat(for_loss).at(0), predictions.front()};
  };
}

}  // namespace mpc
