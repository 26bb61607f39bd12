#include "frontend/model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/model_impl.h"

namespace mpc {
namespace {

using internal::CompiledStep;
using internal::StepOptions;

bool Match(const std::vector<Tensor>& tensors, const std::vector<TensorSpec>& specs) {
  return std::equal(tensors.begin(), tensors.end(), specs.begin(), specs.end(),
                    [](const Tensor& tensor, const TensorSpec& spec) { return tensor.spec() == spec; });
}

/// Puts the Cell into inference for a while.
class InferenceMode {
 public:
  explicit InferenceMode(nn::Cell& cell) : cell_(cell), was_training_(cell.training()) { cell_.SetTrain(false); }
  ~InferenceMode() { cell_.SetTrain(was_training_); }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  nn::Cell& cell_;
  bool was_training_;
};

}  // namespace

Model::Model(Model&&) noexcept = default;
Model::~Model() = default;

Model::Model(nn::CellFunction network, nn::CellFunction loss, nn::Optimizer* optimizer, ModelOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->network = std::move(network);
  impl_->loss = std::move(loss);
  impl_->optimizer = optimizer;
  impl_->options = std::move(options);
  impl_->networks = {impl_->network.cell()};
  impl_->rng = internal::MakeRngState(GetSeed());
  const ModelOptions& given = impl_->options;
  absl::StatusOr<amp::Precision> precision =
      amp::ParsePrecision(given.amp_level, given.amp_dtype, given.keep_batchnorm_fp32);
  if (!precision.ok()) {
    impl_->status = precision.status();
    return;
  }
  impl_->precision = *precision;
  impl_->scale_config = given.loss_scale_manager.config().value_or(amp::DefaultLossScale(*precision));
  impl_->status = impl_->scale_config.Validate();
  if (impl_->status.ok()) impl_->status = given.metrics.status();
  if (impl_->status.ok()) impl_->status = runtime::GetDevice(impl_->device()).status();
  if (impl_->scale_config.mode != LossScaleConfig::Mode::kNone) {
    impl_->scaler = std::make_unique<LossScaler>(impl_->scale_config);
  }
}

void Model::BuildStep() {
  if (impl_->status.ok()) impl_->status = impl_->CheckTrainable();
  impl_->with_loss = std::make_unique<nn::WithLossCell>(impl_->network, impl_->loss);
  impl_->own_step = std::make_unique<nn::TrainOneStepCell>(*impl_->with_loss, *impl_->optimizer);
  impl_->step = nn::CellFunction(*impl_->own_step);
}

void Model::UseStep(nn::CellFunction step, nn::TrainOneStepCell& cell) {
  impl_->step = std::move(step);
  impl_->user_step = &cell;
  // Prediction runs what the step trains, without the loss where that is a Cell of its own.
  const auto* with_loss = dynamic_cast<nn::WithLossCell*>(cell.trained_network().cell());
  impl_->network = with_loss != nullptr ? with_loss->network() : cell.trained_network();
  StepOptions options;
  cell.ConfigureStep(options);
  impl_->networks = options.networks;
  if (impl_->status.ok()) impl_->status = cell.trained_by().status();
}

const absl::Status& Model::status() const { return impl_->status; }

absl::Status Model::Train(std::int64_t epochs, const data::Dataset& dataset, const CallbackList& callbacks) {
  Impl& self = *impl_;
  if (!self.status.ok()) return self.status;
  if (!self.step.defined()) {
    return absl::FailedPreconditionError(
        "Train needs an optimizer (and a loss), or a training step derived from nn::TrainOneStepCell");
  }
  if (epochs < 1) return absl::InvalidArgumentError(absl::StrCat("epochs must be at least 1, got ", epochs));
  const bool own = self.own_step != nullptr;
  if (own) {
    // Freezing and unfreezing may have changed what is trainable.
    if (absl::Status status = self.CheckTrainable(); !status.ok()) return status;
  }
  const int arity = own && self.network.arity() >= 0 ? self.network.arity() + 1 : self.step.arity();
  if (absl::Status status =
          self.CheckColumns(dataset, arity, own ? "training (the network's inputs and a label)" : "the training step");
      !status.ok()) {
    return status;
  }
  absl::StatusOr<std::int64_t> steps = dataset.size();
  if (!steps.ok()) return steps.status();
  self.step.cell()->SetTrain(true);
  const StepOptions options = self.TrainOptions(dataset.column_names());

  RunContext context;
  context.epochs = epochs;
  context.steps_per_epoch = *steps;
  context.global_step = self.global_step;
  callbacks.OnTrainBegin(context);
  absl::Status failure;
  // The Program of the last step serves the next one while input types and structure stand still.
  CompiledStep* program = nullptr;
  std::vector<TensorSpec> program_inputs;
  std::uint64_t program_structure = 0;
  for (std::int64_t epoch = 1; epoch <= epochs && failure.ok() && !context.stop_requested(); ++epoch) {
    context.epoch = epoch;
    context.step_in_epoch = 0;
    absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(self.epochs_done++);
    if (!rows.ok()) {
      failure = rows.status();
      break;
    }
    callbacks.OnEpochBegin(context);
    data::Row row;
    while (failure.ok() && !context.stop_requested()) {
      absl::StatusOr<bool> more = (*rows)->Next(&row);
      if (!more.ok() || !*more) {
        if (!more.ok()) failure = more.status();
        break;
      }
      ++context.step_in_epoch;
      callbacks.OnStepBegin(context);
      if (program == nullptr || program_structure != internal::StructureVersion() || !Match(row, program_inputs)) {
        absl::StatusOr<CompiledStep*> found = self.Program(
            self.step.cell(), [&](const std::vector<Tensor>& columns) { return self.step.Flat(columns); }, row,
            options);
        if (!found.ok()) {
          failure = found.status();
          break;
        }
        program = *found;
        program_inputs = internal::SpecsOf(row);
        program_structure = internal::StructureVersion();
      }
      failure = program->Run(row);
      if (failure.ok()) failure = self.AfterStep(*program, context);
      if (failure.ok()) callbacks.OnStepEnd(context);
    }
    if (failure.ok()) callbacks.OnEpochEnd(context);
  }
  if (failure.ok()) callbacks.OnTrainEnd(context);
  return failure;
}

absl::StatusOr<std::map<std::string, double>> Model::Eval(const data::Dataset& dataset) {
  Impl& self = *impl_;
  if (!self.status.ok()) return self.status;
  if (!self.loss.defined()) return absl::FailedPreconditionError("Eval needs a Model with a loss");
  const int arity = self.network.arity() >= 0 ? self.network.arity() + 1 : -1;
  if (absl::Status status = self.CheckColumns(dataset, arity, "evaluation (the network's inputs and a label)");
      !status.ok()) {
    return status;
  }
  const InferenceMode inference(*self.network.cell());
  StepOptions options = self.CommonOptions("eval_step");
  options.input_names = dataset.column_names();
  options.output_names = {"loss", "predictions"};
  self.options.metrics.Clear();
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(0);
  if (!rows.ok()) return rows.status();
  data::Row row;
  for (;;) {
    absl::StatusOr<bool> more = (*rows)->Next(&row);
    if (!more.ok()) return more.status();
    if (!*more) break;
    absl::StatusOr<CompiledStep*> program = self.Program(self.network.cell(), self.EvalFunction(), row, options);
    if (!program.ok()) return program.status();
    if (absl::Status status = (*program)->Run(row); !status.ok()) return status;
    absl::Status status = self.options.metrics.Update((*program)->Output(0), (*program)->Output(1), row.back());
    if (!status.ok()) return status;
  }
  absl::StatusOr<std::vector<std::pair<std::string, double>>> values = self.options.metrics.Eval();
  if (!values.ok()) return values.status();
  return std::map<std::string, double>(values->begin(), values->end());
}

absl::StatusOr<std::vector<Tensor>> Model::PredictAll(const std::vector<Tensor>& inputs) {
  Impl& self = *impl_;
  if (!self.status.ok()) return self.status;
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

std::int64_t Model::global_step() const { return impl_->global_step; }

std::int64_t Model::skipped_steps() const {
  const LossScaler* scaler = impl_->ActiveScaler();
  return scaler == nullptr ? 0 : scaler->skipped_steps();
}

double Model::loss_scale() const {
  const LossScaler* scaler = impl_->ActiveScaler();
  return scaler == nullptr ? 1.0 : scaler->scale();
}

const LossScaleConfig& Model::loss_scale_config() const { return impl_->scale_config; }
const amp::Precision& Model::precision() const { return impl_->precision; }
std::vector<const compiler::CompileResult*> Model::compiled() const { return impl_->compiled; }

std::size_t Model::peak_bytes() const {
  std::size_t peak = 0;
  for (const compiler::CompileResult* result : impl_->compiled) {
    peak = std::max(peak, result->program.arena_bytes + result->program.state_bytes());
  }
  return peak;
}

std::vector<Parameter> Model::AllState() const {
  std::vector<Parameter> state;
  for (auto& [name, parameter] : impl_->root()->ParametersAndNames()) state.push_back(parameter);
  const auto append = [&](const std::vector<Parameter>& more) {
    for (const Parameter& entry : more) {
      if (std::find(state.begin(), state.end(), entry) == state.end()) state.push_back(entry);
    }
  };
  if (impl_->optimizer != nullptr) append(impl_->optimizer->State());
  if (impl_->user_step != nullptr) append(impl_->user_step->trained_by().State());
  if (impl_->ActiveScaler() != nullptr) append(impl_->ActiveScaler()->state());
  append({impl_->rng.seed, impl_->rng.step});
  // What else a step of the user's own holds: further optimizers.
  for (const auto& [key, program] : impl_->programs) {
    if (program != nullptr) append(program->state());
  }
  return state;
}

Parameter Model::State(std::string_view name) const {
  for (const Parameter& parameter : AllState()) {
    if (parameter.name() == name) return parameter;
  }
  return {};
}

absl::StatusOr<compiler::Module> Model::TraceTrainStep(const std::vector<TensorSpec>& columns) const {
  if (!impl_->status.ok()) return impl_->status;
  if (!impl_->step.defined()) return absl::FailedPreconditionError("this Model has no training step");
  impl_->step.cell()->SetTrain(true);
  return internal::TraceStep(
      impl_->step.cell(), [this](const std::vector<Tensor>& inputs) { return impl_->step.Flat(inputs); }, columns,
      impl_->TrainOptions({}), nullptr);
}

absl::StatusOr<compiler::Module> Model::TracePredict(const std::vector<TensorSpec>& inputs) const {
  if (!impl_->status.ok()) return impl_->status;
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

}  // namespace mpc
