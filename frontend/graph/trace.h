// The trace of one step: what `Construct` records. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/module/graph_builder.h"
#include "frontend/graph/parameter.h"
#include "frontend/graph/tensor.h"

namespace mpc::nn {
class Cell;
}  // namespace mpc::nn

namespace mpc::internal {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// State of the random generator of one network: seed (i64) and step (i32).
struct RngState {
  Parameter seed;
  Parameter step;
};
RngState MakeRngState(std::uint64_t seed);

/// An amp::AutoCast scope.
struct PrecisionScope {
  std::string level;
  std::optional<DType> low;
  std::vector<std::string> low_operations;  ///< pinned low inside
  std::vector<std::string> f32_operations;  ///< pinned f32 inside
};

/// Counts the amp::AutoCast scopes of this thread that were opened outside tracing.
void CountUntracedScope(int change);
/// Errors (FAILED_PRECONDITION): such a scope is open.
absl::Status CheckNoUntracedScope();

/// Records operations, Cells and state while it is the current trace of its thread. The first error is kept with the
/// Cell path; after it operations return poisoned tensors.
class Trace {
 public:
  /// `networks` are the Cells that an AMP level acts in.
  Trace(std::vector<const nn::Cell*> networks, RngState rng);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The Parameters that the root Cell registers: reading another one is an error.
  void SetRegistered(std::vector<Parameter> parameters) { registered_ = std::move(parameters); }

  /// The innermost live trace of this thread, or null.
  static Trace* Current();

  // Functions.
  void BeginStep(std::string_view name);
  Tensor AddInput(const TensorSpec& spec, std::string_view name);
  /// Returns `outputs` (named) and every assigned state; closes the step.
  void EndStep(absl::Span<const Tensor> outputs, absl::Span<const std::string> names);
  /// Traces `@init_state`, whose outputs are the initial values of `parameters` in order.
  void AddInitState(absl::Span<const Parameter> parameters);
  /// The module, or the first error.
  absl::StatusOr<compiler::Module> Finish();

  // Operations.
  std::vector<Tensor> Emit(std::string_view op, absl::Span<const Tensor> operands, const Attributes& attributes,
                           std::optional<DType> result_dtype = std::nullopt);
  Tensor Splat(const TensorSpec& spec, double value);
  /// `outputs` are the loss and the other results of `function`; `gradients` has one gradient a parameter. `cell` is
  /// the Cell that `function` calls, or null. An earlier plain call of that Cell on the same inputs becomes this one.
  struct Gradients {
    std::vector<Tensor> outputs;
    std::vector<Tensor> gradients;
  };
  Gradients ValueAndGrad(const nn::Cell* cell, const TensorFunction& function, const std::vector<Tensor>& inputs,
                         absl::Span<const Parameter> parameters, const Tensor& seed, std::int64_t loss_id);
  /// One gradient a parameter, at the value that `loss` read. An undefined `seed` means 1.
  std::vector<Tensor> Backward(const Tensor& loss, absl::Span<const Parameter> parameters, const Tensor& seed,
                               std::int64_t loss_id);
  /// `forward(inputs)`, differentiated by `rule`: from inputs, outputs and cotangents to cotangents.
  std::vector<Tensor> CustomVjp(const TensorFunction& forward, const TensorFunction& rule,
                                const std::vector<Tensor>& inputs);

  // State.
  Tensor Read(const Parameter& parameter);
  void Assign(const Parameter& parameter, const Tensor& value);
  /// Emits a state update once the step is back in its outermost function: state operands are the current values of
  /// `states`, then come `operands`.
  void DeferUpdate(std::string_view op, std::vector<Parameter> states, std::vector<Tensor> operands,
                   Attributes attributes);
  /// The loss scale that the wrap of this step applies and that optimizers divide out; empty: none.
  const std::optional<double>& divided_scale() const { return divided_scale_; }
  void set_divided_scale(std::optional<double> scale) { divided_scale_ = scale; }
  /// False if an optimizer has already updated `parameter` in this step.
  bool ClaimUpdate(const Parameter& parameter);
  /// True if gradients by `parameter` were asked for and no differentiated function reads it: nothing trains it.
  bool IsUnused(const Parameter& parameter) const;
  /// The state prefix of the optimizer that counts its updates in `step`: "optimizer" for the first one of the trace,
  /// then "optimizer2", ...
  std::string OptimizerPrefix(const Parameter& step);
  /// The same for a loss scaler by its scale: "scaler", "scaler2", ...
  std::string ScalerPrefix(const Parameter& scale);
  /// Seed and step of the generator, and the id of this use.
  struct RandomUse {
    Tensor seed;
    Tensor step;
    std::int64_t call_site;
  };
  RandomUse UseRandom();
  /// Parameters the trace has read or assigned, in order of first use.
  const std::vector<Parameter>& used() const { return used_; }

