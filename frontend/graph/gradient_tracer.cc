#include "frontend/graph/gradient_tracer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::internal {
namespace {

/// Whether a tensor of the type has cotangents: it is floating, and more than casts takes it.
bool HasGradients(DType dtype) { return IsFloating(dtype) && !InfoOf(dtype).cast_only; }

}  // namespace

std::vector<Tensor> GradientTracer::Symbolic(const std::vector<compiler::TypedValue>& values) {
  std::vector<Tensor> tensors;
  for (const compiler::TypedValue& value : values) tensors.push_back(graph_.Symbolic(value));
  return tensors;
}

// ---- A function -----------------------------------------------------------------------------------------------------

std::vector<CellCall*> GradientTracer::SharedCalls(nn::Cell* cell, const std::vector<Tensor>& inputs) {
  if (cell == nullptr || !graph_.in_step()) return {};
  std::vector<CellCall*> calls = calls_.Find({cell, inputs, SettingsBelow(*cell), cells_.precision()});
  std::erase_if(calls, [&](const CellCall* call) {
    return !state_.UsesHold(call->first_state_use, call->ended() ? call->end_state_use : state_.num_uses());
  });
  return calls;
}

std::vector<Tensor> GradientTracer::TraceForward(const nn::Cell* cell, const TensorFunction& function,
                                                 const std::vector<Tensor>& inputs,
                                                 absl::Span<const Parameter> parameters,
                                                 absl::Span<CellCall* const> shared) {
  std::vector<Tensor> arguments;
  for (const Tensor& input : inputs) {
    if (!input.defined()) graph_.Fail("a gradient was asked for on an undefined input");
    arguments.push_back(graph_.failed() ? graph_.Poison({}) : graph_.Import(input));
  }
  for (const Parameter& parameter : parameters) state_.Use(parameter);
  // A repeated forward pass draws what the first one drew.
  const std::int64_t fresh_call_site = random_.next_call_site();
  if (!shared.empty()) random_.Repeat(shared.front()->first_call_site);
  cells_.EnterLoss(cell);
  std::vector<Tensor> outputs = function(arguments);
  cells_.LeaveLoss();
  random_.Resume(fresh_call_site);
  if (outputs.empty()) graph_.Fail("a function without outputs has no gradient");
  return outputs;
}

void GradientTracer::CloseLoss(absl::Span<const Parameter> parameters, LossFunction& loss) {
  std::vector<compiler::NamedResult> results;
  auto add_result = [&](const Tensor& tensor) {
    if (!graph_.failed()) results.push_back({graph_.ImportValue(tensor), "", std::nullopt});
  };
  for (const Tensor& output : loss.outputs) add_result(output);
  // What the function leaves behind besides its outputs: operands of state updates, then assigned state.
  for (const DeferredUpdate& update : state_.deferred()) {
    for (const Tensor& operand : update.operands) add_result(operand);
  }
  for (const StateValue& value : state_.values()) {
    if (!value.assigned) continue;
    loss.assigned.push_back(value.parameter);
    add_result(value.current);
  }
  for (const Parameter& parameter : parameters) {
    const Tensor captured = state_.Use(parameter, graph_.depth() - 1).current;
    const std::vector<Tensor>& operands = graph_.captures();
    const auto operand =
        std::find_if(operands.begin(), operands.end(), [&](const Tensor& each) { return SameValue(each, captured); });
    if (operand != operands.end()) loss.wrt.push_back(operand - operands.begin());
  }
  loss.operands = graph_.EndFunction(results);
  FunctionState ended = state_.EndFunction();
  for (const StateValue& value : ended.values) {
    if (value.read) updates_.AddRead(value.parameter);
  }
  updates_.AddDifferentiated(parameters);
  loss.deferred = std::move(ended.deferred);
}

