// The state that a step reads and assigns while it is traced. Not part of the public API.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/graph/numbered_prefixes.h"
#include "frontend/graph/parameter.h"
#include "frontend/graph/traced_graph.h"

namespace mpc::internal {

/// A Parameter in one function.
struct StateValue {
  Parameter parameter;
  Tensor current;
  bool assigned = false;
  bool read = false;
  std::vector<Tensor> earlier;  ///< what `current` was, first to last
  /// `current` was assigned, has not been read since, and may be a value that others read too.
  bool may_be_shared = false;
  std::size_t num_assigned = 0;  ///< how often it was assigned
};

/// A state update, or a tap, that waits for the outermost function.
struct DeferredUpdate {
  std::string op;  ///< empty: `operands` is a tensor that the step returns, and no state is written
  std::vector<Parameter> states;
  std::vector<Tensor> operands;
  Attributes attributes;
  compiler::Scope scope;
  std::size_t call = 0;  ///< number in CellCalls of the innermost Cell call that made it, 0 if none
  std::string tap;       ///< name of the tensor of a tap
};

/// What one function does to state.
struct FunctionState {
  std::vector<StateValue> values;  ///< in order of first use
  std::vector<DeferredUpdate> deferred;
};

/// Each open function of the graph has the current value of each Parameter that it uses. The outermost one takes the
/// value as an argument. An inner one captures it from the function around it.
class StepState {
 public:
  /// `registered` are the Parameters that the root Cell registers: reading another one is an error. None: there is no
  /// root. `optimizers` are step counters whose prefixes come first.
  StepState(TracedGraph& graph, CellStack& cells, std::optional<std::vector<Parameter>> registered,
            const std::vector<Parameter>& optimizers);

  /// To be called with those of the graph.
  void BeginFunction() { functions_.emplace_back(); }
  FunctionState EndFunction();

  Tensor Read(const Parameter& parameter);
  /// Takes `value` as it is: the result of an update, which is a value of its own.
  void Assign(const Parameter& parameter, const Tensor& value);
  /// Takes a `value` that others may read. Once the state is read it becomes a value of its own, which no derivative
  /// passes through: a Parameter is a leaf.
  void AssignShared(const Parameter& parameter, const Tensor& value);
  /// Makes every value of the innermost function one of its own, as a read does. Functions inside may then read them.
  void OwnValues();
  /// The entry of `parameter` in the function at `depth`. Makes it a part of that function's state without reading it.
  const StateValue& Use(const Parameter& parameter, std::size_t depth) { return ValueAt(parameter, depth); }
  const StateValue& Use(const Parameter& parameter) { return Use(parameter, graph_.depth()); }
  /// The entry of `parameter` in the innermost function, whose value is one of its own.
  const StateValue& UseOwn(const Parameter& parameter);

  /// The number of uses of state in the outermost function so far: reads, and updates that were deferred.
  std::size_t num_uses() const { return uses_.size(); }
  /// Whether no state of the uses from `first` up to `end` has been assigned since it was used.
  bool UsesHold(std::size_t first, std::size_t end) const;

  /// Emits a state update once the step is back in its outermost function: state operands are the current values of
  /// `states`, then come `operands`.
  void DeferUpdate(std::string_view op, std::vector<Parameter> states, std::vector<Tensor> operands,
                   Attributes attributes);
  /// Passes `tensor`, a value of the innermost function, on to the outermost one.
  void DeferTap(const std::string& name, const Tensor& tensor);
  void Defer(DeferredUpdate update) { functions_.back().deferred.push_back(std::move(update)); }
  /// Forgets what Cell calls `first` to `last` have deferred in the innermost function.
  void DropDeferred(std::size_t first, std::size_t last);
  /// What the innermost function has deferred so far.
  const std::vector<DeferredUpdate>& deferred() const { return functions_.back().deferred; }
  /// The values that the innermost function uses.
  const std::vector<StateValue>& values() const { return functions_.back().values; }
  /// Emits the updates that wait, at the end of the step. The taps among them are returned: names and tensors.
  std::vector<std::pair<std::string, Tensor>> EmitDeferred();

  /// Parameters the trace has read or assigned, in order of first use.
  const std::vector<Parameter>& used() const { return used_; }
  /// The state prefixes of optimizers, by their step counters, and of loss scalers, by their scales.
  NumberedPrefixes& optimizers() { return optimizers_; }
  NumberedPrefixes& scalers() { return scalers_; }

 private:
  /// A use of state in the outermost function.
  struct StateUse {
    Parameter parameter;
    std::size_t num_assigned = 0;  ///< how often it had been assigned
  };

  StateValue& ValueAt(const Parameter& parameter, std::size_t depth);
  void Own(StateValue& value);
  /// How often `parameter` has been assigned in the outermost function.
  std::size_t NumAssigned(const Parameter& parameter) const;
  void AddUse(const Parameter& parameter) { uses_.push_back({parameter, NumAssigned(parameter)}); }
  /// Fails where `parameter` was made from a tensor of the step, which no derivative is by.
  void FailIfMadeInStep(const Parameter& parameter);
  /// Makes `parameter` an argument of the outermost function.
  Tensor AddArgument(const Parameter& parameter);
  bool IsForgotten(const Parameter& parameter) const;
  void EmitUpdate(const DeferredUpdate& update);
  /// Emits the updates that write `parameter`.
  void EmitUpdatesOf(const Parameter& parameter);

  TracedGraph& graph_;
  CellStack& cells_;
  std::optional<std::vector<Parameter>> registered_;
  std::vector<FunctionState> functions_;
  std::vector<StateUse> uses_;
  std::vector<Parameter> used_;
  NumberedPrefixes optimizers_;
  NumberedPrefixes scalers_;
};

}  // namespace mpc::internal