  /// True in the step itself, false in a function that is differentiated.
  bool in_step() const { return depth() == 1; }

  // What a step tells beside its outputs.
  /// A scalar that the step reports under `name` ("gradient_norm", "finite"); of two records with one name the last
  /// counts.
  void Record(std::string_view name, const Tensor& value);
  /// Records that are made on request only.
  void RequestRecords(std::vector<std::string> names) { requested_records_ = std::move(names); }
  bool wants(std::string_view record) const;
  /// Returns `tensor` from the step under `name`, whatever function it is computed in.
  void Tap(const std::string& name, const Tensor& tensor);
  /// Notes that `labels` are class indices of a loss, which has no value where one is outside [0, classes). If they are
  /// an input of the step, as it came in or reshaped, each batch can be checked before it runs.
  void ExpectLabels(const Tensor& labels, std::int64_t classes);
  struct Labels {
    std::size_t input;
    std::int64_t classes;
  };
  const std::vector<Labels>& labels() const { return labels_; }
  /// Calls `hook` when the step ends, before its state is collected.
  void AtEnd(std::function<void()> hook) { end_hooks_.push_back(std::move(hook)); }
  /// An object that a part of the front end keeps while this trace runs: one for each type T.
  template <typename T>
  T& Local() {
    std::shared_ptr<void>& slot = locals_[std::type_index(typeid(T))];
    if (slot == nullptr) slot = std::make_shared<T>();
    return *static_cast<T*>(slot.get());
  }

  // Cells.
  void EnterCell(nn::Cell& cell, const std::vector<Tensor>& inputs);
  /// Notes that `cell` asks whether it trains. Fails if it is called and not registered: SetTrain has not reached it.
  void NoteModeRead(const nn::Cell& cell);
  /// Returns the outputs as the caller gets them. Those of a network have the type that SetNetworkOutputs asked for.
  std::vector<Tensor> LeaveCell(std::vector<Tensor> outputs);
  /// Rounds the floating outputs of networks to `dtype`. A network that is differentiated itself returns its loss first
  /// and is left alone.
  void SetNetworkOutputs(DType dtype) { network_outputs_ = dtype; }
  /// amp::AutoCast.
  void EnterPrecision(PrecisionScope scope) { precision_.push_back(std::move(scope)); }
  void LeavePrecision() { precision_.pop_back(); }
  /// While it lives, operations have the path `path`, outside every network. Optimizers use it: they are no Cells.
  class PathScope {
   public:
    PathScope(Trace& trace, std::string path) : trace_(trace) {
      compiler::Scope scope;
      scope.path = std::move(path);
      trace_.cells_.push_back({nullptr, std::move(scope), {}, 0});
    }
    ~PathScope() { trace_.cells_.pop_back(); }
    PathScope(const PathScope&) = delete;
    PathScope& operator=(const PathScope&) = delete;

   private:
    Trace& trace_;
  };
  /// Path of the innermost Cell.
  std::string path() const;
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }

  /// Keeps the first error, with the Cell path in front.
  void Fail(const std::string& message);
  /// The same with another path.
  void FailAt(const std::string& where, const std::string& message);
  bool failed() const { return !status_.ok(); }
  const absl::Status& status() const { return status_; }
  Tensor Poison(const Shape& shape, DType dtype = DType::kF32);

 private:
  struct StateValue {
    Parameter parameter;
    Tensor current;
    bool assigned = false;
    bool read = false;
    std::vector<Tensor> earlier;  ///< what `current` was, first to last
  };
  struct Deferred {
    std::string op;
    std::vector<Parameter> states;
    std::vector<Tensor> operands;
    Attributes attributes;
    compiler::Scope scope;
    std::size_t call = 0;  ///< 1 + index into calls_ of the innermost Cell call that made it, 0 if none
  };
  /// One open function.
  struct Frame {
    std::vector<Tensor> operands;  ///< the outer value of each argument
    std::map<const void*, Tensor> captured;
    std::vector<StateValue> states;
    std::vector<Deferred> deferred;
  };
  /// A private function that is differentiated, and what it leaves behind.
  struct LossFunction {
    std::string callee;
    std::vector<Tensor> outputs;      ///< values inside the function
    std::vector<Parameter> assigned;  ///< whose new values follow the outputs and the operands of deferred updates
    std::vector<std::int64_t> wrt;    ///< positions of the operands to differentiate by
    Frame frame;                      ///< the function's, closed
  };
  struct CellFrame {
    nn::Cell* cell;
    compiler::Scope scope;
    std::vector<Tensor> inputs;
    std::size_t call = 0;
    const nn::Cell* forgotten_by = nullptr;  ///< the calling Cell, where that does not register this one
  };
  /// A Cell call in the outermost function.
  struct CellCall {
    const nn::Cell* cell;
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    std::int64_t first_call_site = 0;  ///< call site of the first random use inside
    std::size_t last = 0;              ///< calls_[own index .. last - 1] are this call and those inside it
    bool replaced = false;
  };