std::vector<compiler::TypedValue> GradientTracer::CallLoss(const LossFunction& loss, const Tensor& seed,
                                                           std::int64_t loss_id) {
  if (graph_.failed()) return {};
  std::vector<compiler::ValueHandle> operands;
  for (const Tensor& operand : loss.operands) operands.push_back(operand.node()->value);
  absl::StatusOr<std::vector<compiler::TypedValue>> values =
      graph_.builder().ValueAndGrad(loss.callee, operands, graph_.ImportValue(seed), loss.wrt, loss_id, cells_.scope());
  if (values.ok()) return *std::move(values);
  graph_.Fail(std::string(values.status().message()));
  return {};
}

GradientTracer::Gradients GradientTracer::ValueAndGrad(nn::Cell* cell, const TensorFunction& function,
                                                       const std::vector<Tensor>& inputs,
                                                       absl::Span<const Parameter> parameters, const Tensor& seed,
                                                       std::int64_t loss_id) {
  const Tensor seed_value = SeedOr1(seed);
  state_.OwnValues();
  const std::vector<CellCall*> shared = SharedCalls(cell, inputs);
  LossFunction loss;
  loss.callee = graph_.BeginFunction("forward", /*is_private=*/true);
  state_.BeginFunction();
  loss.outputs = TraceForward(cell, function, inputs, parameters, shared);
  CloseLoss(parameters, loss);
  const std::vector<compiler::TypedValue> values = CallLoss(loss, seed_value, loss_id);
  Gradients result;
  if (graph_.failed()) {
    result.outputs.assign(std::max<std::size_t>(1, loss.outputs.size()), graph_.Poison({}));
    for (const Parameter& parameter : parameters) result.gradients.push_back(graph_.Poison(parameter.shape()));
    return result;
  }
  std::size_t next = 0;
  auto take = [&] { return graph_.Symbolic(values[next++]); };
  for (std::size_t i = 0; i < loss.outputs.size(); ++i) result.outputs.push_back(take());
  ReplaceCalls(shared, loss.operands, result.outputs);
  for (DeferredUpdate& update : loss.deferred) {
    for (Tensor& operand : update.operands) operand = take();
    update.call = 0;
    state_.Defer(std::move(update));
  }
  // Inlined, what the function assigned may be a value that it reads elsewhere.
  for (const Parameter& parameter : loss.assigned) state_.AssignShared(parameter, take());
  for (std::size_t i = 0; i < parameters.size(); ++i) result.gradients.push_back(take());
  return result;
}

void GradientTracer::ReplaceCalls(absl::Span<CellCall* const> shared, const std::vector<Tensor>& operands,
                                  const std::vector<Tensor>& outputs) {
  // Tensors that the call did not make are the same in both passes: constants, inputs, state.
  auto is_made_by_call = [&](const Tensor& output) {
    return output.defined() && !output.concrete() &&
           std::none_of(operands.begin(), operands.end(), [&](const Tensor& each) { return SameValue(each, output); });
  };
  for (CellCall* call : shared) {
    if (!call->ended() || call->outputs.size() != outputs.size()) continue;
    std::vector<Tensor> from, to;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!is_made_by_call(call->outputs[i])) continue;
      from.push_back(call->outputs[i]);
      to.push_back(outputs[i]);
    }
    if (!graph_.ReplaceValues(from, to)) continue;
    call->replaced = true;
    state_.DropDeferred(call->number, call->last);
  }
}

// ---- A value --------------------------------------------------------------------------------------------------------

void GradientTracer::CheckLoss(std::string_view function, const Tensor& loss) {
  const std::string name(function);
  if (!loss.defined()) {
    graph_.Fail(absl::StrCat(name, " was given an undefined loss"));
  } else if (!loss.status().ok()) {
    graph_.Fail(std::string(loss.status().message()));
  } else if (!HasGradients(loss.dtype())) {
    graph_.Fail(absl::StrCat(name, " differentiates a floating loss, got ", loss.spec().ToString()));
  }
}

