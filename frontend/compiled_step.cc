#include "frontend/compiled_step.h"

#include <chrono>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "frontend/amp/device_rates.h"
#include "frontend/amp/session.h"
#include "frontend/amp/step_scaler.h"
#include "frontend/context.h"

namespace mpc::internal {
namespace {

/// Writes what tracing reads of the Cells: a change of it asks for another Program.
class StructureWriter : public nn::internal::MemberVisitor {
 public:
  explicit StructureWriter(std::string& out) : out_(out) {}
  void Visit(const std::string& name, nn::Cell& cell) override {
    absl::StrAppend(&out_, "|", name, ":", cell.TypeName(), cell.training() ? "+" : "-");
    if (cell.to_float().has_value()) absl::StrAppend(&out_, std::string(DTypeName(*cell.to_float())));
    if (cell.amp_session() != nullptr) absl::StrAppend(&out_, "amp", cell.amp_session()->id);
    absl::StrAppend(&out_, "{");
    cell.VisitMembers(*this);
    absl::StrAppend(&out_, "}");
  }
  void Visit(const std::string& name, Parameter& parameter) override {
    if (!parameter.defined()) return;
    absl::StrAppend(&out_, "|", name, parameter.requires_grad() ? "+" : "-");
    if (parameter.low_storage().has_value()) absl::StrAppend(&out_, std::string(DTypeName(parameter.dtype())));
  }