  /// The last part of the path of a call of `cell`; empty for a transparent one. Fails for a Cell that is called and
  /// not registered, and notes in `frame` who calls it.
  std::string NameOfCall(nn::Cell& cell, bool is_network, CellFrame& frame);
  /// Runs `function` in the function that is open, on `inputs` and with `parameters` among its state.
  std::vector<Tensor> TraceForward(const nn::Cell* cell, const TensorFunction& function,
                                   const std::vector<Tensor>& inputs, absl::Span<const Parameter> parameters);
  /// Ends the function that is open: returns its outputs, deferred operands and assigned state to its caller.
  void CloseLoss(absl::Span<const Parameter> parameters, LossFunction& loss);
  /// Asks for the values and gradients of `loss`; nothing where the trace has failed.
  std::vector<compiler::TypedValue> CallLoss(const LossFunction& loss, const Tensor& seed, std::int64_t loss_id);
  /// The error of a `cell` that `parent` calls and does not register.
  void FailUnregistered(const nn::Cell& cell, const nn::Cell& parent, const std::string& where);
  std::size_t depth() const { return frames_.size(); }
  compiler::Scope scope() const;
  /// The scope of an operation: with the level and the pins of the innermost amp::AutoCast.
  compiler::Scope ScopeOf(std::string_view op) const;
  Tensor Symbolic(const compiler::TypedValue& value, std::size_t depth) const;
  /// `tensor` as a value of the function at `depth`: constants are made, outer values become arguments.
  Tensor Import(const Tensor& tensor, std::size_t depth);
  /// Notes that `to` holds the elements of `from` in their order.
  void SameElements(compiler::ValueHandle from, compiler::ValueHandle to);
  StateValue& StateAt(const Parameter& parameter, std::size_t depth);
  /// Traces `function` as a private function that may read its arguments only; returns its name.
  std::string TraceIsolated(std::string_view name, const std::vector<TensorSpec>& arguments,
                            const TensorFunction& function, std::vector<Tensor>* outputs);
  void FlushDeferred(const Parameter* reader);
  /// In a step with an optimizer: fails for a gradient that no optimizer takes.
  void CheckUpdates();
  void EmitUpdate(const Deferred& update);
  /// The plain call of `cell` on `inputs` that has not been replaced yet, or null.
  CellCall* FindEarlierCall(const nn::Cell* cell, const std::vector<Tensor>& inputs);
  void ReplaceEarlierCall(const nn::Cell* cell, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs);

  const void* id_;  ///< identifies the values of this trace; never used again, unlike an address
  compiler::GraphBuilder graph_;
  std::vector<const nn::Cell*> networks_;
  RngState rng_;
  std::vector<Frame> frames_;
  std::vector<CellFrame> cells_;
  std::vector<CellCall> calls_;
  std::vector<PrecisionScope> precision_;
  std::optional<DType> network_outputs_;
  std::vector<const nn::Cell*> losses_;  ///< Cells that are differentiated themselves
  std::vector<Parameter> used_;
  std::vector<Parameter> updated_;
  std::vector<Parameter> differentiated_;  ///< asked for in a gradient
  std::vector<Parameter> read_by_losses_;
  std::vector<Parameter> optimizer_steps_;
  std::vector<Parameter> scaler_scales_;
  std::vector<std::pair<std::string, Tensor>> records_;
  std::vector<std::string> requested_records_;
  std::optional<double> divided_scale_;
  std::vector<std::pair<std::string, Tensor>> taps_;
  std::vector<std::function<void()>> end_hooks_;
  std::size_t num_inputs_ = 0;                           ///< inputs of the step
  std::map<compiler::ValueHandle, std::size_t> inputs_;  ///< values that hold an input's elements, in order
  std::vector<Labels> labels_;
  std::map<std::type_index, std::shared_ptr<void>> locals_;
  std::optional<std::vector<Parameter>> registered_;
  std::int64_t next_call_site_ = 0;
  std::int64_t recomputed_calls_ = 0;  ///< calls of Cells with Recompute()
  bool uses_random_ = false;
  bool training_ = false;
  absl::Status status_;
  Trace* previous_;
};

}  // namespace mpc::internal