void GradientTracer::CheckGradBy(const Tensor& tensor) {
  if (!tensor.defined()) {
    graph_.Fail("Grad was given an undefined tensor");
  } else if (!tensor.status().ok()) {
    graph_.Fail(std::string(tensor.status().message()));
  } else if (tensor.concrete()) {
    graph_.Fail(
        absl::StrCat("Grad takes tensors that the loss was computed from, got a constant, ", tensor.spec().ToString()));
  } else if (!HasGradients(tensor.dtype())) {
    graph_.Fail(absl::StrCat("Grad takes floating tensors, got ", tensor.spec().ToString()));
  }
}

std::vector<Tensor> GradientTracer::RequestGradients(const Tensor& loss, absl::Span<const compiler::ValueHandle> wrt,
                                                     const Tensor& seed, std::int64_t loss_id, bool by_values) {
  if (graph_.failed()) return {};
  const compiler::ValueHandle value = graph_.ImportValue(loss), seed_value = graph_.ImportValue(SeedOr1(seed));
  if (graph_.failed()) return {};
  absl::StatusOr<std::vector<compiler::TypedValue>> values =
      graph_.builder().Backward(value, wrt, seed_value, loss_id, by_values, cells_.scope());
  if (values.ok()) return Symbolic(*values);
  graph_.Fail(std::string(values.status().message()));
  return {};
}

compiler::ValueHandle GradientTracer::ValueReadBy(compiler::ValueHandle loss, const Parameter& parameter) {
  const StateValue& state = state_.UseOwn(parameter);
  std::vector<compiler::ValueHandle> versions{state.current.node()->value};
  for (auto earlier = state.earlier.rbegin(); earlier != state.earlier.rend(); ++earlier) {
    versions.push_back(earlier->node()->value);
  }
  const std::vector<bool> read = graph_.builder().DependsOn(loss, versions);
  const auto latest = std::find(read.begin(), read.end(), true);
  if (latest == read.end()) return versions.front();
  updates_.AddRead(parameter);
  return versions[static_cast<std::size_t>(latest - read.begin())];
}

std::vector<Tensor> GradientTracer::Backward(const Tensor& loss, absl::Span<const Parameter> parameters,
                                             const Tensor& seed, std::int64_t loss_id) {
  CheckLoss("Backward", loss);
  std::vector<compiler::ValueHandle> wrt;
  const compiler::ValueHandle value = graph_.failed() ? nullptr : graph_.ImportValue(loss);
  for (const Parameter& parameter : parameters) {
    if (!parameter.defined()) graph_.Fail("Backward was given an undefined Parameter");
    if (graph_.failed()) break;
    wrt.push_back(ValueReadBy(value, parameter));
  }
  updates_.AddDifferentiated(parameters);
  const std::vector<Tensor> gradients = RequestGradients(loss, wrt, seed, loss_id, /*by_values=*/false);
  if (graph_.in_step()) updates_.AddGradients(gradients);
  if (!graph_.failed()) return gradients;
  std::vector<Tensor> poisoned;
  for (const Parameter& parameter : parameters) {
    poisoned.push_back(graph_.Poison(parameter.defined() ? parameter.shape() : Shape()));
  }
  return poisoned;
}

std::vector<Tensor> GradientTracer::Grad(const Tensor& loss, absl::Span<const Tensor> tensors, const Tensor& seed) {
  CheckLoss("Grad", loss);
  std::vector<compiler::ValueHandle> wrt;
  for (const Tensor& tensor : tensors) {
    CheckGradBy(tensor);
    if (graph_.failed()) break;
    wrt.push_back(graph_.ImportValue(tensor));
  }
  const std::vector<Tensor> gradients = RequestGradients(loss, wrt, seed, /*loss_id=*/-1, /*by_values=*/true);
  if (!graph_.failed()) return gradients;
  std::vector<Tensor> poisoned;
  for (const Tensor& tensor : tensors) poisoned.push_back(graph_.Poison(tensor.defined() ? tensor.shape() : Shape()));
  return poisoned;
}

// ---- Rules of the user's own ----------------------------------------------------------------------------------------

