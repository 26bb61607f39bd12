#include "frontend/model.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/compiled_step.h"
#include "frontend/context.h"

namespace mpc {
namespace {

using internal::CompiledStep;
using internal::StepOptions;

std::vector<TensorSpec> SpecsOf(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

bool Match(const std::vector<Tensor>& tensors, const std::vector<TensorSpec>& specs) {
  return std::equal(tensors.begin(), tensors.end(), specs.begin(), specs.end(),
                    [](const Tensor& tensor, const TensorSpec& spec) { return tensor.spec() == spec; });
}

/// Mean of a loss of any shape: what monitors and records show.
float MeanOf(const Tensor& loss) {
  double sum = 0;
  const std::vector<float> values = loss.ToFloats();
  for (float value : values) sum += value;
  return static_cast<float>(sum / static_cast<double>(values.size()));
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

struct Model::Impl {
  absl::Status status;
  nn::CellFunction network;
  nn::CellFunction loss;
  nn::CellFunction step;  ///< the training step; undefined: this Model cannot train
  nn::TrainOneStepCell* user_step = nullptr;  ///< `step`, where the user gave it
  nn::Optimizer* optimizer = nullptr;
  ModelOptions options;
  amp::Precision precision;
  LossScaleConfig scale_config;
  std::unique_ptr<LossScaler> scaler;
  internal::RngState rng;
  std::vector<const nn::Cell*> networks;

  std::unique_ptr<nn::WithLossCell> with_loss;        ///< of a Model of network, loss and optimizer
  std::unique_ptr<nn::TrainOneStepCell> own_step;

  std::map<std::string, std::unique_ptr<CompiledStep>> programs;
  std::vector<const compiler::CompileResult*> compiled;
  std::int64_t global_step = 0;
  std::int64_t epochs_done = 0;
  bool in_overflow_run = false;
  bool warned_about_nan = false;

  std::string device() const { return options.device.empty() ? GetContext().device : options.device; }

  StepOptions CommonOptions(const char* name) const {
    StepOptions common;
    common.name = name;
    common.networks = networks;
    common.rng = rng;
    common.compile.level = precision.level;
    common.compile.dtype = std::string(DTypeName(precision.dtype));
    if (precision.keep_batchnorm_fp32.has_value()) {
      common.compile.keep_batchnorm_fp32 = *precision.keep_batchnorm_fp32 ? "true" : "false";
    }
    common.compile.device = device();
    return common;
  }

  StepOptions TrainOptions(const std::vector<std::string>& columns) const {
    StepOptions train = CommonOptions("train_step");
    train.training = true;
    train.input_names = columns;
    train.output_names = {"loss"};
    train.compile.loss_scale = std::string(scale_config.mode_name());
    train.compile.skip = scale_config.skip;
    train.compile.unscale = scale_config.unscale;
    if (scaler != nullptr) train.scaler = scaler->state();
    if (user_step != nullptr) {
      // A step of the user's own brings its own wrap, if any.
      StepOptions own = train;
      step.cell()->ConfigureStep(own);
      if (own.compile.loss_scale != "none") {
        train.compile.loss_scale = own.compile.loss_scale;
        train.compile.skip = own.compile.skip;
        train.compile.unscale = own.compile.unscale;
        train.scaler = own.scaler;
      }
    }
    return train;
  }

  /// The Program of `function` for these inputs.
  absl::StatusOr<CompiledStep*> Program(nn::Cell* root, const internal::TensorFunction& function,
                                        const std::vector<Tensor>& inputs, const StepOptions& step_options) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined() || !inputs[i].status().ok() || !inputs[i].concrete()) {
        return inputs[i].defined() && !inputs[i].status().ok()
                   ? inputs[i].status()
                   : absl::InvalidArgumentError(absl::StrCat("input ", i, " is not a concrete tensor"));
      }
    }
    std::unique_ptr<CompiledStep>& slot = programs[internal::StepKey(root, inputs, step_options)];
    if (slot == nullptr) {
      absl::StatusOr<std::unique_ptr<CompiledStep>> fresh =
          internal::CompileStep(root, function, SpecsOf(inputs), step_options);
      if (!fresh.ok()) return fresh.status();
      slot = *std::move(fresh);
      compiled.push_back(&slot->compiled());
      for (const std::string& remark : slot->compiled().remarks) std::cerr << "remark: " << remark << "\n";
    }
    return slot.get();
  }

