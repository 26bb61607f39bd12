#include "frontend/graph/step_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::internal {

StepState::StepState(TracedGraph& graph, CellStack& cells, std::optional<std::vector<Parameter>> registered,
                     const std::vector<Parameter>& optimizers)
    : graph_(graph),
      cells_(cells),
      registered_(std::move(registered)),
      optimizers_("optimizer", optimizers),
      scalers_("scaler") {}

FunctionState StepState::EndFunction() {
  FunctionState ended = std::move(functions_.back());
  functions_.pop_back();
  return ended;
}

// ---- Values ---------------------------------------------------------------------------------------------------------

void StepState::FailIfMadeInStep(const Parameter& parameter) {
  const absl::Status& error = parameter.initial_error();
  if (absl::IsUnimplemented(error)) graph_.Fail(std::string(error.message()));
}

Tensor StepState::AddArgument(const Parameter& parameter) {
  const Role role = parameter.entry()->role();
  if (!IsState(role)) {
    graph_.Fail(absl::StrCat("Parameter '", parameter.name(), "' has the role '", std::string(RoleName(role)),
                             "', which is none of state"));
  }
  if (parameter.name().empty()) {
    FailIfMadeInStep(parameter);
    graph_.Fail(absl::StrCat("a Parameter ", parameter.entry()->spec().ToString(), " of the role '",
                             std::string(RoleName(role)),
                             "' has no name; make it a member of a Cell that MPC_CELL names"));
  }
  used_.push_back(parameter);
  const Parameter& owner = parameter.owner();
  const compiler::NamedArgument argument{.name = parameter.name(),
                                         .role = role,
                                         .of = owner.defined() ? std::string_view(owner.name()) : "",
                                         .storage = parameter.low_storage()};
  return graph_.AddArgument(parameter.traced_spec(), argument, 1);
}

StateValue& StepState::ValueAt(const Parameter& parameter, std::size_t depth) {
  for (StateValue& value : functions_[depth - 1].values) {
    if (value.parameter == parameter) return value;
  }
  Tensor current;
  if (depth == 1) {
    current = AddArgument(parameter);
  } else {
    const Tensor outer = ValueAt(parameter, depth - 1).current;
    if (depth == 2) AddUse(parameter);
    current = graph_.failed() ? graph_.Poison(parameter.shape()) : graph_.Import(outer, depth);
  }
  functions_[depth - 1].values.push_back({.parameter = parameter, .current = current});
  return functions_[depth - 1].values.back();
}

bool StepState::IsForgotten(const Parameter& parameter) const {
  const Role role = parameter.entry()->role();
  return registered_.has_value() && (role == Role::kParameter || role == Role::kStatistic) &&
         std::find(registered_->begin(), registered_->end(), parameter) == registered_->end();
}

Tensor StepState::Read(const Parameter& parameter) {
  if (!parameter.defined()) {
    graph_.Fail("an undefined Parameter was read");
    return graph_.Poison({});
  }
  if (IsForgotten(parameter)) {
    FailIfMadeInStep(parameter);
    const nn::Cell* reader = cells_.innermost();
    graph_.Fail(absl::StrCat("a Parameter ", parameter.entry()->spec().ToString(),
                             " is used but not registered; name its member in MPC_CELL(",
                             reader == nullptr ? "Cell" : reader->TypeName(), ", ...)"));
    return graph_.Poison(parameter.shape());
  }
  if (graph_.in_step()) EmitUpdatesOf(parameter);
  StateValue& value = ValueAt(parameter, graph_.depth());
  Own(value);
  if (graph_.in_step()) AddUse(parameter);
  value.read = true;
  return value.current;
}

void StepState::Own(StateValue& value) {
  if (!std::exchange(value.may_be_shared, false) || graph_.failed()) return;
  // The pin keeps the state's precision: it is no operation of a network.
  const CellStack::FixedScope scope(cells_, {.path = cells_.path(), .pin = value.current.dtype()});
  value.current = graph_.Emit("stop_gradient", {value.current}, {})[0];
}

void StepState::OwnValues() {
  for (StateValue& value : functions_.back().values) Own(value);
}

