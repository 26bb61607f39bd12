// A traced function compiled for some input types and bound to its state. Not part of the public API.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/step_options.h"
#include "frontend/graph/step_results.h"
#include "frontend/graph/step_trace.h"
#include "runtime/executable.h"

namespace mpc::internal {

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

}  // namespace mpc::internal
