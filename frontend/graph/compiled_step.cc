#include "frontend/graph/compiled_step.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/graph/class_labels.h"
#include "frontend/graph/device_rates.h"
#include "runtime/state_record.h"

namespace mpc::internal {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

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

}  // namespace mpc::internal
