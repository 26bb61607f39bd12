#include "frontend/graph/step_trace.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "frontend/graph/cell_members.h"
#include "frontend/graph/precision_scope.h"
#include "frontend/graph/step_scaler.h"
#include "kernels/communicator.h"

namespace mpc::internal {
namespace {

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

std::vector<TensorSpec> SpecsOf(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

}  // namespace mpc::internal