void GradientTracer::CheckIsolated() {
  if (const std::vector<Tensor>& captures = graph_.captures(); !captures.empty() && !graph_.failed()) {
    const std::string captured = graph_.builder().ArgumentName(captures.front().node()->value);
    graph_.Fail(absl::StrCat("a function given to CustomVjp reads ",
                             captured.empty() ? "a tensor" : "'" + captured + "'",
                             " from outside; make it one of the inputs"));
  }
  const std::vector<StateValue>& values = state_.values();
  const bool assigns =
      std::any_of(values.begin(), values.end(), [](const StateValue& value) { return value.assigned; });
  if (assigns || !state_.deferred().empty()) graph_.Fail("a function given to CustomVjp must not update state");
}

std::string GradientTracer::TraceIsolated(std::string_view name, const std::vector<TensorSpec>& arguments,
                                          const TensorFunction& function, std::vector<Tensor>* outputs) {
  const std::string symbol = graph_.BeginFunction(name, /*is_private=*/true);
  state_.BeginFunction();
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string input = absl::StrCat("input", i);
    values.push_back(graph_.AddArgument(arguments[i], {.name = input, .role = Role::kInput}, graph_.depth()));
  }
  *outputs = function(values);
  std::vector<compiler::NamedResult> results;
  for (Tensor& output : *outputs) {
    if (!output.defined()) graph_.Fail("a function given to CustomVjp returned an undefined tensor");
    if (graph_.failed()) break;
    output = graph_.Import(output);
    results.push_back({output.node()->value, "", std::nullopt});
  }
  CheckIsolated();
  graph_.EndFunction(results);
  state_.EndFunction();
  return symbol;
}

void GradientTracer::CheckCotangents(const std::vector<Tensor>& cotangents, const std::vector<TensorSpec>& floating) {
  if (graph_.failed()) return;
  if (cotangents.size() != floating.size()) {
    graph_.Fail(absl::StrCat("the rule given to CustomVjp returns ", cotangents.size(), " cotangents for ",
                             floating.size(), " floating inputs"));
    return;
  }
  for (std::size_t i = 0; i < floating.size(); ++i) {
    if (cotangents[i].spec() == floating[i]) continue;
    graph_.Fail(absl::StrCat("cotangent ", i, " of the rule given to CustomVjp is ", cotangents[i].spec().ToString(),
                             ", its input is ", floating[i].ToString()));
    return;
  }
}

std::vector<Tensor> GradientTracer::CustomVjp(const TensorFunction& forward, const TensorFunction& rule,
                                              const std::vector<Tensor>& inputs) {
  std::vector<TensorSpec> specs, floating;
  std::vector<compiler::ValueHandle> operands;
  for (const Tensor& input : inputs) {
    if (!input.defined()) graph_.Fail("CustomVjp was given an undefined input");
    if (graph_.failed()) return {graph_.Poison({})};
    operands.push_back(graph_.ImportValue(input));
    specs.push_back(input.spec());
    if (HasGradients(input.dtype())) floating.push_back(input.spec());
  }
  std::vector<Tensor> outputs, cotangents;
  const std::string callee = TraceIsolated("custom", specs, forward, &outputs);
  if (!graph_.failed()) {
    std::vector<TensorSpec> of_rule = specs;
    for (int copy = 0; copy < 2; ++copy) {
      for (const Tensor& output : outputs) of_rule.push_back(output.spec());
    }
    const std::string vjp = TraceIsolated("custom_vjp", of_rule, rule, &cotangents);
    CheckCotangents(cotangents, floating);
    if (!graph_.failed()) return Symbolic(graph_.builder().CustomVjp(callee, vjp, operands, cells_.scope()));
  }
  std::vector<Tensor> poisoned;
  for (const Tensor& output : outputs) poisoned.push_back(graph_.Poison(output.defined() ? output.shape() : Shape()));
  if (poisoned.empty()) poisoned.push_back(graph_.Poison({}));
  return poisoned;
}

}  // namespace mpc::internal
