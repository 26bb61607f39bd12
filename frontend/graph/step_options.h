// How a step is traced, compiled and loaded, and the list of these options. Not part of the public API.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/compiler.h"
#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/pass_state.h"
#include "frontend/graph/trace.h"
#include "runtime/executable.h"

namespace mpc::internal {

/// How to trace, compile and load a step. VisitStepOptions below lists the members.
struct StepOptions {
  std::string name = "call";  ///< name of the traced function: "train_step", "eval_step", "predict"
  bool training = false;      ///< the step counter of the generator moves if the step draws random numbers
  std::vector<const nn::Cell*> networks;
  std::optional<DType> network_outputs;  ///< what floating outputs of `networks` are rounded to
  RngState rng;
  std::vector<Parameter> scaler;          ///< loss-scale state, bound by name
  std::shared_ptr<PassState> pass_state;  ///< the Model's; null: this step has its own
  std::vector<std::string> input_names;   ///< "input0", ... where absent
  std::vector<std::string> output_names;  ///< "output0", ... where absent
  std::vector<Parameter> optimizers;      ///< step counters, in the order of their prefixes; others follow by first use
  std::optional<double> divided_scale;    ///< loss scale of the wrap that optimizers divide out
  bool weighs_elements = false;           ///< LossWeight::kElements
  std::vector<std::string> records;       ///< made on request: "gradient_norm", "learning_rate", "state_hash"
  compiler::CompileOptions compile;       ///< `function` is set to `name`
  runtime::LoadOptions load;
  std::function<void(compiler::Module&)> edit;  ///< changes the traced graph before it is compiled; empty: nothing does
};

/// What decides an option, and so whether the key of a step needs it.
enum class StepOptionKind {
  kProgram,  ///< the option itself; what is compiled or loaded follows from it, so it is part of the key
  kRoot,     ///< the root Cell, whose structure is part of the key
  kOwner,    ///< the owner of the steps, in which the option never changes
  kNames,    ///< what the caller calls inputs and outputs, which changes nothing else
};

/// An option, as VisitStepOptions tells of it. Its kind is a constant, so that a visitor may leave types out.
template <StepOptionKind K>
struct StepOptionInfo {
  static constexpr StepOptionKind kKind = K;
  const char* name;  ///< the member: "records", "load.graph"
};

/// Calls `visit(StepOptionInfo, member)` for each option of `options`, a StepOptions, those of `load` among them. The
/// options of `compile` are one: compiler::visitOptions lists them. A test breaks where a member is missing here.
template <typename Options, typename Visitor>
void VisitStepOptions(Options& options, Visitor&& visit) {
  using enum StepOptionKind;
  visit(StepOptionInfo<kProgram>{"name"}, options.name);
  visit(StepOptionInfo<kRoot>{"training"}, options.training);
  visit(StepOptionInfo<kRoot>{"networks"}, options.networks);
  visit(StepOptionInfo<kProgram>{"network_outputs"}, options.network_outputs);
  visit(StepOptionInfo<kOwner>{"rng"}, options.rng);
  visit(StepOptionInfo<kOwner>{"scaler"}, options.scaler);
  visit(StepOptionInfo<kOwner>{"pass_state"}, options.pass_state);
  visit(StepOptionInfo<kNames>{"input_names"}, options.input_names);
  visit(StepOptionInfo<kNames>{"output_names"}, options.output_names);
  visit(StepOptionInfo<kRoot>{"optimizers"}, options.optimizers);
  visit(StepOptionInfo<kOwner>{"divided_scale"}, options.divided_scale);
  visit(StepOptionInfo<kProgram>{"weighs_elements"}, options.weighs_elements);
  visit(StepOptionInfo<kProgram>{"records"}, options.records);
  visit(StepOptionInfo<kProgram>{"compile"}, options.compile);
  visit(StepOptionInfo<kProgram>{"load.graph"}, options.load.graph);
  visit(StepOptionInfo<kProgram>{"load.steps_per_launch"}, options.load.steps_per_launch);
  visit(StepOptionInfo<kProgram>{"load.branches"}, options.load.branches);
  visit(StepOptionInfo<kProgram>{"load.communicator"}, options.load.communicator);
  visit(StepOptionInfo<kOwner>{"edit"}, options.edit);
}

/// Compiles for `device`, and runs there, as the context says.
void UseDevice(const std::string& device, StepOptions& options);

/// Compiles a training step for one of `processes` processes, which exchange gradients as `parallel` says.
void ShareGradients(const AutoParallelOptions& parallel, std::int64_t processes, StepOptions& options);

}  // namespace mpc::internal
