// Which Programs a Model compiles, and with which options.

#include "absl/strings/str_cat.h"
#include "frontend/distributed/distributed.h"
#include "frontend/graph/amp_session.h"
#include "frontend/graph/device_rates.h"
#include "frontend/train/model_impl.h"

namespace mpc {

using internal::CompiledStep;
using internal::ProgramCache;
using internal::StepOptions;

StepOptions Model::Impl::CommonOptions(const char* name) const {
  StepOptions common;
  common.name = name;
  common.networks = cells.precision_networks();
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
  train.compile.loss_scale = std::string(scalers.config().mode_name());
  train.compile.skip = scalers.config().skip;
  train.compile.unscale = scalers.config().unscale;
  if (scalers.config().mode == LossScaleConfig::Mode::kStatic && !scalers.config().unscale) {
    train.divided_scale = scalers.config().init;
  }
  train.compile.num_losses = precision.num_losses;
  train.compile.accumulation_steps = options.accumulation_steps;
  internal::ShareGradients(processes.options(), processes.size(), train);
  // Where training is not spread over the group, a step may still exchange tensors in it.
  train.load.communicator = processes.size() > 1 ? processes.communicator() : distributed::internal::GetCommunicator();
  train.scaler = scalers.OwnState();
  if (cells.user_step() != nullptr) {
    // A step of the user's own brings its own wrap, if any.
    StepOptions own = train;
    own.optimizers.clear();
    cells.step()->ConfigureStep(own);
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
  decision.ApplyTo(compile, step_options.training);
  // A device that is only compiled for cannot be measured: the pass has rates of its own.
  if (compile.level != "auto" || !compile.arch.empty()) return step_options;
  if (const std::optional<compiler::DeviceRates> decided = resumed.Rates(); decided.has_value()) {
    compile.rates = *decided;
    return step_options;
  }
  absl::StatusOr<compiler::DeviceRates> rates = amp::MeasureDeviceRates(compile.device, precision.dtype);
  if (!rates.ok()) return rates.status();
  rates = AgreeOnRates(*rates);
  if (!rates.ok()) return rates.status();
  compile.rates = *rates;
  return step_options;
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
  const auto key = [&] { return ProgramCache::KeyOf(root, inputs, step_options, decision); };
  const std::string asked = key();
  if (CompiledStep* known = programs.Find(asked); known != nullptr) return known;
  programs.ForgetReplaced();
  absl::StatusOr<StepOptions> precise = WithPrecision(step_options);
  if (!precise.ok()) return precise.status();
  absl::StatusOr<std::unique_ptr<CompiledStep>> fresh =
      internal::CompileStep(root, function, internal::SpecsOf(inputs), *precise);
  if (!fresh.ok()) return fresh.status();
  if (absl::Status status = CompareProgram(**fresh, step_options); !status.ok()) return status;
  const internal::StepFacts& facts = (*fresh)->facts();
  if (cells.user_step() != nullptr && step_options.training) {
    if (absl::Status status = CheckOwnStep(facts, (*fresh)->program()); !status.ok()) return status;
    learned.NoteCompiled(facts);
    scalers.NoteWrap(facts);
  }
  SayWhatIsStoredLow();
  decision.Keep((*fresh)->compiled().assignment, step_options.training);
  CompiledStep& kept = programs.Keep(asked, key(), *std::move(fresh));
  scalers.NoteCalled(kept.facts());
  WarnOfChoices(kept.program());
  for (const std::string& remark : kept.compiled().remarks) remarks.SayOnce(remark, "remark: " + remark);
  return &kept;
}

void Model::Impl::SayWhatIsStoredLow() {
  if (!precision.master_weights) return;
  std::vector<std::string> names;
  std::string dtype;
  for (const auto& [name, parameter] : cells.root()->ParametersAndNames()) {
    if (!parameter.low_storage().has_value()) continue;
    names.push_back(name);
    dtype = std::string(DTypeName(*parameter.low_storage()));
  }
  if (names.empty()) return;
  const std::string remark = absl::StrCat(
      "level ", precision.level, " with master weights, but ", names.front(),
      names.size() > 1 ? absl::StrCat(" and ", names.size() - 1, " more parameters are") : std::string(" is"),
      " stored in ", dtype, " since a step with master_weights = false: every update is rounded to it");
  remarks.SayOnce(remark, "remark: " + remark);
}

}  // namespace mpc
