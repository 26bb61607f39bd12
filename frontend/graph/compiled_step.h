// A traced function compiled for some input types and bound to its state. Not part of the public API.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/driver/compiler.h"
#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/identity.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/graph/pass_state.h"
#include "frontend/graph/trace.h"
#include "runtime/executable.h"

namespace mpc::internal {

/// Records that hold what the user taps and prints: the prefix, then the user's words.
inline constexpr char kTapPrefix[] = "tap|";
inline constexpr char kPrintPrefix[] = "print|";

/// How to trace and compile a step.
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

/// Compiles for `device`, and runs there, as the context says.
void UseDevice(const std::string& device, StepOptions& options);

/// Compiles a training step for one of `processes` processes, which exchange gradients as `parallel` says.
void ShareGradients(const AutoParallelOptions& parallel, std::int64_t processes, StepOptions& options);

/// What a trace says about a step beside its graph.
struct StepFacts {
  std::size_t num_outputs = 0;  ///< number of outputs that `function` returned
  /// A scaler that the step calls itself (AmpScaler, GradScaler, amp::ScaleLoss), with the parameters of its finite
  /// checks. Record "first_bad" is an index into the list of a single check. With several checks, records "check.0",
  /// "check.1", ... are indices into their lists. The records of several scalers have suffixes: "first_bad0",
  /// "check0.1", ...
  struct Scaler {
    std::shared_ptr<const LossScaler> scaler;
    std::vector<std::vector<std::string>> checked;
    int updates = 0;  ///< how often its state moves in the step
  };
  std::vector<Scaler> scalers;  ///< in order of first use
  /// The groups of the optimizers that the step calls, "SGD group 0", with the state of their learning rates. It is
  /// undefined where a schedule computes the rate.
  std::vector<std::pair<std::string, Parameter>> rates;
  std::vector<LabelInput> labels;  ///< inputs that are class indices
  bool wrapped = false;            ///< scaled by StepOptions::scaler; known once the step is compiled
  /// The Cells, optimizers and scalers that the step was traced from. Those that the trace itself has made are left
  /// out.
  std::vector<Identity::Mark> parts;

  /// False once one of `parts` has been assigned to or destroyed: a trace would find another step.
  bool PartsAreThere() const;
};

/// Whether a step of `root` with these facts and this state is what a trace would find today. Its parts are there, and
/// the Parameters and statistics of `state` are those of `root`.
bool IsCurrent(const StepFacts& facts, absl::Span<const Parameter> state, nn::Cell* root);

/// Traces `function` on inputs of the given types. `root` names the Parameters. `used` receives the state of the step.
/// The module also holds `@init_state` for the Parameters of `root`.
absl::StatusOr<compiler::Module> TraceStep(nn::Cell* root, const TensorFunction& function,
                                           const std::vector<TensorSpec>& inputs, const StepOptions& options,
                                           std::vector<Parameter>* used, StepFacts* facts = nullptr);

class CompiledStep;

/// What one step that a CompiledStep has started leaves behind, for as long as its Executable keeps it. Reading waits
/// for that step alone.
class StepResults {
 public:
  /// The results of step number `number` of `step`, counted from 0.
  StepResults(const CompiledStep& step, std::uint64_t number) : step_(&step), number_(number) {}

  const CompiledStep& step() const { return *step_; }
  /// Errors: what the step failed with, or that it is no longer kept.
  absl::Status status() const;
  /// A copy of an output; it carries the error where there is one.
  Tensor Output(std::size_t index) const;
  /// An output by name, or null: records of loss scaling ("finite", "first_bad", "loss_scale") and on request.
  std::optional<double> Record(std::string_view name) const;
  /// The record "state_hash", which no double holds; none where it was not asked for.
  std::optional<std::uint64_t> StateHash() const;
  /// What mpc::Tap named `name`; undefined if there is none.
  Tensor Tap(std::string_view name) const;
  /// Writes what the step prints to std::cout.
  void Print() const;

