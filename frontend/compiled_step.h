// A traced function compiled for some input types and bound to its state. Not part of the public API.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "frontend/cell.h"
#include "frontend/trace.h"
#include "runtime/executable.h"

namespace mpc::internal {

/// How to trace and compile a step.
struct StepOptions {
  std::string name = "call";  ///< of the traced function: "train_step", "eval_step", "predict"
  bool training = false;      ///< counts random uses
  std::vector<const nn::Cell*> networks;
  RngState rng;
  std::vector<Parameter> scaler;          ///< loss-scale state, bound by name
  std::vector<std::string> input_names;   ///< "input0", ... where absent
  std::vector<std::string> output_names;  ///< "output0", ... where absent
  compiler::CompileOptions compile;       ///< `function` is set to `name`
};

/// Traces `function` on inputs of the given types. `root` names the Parameters. `used` receives the state of the step.
/// The module also holds `@init_state` for the Parameters of `root`.
absl::StatusOr<compiler::Module> TraceStep(nn::Cell* root, const TensorFunction& function,
                                           const std::vector<TensorSpec>& inputs, const StepOptions& options,
                                           std::vector<Parameter>* used);

class CompiledStep {
 public:
  /// Inputs are concrete and of the compiled types.
  absl::Status Run(const std::vector<Tensor>& inputs);

  /// Number of outputs that `function` returned.
  std::size_t num_outputs() const { return num_outputs_; }
  /// A copy of an output of the last run.
  Tensor Output(std::size_t index) const;
  /// An output by name, or null: records of the loss-scale wrap ("finite", "first_bad", "loss_scale").
  std::optional<double> Record(std::string_view name) const;

  /// The state that the step reads or writes.
  const std::vector<Parameter>& state() const { return state_; }
  const compiler::CompileResult& compiled() const { return compiled_; }
  const runtime::Program& program() const { return executable_->program(); }

 private:
  friend absl::StatusOr<std::unique_ptr<CompiledStep>> CompileStep(nn::Cell*, const TensorFunction&,
                                                                   const std::vector<TensorSpec>&, const StepOptions&);
  compiler::CompileResult compiled_;
  std::vector<Parameter> state_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<absl::Span<const std::uint8_t>> input_bytes_;
  std::size_t num_outputs_ = 0;
};

/// Traces, compiles, draws missing initial values and binds.
absl::StatusOr<std::unique_ptr<CompiledStep>> CompileStep(nn::Cell* root, const TensorFunction& function,
                                                          const std::vector<TensorSpec>& inputs,
                                                          const StepOptions& options);

/// The types of `tensors`.
std::vector<TensorSpec> SpecsOf(const std::vector<Tensor>& tensors);

/// A text that two steps share only if they compile to the same Program: types, options, the tree of Cells with their
/// modes, pins and Parameters.
std::string StepKey(nn::Cell* root, const std::vector<Tensor>& inputs, const StepOptions& options);

}  // namespace mpc::internal