const StateValue& StepState::UseOwn(const Parameter& parameter) {
  StateValue& value = ValueAt(parameter, graph_.depth());
  Own(value);
  return value;
}

std::size_t StepState::NumAssigned(const Parameter& parameter) const {
  for (const StateValue& value : functions_.front().values) {
    if (value.parameter == parameter) return value.num_assigned;
  }
  return 0;
}

bool StepState::UsesHold(std::size_t first, std::size_t end) const {
  return std::all_of(uses_.begin() + static_cast<std::ptrdiff_t>(first),
                     uses_.begin() + static_cast<std::ptrdiff_t>(end),
                     [this](const StateUse& use) { return NumAssigned(use.parameter) == use.num_assigned; });
}

void StepState::Assign(const Parameter& parameter, const Tensor& value) {
  if (!parameter.defined() || !value.defined()) {
    graph_.Fail("an assignment needs a defined Parameter and a defined tensor");
    return;
  }
  if (!graph_.failed() && value.spec() != parameter.traced_spec()) {
    graph_.Fail(absl::StrCat("parameter '", parameter.name(), "' is ", parameter.traced_spec().ToString(),
                             ", it cannot become ", value.spec().ToString()));
  }
  StateValue& state = ValueAt(parameter, graph_.depth());
  // A loss that depends on a shared value has not read the state, but the other one that has this value.
  if (!std::exchange(state.may_be_shared, false)) state.earlier.push_back(state.current);
  state.current = graph_.failed() ? value : graph_.Import(value);
  state.assigned = true;
  ++state.num_assigned;
}

void StepState::AssignShared(const Parameter& parameter, const Tensor& value) {
  Assign(parameter, value);
  if (graph_.failed()) return;
  const DType dtype = value.dtype();
  ValueAt(parameter, graph_.depth()).may_be_shared = dtype == DType::kF32 || IsLowPrecision(dtype);
}

// ---- Deferred updates -----------------------------------------------------------------------------------------------

void StepState::DeferUpdate(std::string_view op, std::vector<Parameter> states, std::vector<Tensor> operands,
                            Attributes attributes) {
  if (graph_.in_step()) {
    for (const Parameter& state : states) AddUse(state);
  }
  Defer({.op = std::string(op),
         .states = std::move(states),
         .operands = std::move(operands),
         .attributes = std::move(attributes),
         .scope = cells_.scope(),
         .call = cells_.call()});
}

void StepState::DeferTap(const std::string& name, const Tensor& tensor) {
  Defer({.operands = {tensor}, .call = cells_.call(), .tap = name});
}

void StepState::DropDeferred(std::size_t first, std::size_t last) {
  std::erase_if(functions_.back().deferred,
                [&](const DeferredUpdate& update) { return update.call >= first && update.call <= last; });
}

void StepState::EmitUpdate(const DeferredUpdate& update) {
  std::vector<Tensor> operands;
  for (const Parameter& state : update.states) operands.push_back(Use(state).current);
  operands.insert(operands.end(), update.operands.begin(), update.operands.end());
  const std::vector<Tensor> results = [&] {
    const CellStack::FixedScope scope(cells_, update.scope);
    return graph_.Emit(update.op, operands, update.attributes);
  }();
  if (graph_.failed()) return;
  for (std::size_t i = 0; i < update.states.size(); ++i) Assign(update.states[i], results[i]);
}

void StepState::EmitUpdatesOf(const Parameter& parameter) {
  for (DeferredUpdate& update : std::exchange(functions_.back().deferred, {})) {
    if (std::find(update.states.begin(), update.states.end(), parameter) != update.states.end()) {
      EmitUpdate(update);
    } else {
      Defer(std::move(update));
    }
  }
}

std::vector<std::pair<std::string, Tensor>> StepState::EmitDeferred() {
  std::vector<std::pair<std::string, Tensor>> taps;
  for (const DeferredUpdate& update : std::exchange(functions_.back().deferred, {})) {
    if (update.op.empty()) {
      taps.emplace_back(update.tap, update.operands[0]);
    } else {
      EmitUpdate(update);
    }
  }
  return taps;
}

}  // namespace mpc::internal