 private:
  const CompiledStep* step_;
  std::uint64_t number_;
};

/// A step that is compiled and bound to nothing: what a package holds.
struct UnboundStep {
  StepFacts facts;
  compiler::CompileResult compiled;
  std::vector<Parameter> state;  ///< traced state, and the scalers' where the wrap binds it; not what passes added
};

/// Traces and compiles. `options.compile` may ask for a device that is not here.
absl::StatusOr<UnboundStep> CompileUnbound(nn::Cell* root, const TensorFunction& function,
                                           const std::vector<TensorSpec>& inputs, const StepOptions& options);

/// Stores those parameters in the low type that `program` binds in the low type. Only parameters without masters differ
/// from the trace.
absl::Status StoreLowParameters(const runtime::Program& program, std::vector<Parameter>& state);

class CompiledStep {
 public:
  /// One step from start to end, with what it prints. Inputs are concrete and of the compiled types.
  absl::Status Run(const std::vector<Tensor>& inputs);

  /// Errors (INVALID_ARGUMENT): a label among `inputs` that its loss cannot take, with its row. Run checks it.
  absl::Status CheckLabels(const std::vector<Tensor>& inputs) const;

  // These run a step in parts, for a device that runs while the host goes on. Nothing is printed: see
  // StepResults::Print.
  /// Starts a step for each of `inputs`, at most Executable::steps_per_launch(), with one launch.
  absl::Status Start(absl::Span<const std::vector<Tensor>* const> inputs);
  /// Calls Executable::RunTimed.
  absl::StatusOr<std::vector<runtime::InstructionTime>> RunTimed(const std::vector<Tensor>& inputs);
  /// The results of the last step that was started; at least one has been.
  StepResults last() const { return {*this, executable_->steps_started() - 1}; }
  bool prints() const { return !printed_.empty(); }
  /// True if the results of a launch can still be read when the next one has been started.
  bool can_run_ahead() const;

  /// Number of outputs that `function` returned.
  std::size_t num_outputs() const { return num_outputs_; }
  const StepFacts& facts() const { return facts_; }
  /// What IsCurrent says of this step.
  bool is_current() const { return IsCurrent(facts_, state_, root_); }
  // Results of the last step.
  Tensor Output(std::size_t index) const { return last().Output(index); }
  std::optional<double> Record(std::string_view name) const { return last().Record(name); }
  Tensor Tap(std::string_view name) const { return last().Tap(name); }

  /// The state that the step reads or writes, accumulators included; derived state is no part of it.
  const std::vector<Parameter>& state() const { return state_; }
  const compiler::CompileResult& compiled() const { return compiled_; }
  const runtime::Program& program() const { return executable_->program(); }
  runtime::Executable& executable() { return *executable_; }
  const runtime::Executable& executable() const { return *executable_; }

 private:
  friend absl::StatusOr<std::unique_ptr<CompiledStep>> CompileStep(nn::Cell*, const TensorFunction&,
                                                                   const std::vector<TensorSpec>&, const StepOptions&);
  friend class StepResults;
  /// The bytes of one step's inputs, kept in `bytes`.
  absl::Status BytesOf(const std::vector<Tensor>& inputs, std::vector<absl::Span<const std::uint8_t>>& bytes) const;

  compiler::CompileResult compiled_;
  std::vector<Parameter> state_;
  std::vector<std::size_t> printed_;  ///< outputs of ops::Print
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<std::vector<absl::Span<const std::uint8_t>>> input_bytes_;  ///< inputs of each step of a launch
  std::size_t num_outputs_ = 0;
  StepFacts facts_;
  nn::Cell* root_ = nullptr;  ///< the Cell that names the Parameters; null for an operation
};

/// Traces, compiles, draws missing initial values and binds.
absl::StatusOr<std::unique_ptr<CompiledStep>> CompileStep(nn::Cell* root, const TensorFunction& function,
                                                          const std::vector<TensorSpec>& inputs,
                                                          const StepOptions& options);

/// The types of `tensors`.
std::vector<TensorSpec> SpecsOf(const std::vector<Tensor>& tensors);

/// A text that two steps of this process share only if they compile to the same Program and bind the same Parameters.
/// It holds types, options, and the tree of Cells with their modes, pins and Parameters. A step that is found by it
/// holds as long as StepFacts::PartsAreThere().
std::string StepKey(nn::Cell* root, const std::vector<Tensor>& inputs, const StepOptions& options);

}  // namespace mpc::internal
