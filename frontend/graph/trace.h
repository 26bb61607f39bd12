// The trace of one step: what `Construct` records. Not part of the public API.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/module/graph_builder.h"
#include "frontend/graph/cell_calls.h"
#include "frontend/graph/cell_stack.h"
#include "frontend/graph/gradient_tracer.h"
#include "frontend/graph/identity.h"
#include "frontend/graph/optimizer_updates.h"
#include "frontend/graph/parameter.h"
#include "frontend/graph/random_uses.h"
#include "frontend/graph/step_report.h"
#include "frontend/graph/step_state.h"
#include "frontend/graph/tensor.h"
#include "frontend/graph/trace_locals.h"
#include "frontend/graph/traced_graph.h"

namespace mpc::internal {

/// The processes that run a step at once.
struct StepProcesses {
  std::int64_t count = 1;
  bool shares_gradients = false;        ///< the compiler replaces gradients by those of all processes
  bool gradients_mean = true;           ///< by their mean; else by their sum
  bool is_wrapped = false;              ///< the compiler scales the loss, and skips updates
  std::int64_t accumulation_steps = 1;  ///< micro-batches of an update that each process computes
  bool weighs_elements = false;         ///< losses that leave elements out record how many count
};

struct TraceOptions {
  std::vector<const nn::Cell*> networks;  ///< the Cells that an AMP level acts in
  std::optional<DType> network_outputs;   ///< what their floating outputs are rounded to
  RngState rng;
  bool training = false;
  /// The Parameters that the root Cell registers: reading another one is an error. None: there is no root Cell.
  std::optional<std::vector<Parameter>> registered;
  std::vector<Parameter> optimizers;    ///< step counters of the optimizers whose prefixes come first
  std::vector<std::string> records;     ///< records that are made on request
  std::optional<double> divided_scale;  ///< loss scale of the wrap that optimizers divide out
  StepProcesses processes;
};

/// Records operations, Cells and state while it is the current trace of its thread. The first error is kept with the
/// Cell path; after it operations return poisoned tensors.
class Trace {
 public:
  explicit Trace(const TraceOptions& options);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The innermost live trace of this thread, or null.
  static Trace* Current();

  // Functions.
  void BeginStep(std::string_view name);
  Tensor AddInput(const TensorSpec& spec, std::string_view name) { return graph_.AddInput(spec, name); }
  /// Returns `outputs` (named) and every assigned state; closes the step.
  void EndStep(absl::Span<const Tensor> outputs, absl::Span<const std::string> names);
  /// Traces `@init_state`, whose outputs are the initial values of `parameters` in order.
  void AddInitState(absl::Span<const Parameter> parameters);
  /// The module, or the first error.
  absl::StatusOr<compiler::Module> Finish() { return graph_.Finish(); }

  // Operations.
  std::vector<Tensor> Emit(std::string_view op, absl::Span<const Tensor> operands, const Attributes& attributes,
                           std::optional<DType> result_dtype = std::nullopt) {
    return graph_.Emit(op, operands, attributes, result_dtype);
  }
  Tensor Splat(const TensorSpec& spec, double value) { return graph_.Splat(spec, value); }
  /// True in the step itself, false in a function that is differentiated.
  bool in_step() const { return graph_.in_step(); }
  bool training() const { return training_; }
  const StepProcesses& processes() const { return processes_; }

  // Cells.
  /// Notes that the step follows from an object: another one in its place asks for another Program.
  void NotePart(const Identity& part) { parts_.insert(part.mark()); }
  const IdentityMarks& parts() const { return parts_; }
  void EnterCell(nn::Cell& cell, const std::vector<Tensor>& inputs);
  /// Notes that `cell` asks whether it trains, and is told `trains`. Fails if it is called and not registered: SetTrain
  /// has not reached it.
  void NoteModeRead(const nn::Cell& cell, bool trains) {
    graph_.KeepError(cells_.CheckModeRead(cell));
    if (!trains && !in_inference_.has_value()) in_inference_ = cells_.path();
  }
  /// Where the first Cell that was told that it does not train is called; empty: there is none.
  const std::optional<std::string>& in_inference() const { return in_inference_; }
  /// Returns the outputs as the caller gets them. Those of a network have the type that `network_outputs` asked for.
  std::vector<Tensor> LeaveCell(std::vector<Tensor> outputs);
  /// Returns `tensor` from the step under `name`, whatever function it is computed in.
  void Tap(const std::string& name, const Tensor& tensor);
  /// Records the share of its elements that a loss counts, as kLossWeight, from whatever function it is computed in.
  void RecordLossWeight(const Tensor& share);

  // Errors.
  /// Keeps the first error, with the Cell path in front.
  void Fail(const std::string& message) { graph_.Fail(message); }
  bool failed() const { return graph_.failed(); }
  Tensor Poison(const Shape& shape) const { return graph_.Poison(shape); }

  // Parts.
  CellStack& cells() { return cells_; }
  StepState& state() { return state_; }
  RandomUses& random() { return random_; }
  OptimizerUpdates& updates() { return updates_; }
  StepReport& report() { return report_; }
  TraceLocals& locals() { return locals_; }
  GradientTracer gradients() { return {graph_, cells_, calls_, state_, random_, updates_}; }

 private:
  /// Fails where nothing takes a gradient: see OptimizerUpdates. `results` are those of the step.
  void CheckGradients(absl::Span<const compiler::NamedResult> results);

  CellStack cells_;
  CellCalls calls_;
  TracedGraph graph_;
  StepState state_;
  RandomUses random_;
  OptimizerUpdates updates_;
  StepReport report_;
  TraceLocals locals_;
  IdentityMarks parts_;
  bool training_;
  std::optional<std::string> in_inference_;
  StepProcesses processes_;
  Trace* previous_;
};

}  // namespace mpc::internal
