// Derivatives of networks and values in a trace, and rules of the user's own. Not part of the public API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "frontend/graph/cell_calls.h"
#include "frontend/graph/cell_stack.h"
#include "frontend/graph/optimizer_updates.h"
#include "frontend/graph/random_uses.h"
#include "frontend/graph/step_state.h"
#include "frontend/graph/traced_graph.h"

namespace mpc::internal {

/// Traces functions that are differentiated. It keeps nothing: what it notes goes to the parts of the trace.
class GradientTracer {
 public:
  GradientTracer(TracedGraph& graph, CellStack& cells, CellCalls& calls, StepState& state, RandomUses& random,
                 OptimizerUpdates& updates)
      : graph_(graph), cells_(cells), calls_(calls), state_(state), random_(random), updates_(updates) {}

  /// `outputs` are the loss and the other results of `function`; `gradients` has one gradient a parameter. `cell` is
  /// the Cell that `function` calls, or null. Earlier plain calls of that Cell that may share this forward pass become
  /// this one. An undefined `seed` means 1.
  struct Gradients {
    std::vector<Tensor> outputs;
    std::vector<Tensor> gradients;
  };
  Gradients ValueAndGrad(nn::Cell* cell, const TensorFunction& function, const std::vector<Tensor>& inputs,
                         absl::Span<const Parameter> parameters, const Tensor& seed, std::int64_t loss_id);
  /// One gradient a parameter, at the value that `loss` read. An undefined `seed` means 1.
  std::vector<Tensor> Backward(const Tensor& loss, absl::Span<const Parameter> parameters, const Tensor& seed,
                               std::int64_t loss_id);
  /// One gradient a tensor of the trace.
  std::vector<Tensor> Grad(const Tensor& loss, absl::Span<const Tensor> tensors, const Tensor& seed);
  /// `forward(inputs)`, differentiated by `rule`: from inputs, outputs and cotangents to cotangents.
  std::vector<Tensor> CustomVjp(const TensorFunction& forward, const TensorFunction& rule,
                                const std::vector<Tensor>& inputs);

 private:
  /// A private function that is differentiated, and what it leaves behind.
  struct LossFunction {
    std::string callee;
    std::vector<Tensor> outputs;           ///< values inside the function
    std::vector<DeferredUpdate> deferred;  ///< their operands follow the outputs
    std::vector<Parameter> assigned;       ///< their new values follow
    std::vector<std::int64_t> wrt;         ///< positions of the operands to differentiate by
    std::vector<Tensor> operands;          ///< values of the caller
  };

  Tensor SeedOr1(const Tensor& seed) { return seed.defined() ? seed : graph_.Splat({DType::kF32, {}}, 1.0); }
  /// The earlier plain calls of `cell` that compute what a call on `inputs` computes now. The inputs, settings,
  /// precision and the state that they used are the same.
  std::vector<CellCall*> SharedCalls(nn::Cell* cell, const std::vector<Tensor>& inputs);
  /// Runs `function` in the function that is open, on `inputs` and with `parameters` among its state. It draws the
  /// random numbers of the first of the `shared` calls.
  std::vector<Tensor> TraceForward(const nn::Cell* cell, const TensorFunction& function,
                                   const std::vector<Tensor>& inputs, absl::Span<const Parameter> parameters,
                                   absl::Span<CellCall* const> shared);
  /// Ends the function that is open: returns its outputs, deferred operands and assigned state to its caller.
  void CloseLoss(absl::Span<const Parameter> parameters, LossFunction& loss);
  /// Asks for the values and gradients of `loss`; nothing where the trace has failed.
  std::vector<compiler::TypedValue> CallLoss(const LossFunction& loss, const Tensor& seed, std::int64_t loss_id);
  /// A step that calls its network and then asks for its gradient on the same inputs means one forward pass. `operands`
  /// are what that pass reads.
  void ReplaceCalls(absl::Span<CellCall* const> shared, const std::vector<Tensor>& operands,
                    const std::vector<Tensor>& outputs);
  /// Fails for a loss that `function`, Backward or Grad, cannot differentiate.
  void CheckLoss(std::string_view function, const Tensor& loss);
  /// Fails for a tensor that Grad has no gradient by.
  void CheckGradBy(const Tensor& tensor);
  /// The gradients of `loss` by values of the trace; nothing where the trace has failed.
  std::vector<Tensor> RequestGradients(const Tensor& loss, absl::Span<const compiler::ValueHandle> wrt,
                                       const Tensor& seed, std::int64_t loss_id, bool by_values);
  /// The latest value of `parameter` that `loss` is computed from; the current one where it is from none.
  compiler::ValueHandle ValueReadBy(compiler::ValueHandle loss, const Parameter& parameter);
  /// Traces `function` as a private function that may read its arguments only; returns its name.
  std::string TraceIsolated(std::string_view name, const std::vector<TensorSpec>& arguments,
                            const TensorFunction& function, std::vector<Tensor>* outputs);
  /// Fails where the function that is open reads or updates anything from outside.
  void CheckIsolated();
  /// Fails unless `cotangents` are what a rule returns for floating inputs of types `floating`.
  void CheckCotangents(const std::vector<Tensor>& cotangents, const std::vector<TensorSpec>& floating);
  std::vector<Tensor> Symbolic(const std::vector<compiler::TypedValue>& values);

  TracedGraph& graph_;
  CellStack& cells_;
  CellCalls& calls_;
  StepState& state_;
  RandomUses& random_;
  OptimizerUpdates& updates_;
};

}  // namespace mpc::internal