  internal::TensorFunction EvalFunction() const {
    return [this](const std::vector<Tensor>& columns) {
      const std::vector<Tensor> data(columns.begin(), columns.end() - 1);
      const std::vector<Tensor> predictions = network.Flat(data);
      std::vector<Tensor> for_loss = predictions;
      for_loss.push_back(columns.back());
      return std::vector<Tensor>{loss.Flat(for_loss).at(0), predictions.front()};
    };
  }

  /// The Cell whose paths name the Parameters.
  nn::Cell* root() const { return user_step != nullptr ? user_step : network.cell(); }

  /// The scaler that acts: the Model's, or that of a step of the user's own. Null: none.
  const LossScaler* ActiveScaler() const {
    const auto* own = dynamic_cast<const nn::TrainOneStepWithLossScaleCell*>(user_step);
    return own != nullptr ? &own->scaler() : scaler.get();
  }

  absl::Status CheckTrainable() const;
  absl::Status CheckColumns(const data::Dataset& dataset, int arity, const char* what) const;
  absl::Status AfterStep(const CompiledStep& step_run, RunContext& context);
  std::string GradientName(std::int64_t index) const;
};

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

absl::Status Model::Impl::CheckTrainable() const {
  if (!optimizer->status().ok()) return optimizer->status();
  std::vector<std::string> unowned;
  const std::vector<Parameter>& owned = optimizer->parameters();
  for (auto& [name, parameter] : network.cell()->ParametersAndNames()) {
    if (parameter.requires_grad() && std::find(owned.begin(), owned.end(), parameter) == owned.end()) {
      unowned.push_back(name);
    }
  }
  if (!unowned.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no optimizer updates ", absl::StrJoin(unowned, ", "),
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
  const std::string where = absl::StrCat("epoch ", context.epoch, " step ", context.step_in_epoch);
  if (!finite.has_value()) {
    if (!std::isfinite(context.loss()) && !warned_about_nan) {
      std::cerr << "warning: " << where << ": the loss is " << context.loss()
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
  const std::string culprit =
      first_bad < 0 ? "the loss is not finite" : absl::StrCat("the gradient of ", GradientName(first_bad), " is not finite");
  if (!in_overflow_run) {
    std::cerr << "overflow at " << where << ": " << culprit << "; loss scale " << run.Record("loss_scale").value_or(1)
              << " -> " << state->scale() << (skips ? "; step skipped\n" : "\n");
  }
  in_overflow_run = true;
  const bool stuck = state->config().mode != LossScaleConfig::Mode::kDynamic ||
                     state->scale() <= std::max(1.0, state->config().minimum);
  if (skips && stuck && options.max_consecutive_skips > 0 &&
      state->consecutive_skips() >= options.max_consecutive_skips) {
    return absl::FailedPreconditionError(absl::StrCat(
        where, ": ", state->consecutive_skips(), " steps in a row were not finite at loss scale ", state->scale(),
        ", which cannot shrink any more: ", culprit));
  }
  return absl::OkStatus();
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
  if (absl::Status status = self.CheckColumns(dataset, arity, own ? "training (the network's inputs and a label)" : "the training step");
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
            self.step.cell(), [&](const std::vector<Tensor>& columns) { return self.step.Flat(columns); }, row, options);
        if (!found.ok()) {
          failure = found.status();
          break;
        }
        program = *found;
        program_inputs = SpecsOf(row);
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
  if (absl::Status status = self.CheckColumns(dataset, arity, "evaluation (the network's inputs and a label)"); !status.ok()) {
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
