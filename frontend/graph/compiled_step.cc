#include "frontend/graph/compiled_step.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/dialect/record_names.h"
#include "frontend/graph/amp_session.h"
#include "frontend/graph/cell_members.h"
#include "frontend/graph/class_labels.h"
#include "frontend/graph/context_fields.h"
#include "frontend/graph/device_rates.h"
#include "frontend/graph/eager.h"
#include "frontend/graph/step_scaler.h"
#include "kernels/communicator.h"
#include "runtime/state_record.h"

namespace mpc::internal {
namespace {

/// Writes what tracing reads of the Cells. A change of it asks for another Program.
class StructureWriter : public nn::internal::MemberVisitor {
 public:
  explicit StructureWriter(std::string& out) : out_(out) {}
  void Visit(const std::string& name, nn::Cell& cell) override {
    absl::StrAppend(&out_, "|", name, ":", cell.TypeName(), cell.training() ? "+" : "-");
    if (cell.to_float().has_value()) absl::StrAppend(&out_, std::string(DTypeName(*cell.to_float())));
    if (cell.recompute()) absl::StrAppend(&out_, "recompute");
    absl::StrAppend(&out_, cell.variant());
    if (cell.amp_session() != nullptr) absl::StrAppend(&out_, "amp", cell.amp_session()->id);
    absl::StrAppend(&out_, "{");
    cell.VisitMembers(*this);
    absl::StrAppend(&out_, "}");
  }
  void Visit(const std::string& name, Parameter& parameter) override {
    if (!parameter.defined()) return;
    // A Program keeps the entries that it uses: no other one has such an address meanwhile.
    absl::StrAppend(&out_, "|", name, parameter.requires_grad() ? "+" : "-", absl::Hex(parameter.entry().get()));
    if (parameter.low_storage().has_value()) absl::StrAppend(&out_, std::string(DTypeName(parameter.dtype())));
  }