 private:
  std::string& out_;
};

std::string NameAt(const std::vector<std::string>& names, std::size_t index, const char* prefix) {
  return index < names.size() ? names[index] : absl::StrCat(prefix, index);
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Stores the parameters low that the step binds low. Only those without masters differ from the trace.
absl::Status StoreLowParameters(const runtime::Program& program, std::vector<Parameter>& state) {
  for (Parameter& parameter : state) {
    for (const runtime::StateBinding& binding : program.state) {
      if (binding.name != parameter.name() || binding.spec.dtype == parameter.dtype()) continue;
      if (absl::Status status = parameter.StoreLow(binding.spec.dtype); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<compiler::Module> TraceStep(nn::Cell* root, const TensorFunction& function,
                                           const std::vector<TensorSpec>& inputs, const StepOptions& options,
                                           std::vector<Parameter>* used, StepFacts* facts) {
  if (absl::Status status = CheckNoUntracedScope(); !status.ok()) return status;
  std::vector<Parameter> parameters;
  if (root != nullptr) {
    for (auto& [name, parameter] : root->ParametersAndNames()) parameters.push_back(parameter);
  }
  Trace trace(options.networks, options.rng);
  trace.set_training(options.training);
  trace.RequestRecords(options.records);
  for (const Parameter& step : options.optimizers) trace.OptimizerPrefix(step);
  if (options.network_outputs.has_value()) trace.SetNetworkOutputs(*options.network_outputs);
  if (root != nullptr) trace.SetRegistered(parameters);
  if (!parameters.empty()) trace.AddInitState(parameters);
  trace.BeginStep(options.name);
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(trace.AddInput(inputs[i], NameAt(options.input_names, i, "input")));
  }
  const std::vector<Tensor> outputs = function(arguments);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back(NameAt(options.output_names, i, "output"));
  trace.EndStep(outputs, names);
  if (used != nullptr) *used = trace.used();
  if (facts != nullptr) {
    *facts = {outputs.size(), {}};
    for (const amp::internal::StepScaler* scaler : trace.Local<amp::internal::StepScaling>().checking()) {
      facts->scalers.push_back({scaler->scaler(), scaler->checked_names()});
    }
  }
  return trace.Finish();
}

absl::StatusOr<std::unique_ptr<CompiledStep>> CompileStep(nn::Cell* root, const TensorFunction& function,
                                                          const std::vector<TensorSpec>& inputs,
                                                          const StepOptions& options) {
  auto step = std::make_unique<CompiledStep>();
  auto start = std::chrono::steady_clock::now();
  std::vector<Parameter> state;
  absl::StatusOr<compiler::Module> module = TraceStep(root, function, inputs, options, &state, &step->facts_);
  if (!module.ok()) return module.status();
  const double trace_seconds = SecondsSince(start);

  compiler::CompileOptions compile = options.compile;
  compile.function = options.name;
  // A step that scales by itself takes no second scaler.
  const bool scales = !step->facts_.scalers.empty();
  if (scales) compile.loss_scale = "none";
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(*module, compile);
  if (!compiled.ok()) return compiled.status();
  step->compiled_ = *std::move(compiled);
  if (compile.level == "auto") {
    for (auto& choice : amp::RateChoices(compile.rates)) step->compiled_.program.choices.push_back(std::move(choice));
  }
  step->compiled_.phases.insert(step->compiled_.phases.begin(), {"trace", trace_seconds, 0});

  if (!scales) state.insert(state.end(), options.scaler.begin(), options.scaler.end());
  const std::shared_ptr<PassState> pass_state =
      options.pass_state != nullptr ? options.pass_state : std::make_shared<PassState>();
  absl::StatusOr<PassState::Bound> added = pass_state->Bind(step->compiled_.program.state, state);
  if (!added.ok()) return added.status();
  state.insert(state.end(), added->accumulators.begin(), added->accumulators.end());
  step->state_ = state;
  start = std::chrono::steady_clock::now();
  if (absl::Status status = InitialiseParameters(state); !status.ok()) return status;
  if (absl::Status status = StoreLowParameters(step->compiled_.program, state); !status.ok()) return status;
  step->compiled_.phases.push_back({"initial values", SecondsSince(start), 0});
  runtime::StateStore store;
  for (const Parameter& parameter : state) {
    if (absl::Status status = store.Add(parameter.entry()); !status.ok()) return status;
  }
  for (const std::shared_ptr<runtime::StateEntry>& entry : added->derived) {
    if (absl::Status status = store.Add(entry); !status.ok()) return status;
  }
  start = std::chrono::steady_clock::now();
  absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(compile.device);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::unique_ptr<runtime::Executable>> executable =
      (*device)->Load(std::make_shared<const runtime::Program>(step->compiled_.program), store);
  if (!executable.ok()) return executable.status();
  step->executable_ = *std::move(executable);
  step->compiled_.phases.push_back({"load", SecondsSince(start), 0});
  step->input_bytes_.resize(step->program().inputs.size());
  for (std::size_t i = 0; i < step->program().outputs.size(); ++i) {
    if (absl::StartsWith(step->program().outputs[i].name, kPrintPrefix)) step->printed_.push_back(i);
  }
  // An instrumented step has measurements only.
  step->num_outputs_ = compile.instrument ? step->program().outputs.size() : step->facts_.num_outputs;
  return step;
}

absl::Status CompiledStep::Run(const std::vector<Tensor>& inputs) {
  if (inputs.size() != input_bytes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the step takes ", input_bytes_.size(), " inputs, got ", inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) input_bytes_[i] = inputs[i].bytes();
  if (absl::Status status = executable_->Run(input_bytes_); !status.ok()) return status;
  if (!printed_.empty()) PrintTaps();
  return absl::OkStatus();
}

void CompiledStep::PrintTaps() const {
  for (const std::size_t index : printed_) {
    std::cout << absl::StripPrefix(program().outputs[index].name, kPrintPrefix) << Output(index) << "\n";
  }
  std::cout << std::flush;
}

Tensor CompiledStep::Tap(std::string_view name) const {
  const std::string record = absl::StrCat(kTapPrefix, std::string(name));
  for (std::size_t i = 0; i < program().outputs.size(); ++i) {
    if (program().outputs[i].name == record) return Output(i);
  }
  return {};
}

Tensor CompiledStep::Output(std::size_t index) const {
  const runtime::NamedValue& output = program().outputs[index];
  const absl::Span<const std::uint8_t> bytes = executable_->output(index);
  return Tensor::FromBytes(program().values[output.value].spec, bytes.data(), bytes.size());
}

std::optional<double> CompiledStep::Record(std::string_view name) const {
  for (std::size_t i = 0; i < program().outputs.size(); ++i) {
    if (program().outputs[i].name != name) continue;
    const absl::StatusOr<double> value = Output(i).TryItem<double>();
    return value.ok() ? std::optional<double>(*value) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<TensorSpec> SpecsOf(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

std::string StepKey(nn::Cell* root, const std::vector<Tensor>& inputs, const StepOptions& options) {
  std::string key = options.name;
  for (const Tensor& input : inputs) absl::StrAppend(&key, "|", input.spec().ToString());
  const compiler::CompileOptions& compile = options.compile;
  absl::StrAppend(&key, "|", compile.level, "|", compile.dtype, "|", compile.keep_batchnorm_fp32, "|",
                  compile.loss_scale, "|", compile.skip, compile.unscale, compile.master_weights, "|", compile.device);
  absl::StrAppend(&key, "|", compile.num_losses, "|", compile.accumulation_steps, "|", compile.instrument);
  if (options.network_outputs.has_value()) absl::StrAppend(&key, "|", std::string(DTypeName(*options.network_outputs)));
  for (const std::string& record : options.records) absl::StrAppend(&key, "|", record);
  if (root != nullptr) StructureWriter(key).Visit("", *root);
  return key;
}

}  // namespace mpc::internal