 private:
  std::string& out_;
};

/// Whether `root` is a training step that nobody has put into training mode, with no Cell below it either.
bool IsStepInInference(nn::Cell* root, const StepOptions& options) {
  if (root == nullptr || !root->is_training_step() || !options.training) return false;
  bool trains = false;
  nn::internal::ForEachCell(*root, [&](nn::Cell& cell) { trains = trains || cell.training(); });
  return !trains;
}

/// Fails where the mode of such a step makes a difference.
void CheckModeDoesNotMatter(const nn::Cell& step, Trace& trace) {
  if (!trace.in_inference().has_value()) return;
  const std::string& path = *trace.in_inference();
  trace.Fail(absl::StrCat(step.TypeName(), " trains, but is in inference mode with all of its Cells, and ",
                          path.empty() ? "it" : absl::StrCat("'", path, "'"), " asks for its mode; call SetTrain() ",
                          "on the step first, then SetTrain(false) on Cells that are to stay in inference"));
}

StepProcesses ProcessesOf(const StepOptions& options) {
  return {.count = options.load.communicator == nullptr ? 1 : options.load.communicator->size(),
          .shares_gradients = options.compile.processes > 1,
          .gradients_mean = options.compile.gradients_mean,
          .is_wrapped = options.compile.loss_scale != "none",
          .accumulation_steps = options.compile.accumulation_steps,
          .weighs_elements = options.weighs_elements};
}

std::string NameAt(const std::vector<std::string>& names, std::size_t index, const char* prefix) {
  return index < names.size() ? names[index] : absl::StrCat(prefix, index);
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

absl::StatusOr<compiler::Module> TraceStep(nn::Cell* root, const TensorFunction& function,
                                           const std::vector<TensorSpec>& inputs, const StepOptions& options,
                                           std::vector<Parameter>* used, StepFacts* facts) {
  if (absl::Status status = CheckNoUntracedScope(); !status.ok()) return status;
  const bool in_inference = IsStepInInference(root, options);
  std::vector<Parameter> parameters;
  if (root != nullptr) {
    for (auto& [name, parameter] : root->ParametersAndNames()) parameters.push_back(parameter);
  }
  Trace trace({.networks = options.networks,
               .network_outputs = options.network_outputs,
               .rng = options.rng,
               .training = options.training,
               .registered = root != nullptr ? std::optional(parameters) : std::nullopt,
               .optimizers = options.optimizers,
               .records = options.records,
               .divided_scale = options.divided_scale,
               .processes = ProcessesOf(options)});
  if (!parameters.empty()) trace.AddInitState(parameters);
  trace.BeginStep(options.name);
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(trace.AddInput(inputs[i], NameAt(options.input_names, i, "input")));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // An operation outside a Cell may be a cast, which takes every type but u8.
    const bool may_be_cast = root == nullptr && inputs[i].dtype != DType::kU8;
    if (may_be_cast || (inputs[i].dtype != DType::kF64 && !InfoOf(inputs[i].dtype).cast_only)) continue;
    trace.Fail(absl::StrCat("input '", NameAt(options.input_names, i, "input"), "' is ", inputs[i].ToString(),
                            ", and no kernel computes in ", std::string(DTypeName(inputs[i].dtype)),
                            "; cast it first, as with x.To(DType::kF32)"));
  }
  const std::vector<Tensor> outputs = function(arguments);
  if (in_inference) CheckModeDoesNotMatter(*root, trace);
  // A Cell that is read and not called makes a difference, too.
  if (root != nullptr) nn::internal::ForEachCell(*root, [&](nn::Cell& cell) { trace.NotePart(cell.identity()); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back(NameAt(options.output_names, i, "output"));
  trace.EndStep(outputs, names);
  if (used != nullptr) *used = trace.state().used();
  if (facts != nullptr) {
    *facts = {.num_outputs = outputs.size(), .rates = trace.updates().rates(), .labels = trace.report().labels()};
    for (const amp::internal::StepScaler* scaler : trace.locals().Get<amp::internal::StepScaling>().checking()) {
      facts->scalers.push_back({scaler->scaler(), scaler->checked_names(), scaler->updates()});
    }
    std::copy_if(trace.parts().begin(), trace.parts().end(), std::back_inserter(facts->parts),
                 [](const Identity::Mark& part) { return !part.expired(); });
  }
  return trace.Finish();
}

bool StepFacts::PartsAreThere() const {
  return std::none_of(parts.begin(), parts.end(), [](const Identity::Mark& part) { return part.expired(); });
}

bool IsCurrent(const StepFacts& facts, absl::Span<const Parameter> state, nn::Cell* root) {
  if (!facts.PartsAreThere()) return false;
  if (root == nullptr) return true;
  std::set<const runtime::StateEntry*> entries;
  nn::internal::ForEachCell(*root, [&](nn::Cell& cell) {
    nn::internal::ForEachMember(cell, [&](const std::string&, Parameter& parameter) {
      if (parameter.defined()) entries.insert(parameter.entry().get());
    });
  });
  return std::all_of(state.begin(), state.end(), [&](const Parameter& parameter) {
    const Role role = parameter.entry()->role();
    return (role != Role::kParameter && role != Role::kStatistic) || entries.contains(parameter.entry().get());
  });
}

absl::Status StoreLowParameters(const runtime::Program& program, std::vector<Parameter>& state) {
  for (Parameter& parameter : state) {
    for (const runtime::StateBinding& binding : program.state) {
      if (binding.name != parameter.name() || binding.spec.dtype == parameter.dtype()) continue;
      if (absl::Status status = parameter.StoreLow(binding.spec.dtype); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<UnboundStep> CompileUnbound(nn::Cell* root, const TensorFunction& function,
                                           const std::vector<TensorSpec>& inputs, const StepOptions& options) {
  UnboundStep step;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<compiler::Module> module = TraceStep(root, function, inputs, options, &step.state, &step.facts);
  if (!module.ok()) return module.status();
  if (options.edit) options.edit(*module);
  const double trace_seconds = SecondsSince(start);

  compiler::CompileOptions compile = options.compile;
  compile.function = options.name;
  // A step that scales by itself takes no second scaler.
  const bool scales = !step.facts.scalers.empty();
  if (scales) compile.loss_scale = "none";
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(*module, compile);
  if (!compiled.ok()) return compiled.status();
  step.compiled = *std::move(compiled);
  if (compile.level == "auto") {
    for (auto& choice : amp::RateChoices(compile.rates)) step.compiled.program.choices.push_back(std::move(choice));
  }
  step.compiled.phases.insert(step.compiled.phases.begin(), {"trace", trace_seconds, 0});
  // A step with a seed of its own is not wrapped.
  const std::vector<runtime::StateBinding>& bound = step.compiled.program.state;
  const bool wrapped =
      std::any_of(bound.begin(), bound.end(), [](const auto& binding) { return binding.role == Role::kScaler; });
  step.facts.wrapped = wrapped && !scales;
  if (!scales) step.state.insert(step.state.end(), options.scaler.begin(), options.scaler.end());
  return step;
}

absl::StatusOr<std::unique_ptr<CompiledStep>> CompileStep(nn::Cell* root, const TensorFunction& function,
                                                          const std::vector<TensorSpec>& inputs,
                                                          const StepOptions& options) {
  absl::StatusOr<UnboundStep> unbound = CompileUnbound(root, function, inputs, options);
  if (!unbound.ok()) return unbound.status();
  auto step = std::make_unique<CompiledStep>();
  step->root_ = root;
  step->facts_ = std::move(unbound->facts);
  step->compiled_ = std::move(unbound->compiled);
  std::vector<Parameter> state = std::move(unbound->state);
  const std::shared_ptr<PassState> pass_state =
      options.pass_state != nullptr ? options.pass_state : std::make_shared<PassState>();
  absl::StatusOr<PassState::Bound> added = pass_state->Bind(step->compiled_.program.state, state);
  if (!added.ok()) return added.status();
  state.insert(state.end(), added->accumulators.begin(), added->accumulators.end());
  step->state_ = state;
  auto start = std::chrono::steady_clock::now();
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
  const bool records_hash =
      std::find(options.records.begin(), options.records.end(), runtime::kStateHashOutput) != options.records.end();
  // An instrumented step has measurements only.
  if (records_hash && options.training && !options.compile.instrument) {
    runtime::AddStateHash(step->compiled_.program);
  }
  start = std::chrono::steady_clock::now();
  absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(options.compile.device);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::unique_ptr<runtime::Executable>> executable =
      (*device)->Load(std::make_shared<const runtime::Program>(step->compiled_.program), store, options.load);
  if (!executable.ok()) return executable.status();
  step->executable_ = *std::move(executable);
  // The device fills in what was left open, and replaces what it refuses: a checkpoint keeps what ran.
  step->compiled_.program.choices = step->program().choices;
  step->compiled_.phases.push_back({"load", SecondsSince(start), 0});
  for (std::size_t i = 0; i < step->program().outputs.size(); ++i) {
    if (absl::StartsWith(step->program().outputs[i].name, kPrintPrefix)) step->printed_.push_back(i);
  }
  step->num_outputs_ = options.compile.instrument ? step->program().outputs.size() : step->facts_.num_outputs;
  return step;
}

absl::Status CompiledStep::BytesOf(const std::vector<Tensor>& inputs,
                                   std::vector<absl::Span<const std::uint8_t>>& bytes) const {
  const std::size_t count = program().inputs.size();
  if (inputs.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("the step takes ", count, " inputs, got ", inputs.size()));
  }
  bytes.resize(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = inputs[i].bytes();
  return absl::OkStatus();
}

absl::Status CompiledStep::CheckLabels(const std::vector<Tensor>& inputs) const {
  for (const auto& [input, classes, ignored] : facts_.labels) {
    if (input >= inputs.size()) continue;
    if (absl::Status status = internal::CheckLabels(inputs[input], classes, ignored); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CompiledStep::Run(const std::vector<Tensor>& inputs) {
  if (absl::Status status = CheckLabels(inputs); !status.ok()) return status;
  const std::vector<Tensor>* const one[] = {&inputs};
  if (absl::Status status = Start(one); !status.ok()) return status;
  if (absl::Status status = executable_->Wait(); !status.ok()) return status;
  last().Print();
  return absl::OkStatus();
}

absl::Status CompiledStep::Start(absl::Span<const std::vector<Tensor>* const> inputs) {
  input_bytes_.resize(std::max(input_bytes_.size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (absl::Status status = BytesOf(*inputs[i], input_bytes_[i]); !status.ok()) return status;
  }
  if (inputs.size() == 1) return executable_->Run(input_bytes_[0]);
  std::vector<runtime::StepInputs> steps;
  for (std::size_t i = 0; i < inputs.size(); ++i) steps.emplace_back(input_bytes_[i]);
  return executable_->RunSteps(steps);
}

absl::StatusOr<std::vector<runtime::InstructionTime>> CompiledStep::RunTimed(const std::vector<Tensor>& inputs) {
  input_bytes_.resize(std::max<std::size_t>(input_bytes_.size(), 1));
  if (absl::Status status = BytesOf(inputs, input_bytes_[0]); !status.ok()) return status;
  return executable_->RunTimed(input_bytes_[0]);
}

bool CompiledStep::can_run_ahead() const {
  return executable_->steps_kept() >= 2 * static_cast<std::uint64_t>(executable_->steps_per_launch());
}

absl::Status StepResults::status() const {
  // The error of a step without outputs is known when all steps have ended.
  if (step_->program().outputs.empty()) return step_->executable_->Wait();
  return step_->executable_->OutputOfStep(number_, 0).status();
}

Tensor StepResults::Output(std::size_t index) const {
  const runtime::NamedValue& output = step_->program().outputs[index];
  const absl::StatusOr<absl::Span<const std::uint8_t>> bytes = step_->executable_->OutputOfStep(number_, index);
  if (!bytes.ok()) return ErrorTensor(bytes.status());
  return Tensor::FromBytes(step_->program().values[output.value].spec, bytes->data(), bytes->size());
}

Tensor StepResults::Tap(std::string_view name) const {
  const std::string record = absl::StrCat(kTapPrefix, std::string(name));
  const std::vector<runtime::NamedValue>& outputs = step_->program().outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == record) return Output(i);
  }
  return {};
}

std::optional<double> StepResults::Record(std::string_view name) const {
  const std::vector<runtime::NamedValue>& outputs = step_->program().outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name != name) continue;
    const absl::StatusOr<double> value = Output(i).TryItem<double>();
    return value.ok() ? std::optional<double>(*value) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> StepResults::StateHash() const {
  const std::vector<runtime::NamedValue>& outputs = step_->program().outputs;
  // AddStateHash puts it behind all others.
  if (outputs.empty() || outputs.back().name != runtime::kStateHashOutput) return std::nullopt;
  const Tensor hash = Output(outputs.size() - 1);
  if (!hash.concrete()) return std::nullopt;
  std::uint64_t bits = 0;
  std::memcpy(&bits, hash.bytes().data(), sizeof(bits));
  return bits;
}

void StepResults::Print() const {
  if (!step_->prints()) return;
  for (const std::size_t index : step_->printed_) {
    std::cout << absl::StripPrefix(step_->program().outputs[index].name, kPrintPrefix) << Output(index) << "\n";
  }
  std::cout << std::flush;
}

void UseDevice(const std::string& device, StepOptions& options) {
  const ContextOptions& context = GetContext();
  // A Model of another device than the context's takes that device's defaults.
  const bool of_device = device == context.device;
  CopyOptions(context, of_device, options.compile);
  options.compile.device = device;
  if (of_device) options.load.graph = context.graph.value_or(true);
}

void ShareGradients(const AutoParallelOptions& parallel, std::int64_t processes, StepOptions& options) {
  options.compile.processes = processes;
  options.compile.bucket_mib = parallel.bucket_mib;
  options.compile.gradients_mean = parallel.gradients_mean;
  options.compile.communication_dtype = std::string(DTypeName(parallel.communication_dtype));
  options.weighs_elements = parallel.loss_weight == LossWeight::kElements;
}

std::vector<TensorSpec> SpecsOf(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

std::string StepKey(nn::Cell* root, const std::vector<Tensor>& inputs, const StepOptions& options) {
  std::string key = options.name;
  for (const Tensor& input : inputs) absl::StrAppend(&key, "|", input.spec().ToString());
  absl::StrAppend(&key, compiler::programKey(options.compile), "|", options.load.graph, "|",
                  options.load.steps_per_launch);
  // A Program stays with its group, which it keeps: no other one has this address meanwhile.
  if (options.load.communicator != nullptr) absl::StrAppend(&key, "|", absl::Hex(options.load.communicator.get()));
  if (options.network_outputs.has_value()) absl::StrAppend(&key, "|", std::string(DTypeName(*options.network_outputs)));
  if (options.weighs_elements) absl::StrAppend(&key, "|", std::string(kLossWeight));
  for (const std::string& record : options.records) absl::StrAppend(&key, "|", record);
  if (root != nullptr) StructureWriter(key).Visit("", *root);
  return key;
}

}  // namespace mpc::internal
