// Derivatives of networks and values in a trace, and rules of the user's own.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/graph/tensor_node.h"
#include "frontend/graph/trace.h"

namespace mpc::internal {
namespace {

/// Whether a tensor of the type has cotangents: it is floating, and more than casts takes it.
bool HasGradients(DType dtype) { return IsFloating(dtype) && !InfoOf(dtype).cast_only; }

bool SameValue(const Tensor& a, const Tensor& b) {
  if (a.node() == b.node()) return true;
  return a.symbolic() && b.symbolic() && a.node()->value != nullptr && a.node()->value == b.node()->value;
}

bool SameValues(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!SameValue(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace

std::vector<Tensor> Trace::TraceForward(const nn::Cell* cell, const TensorFunction& function,
                                        const std::vector<Tensor>& inputs, absl::Span<const Parameter> parameters) {
  std::vector<Tensor> arguments;
  for (const Tensor& input : inputs) {
    if (!input.defined()) Fail("a gradient was asked for on an undefined input");
    arguments.push_back(failed() ? Poison({}) : Import(input, depth()));
  }
  for (const Parameter& parameter : parameters) StateAt(parameter, depth());
  // A repeated forward pass draws what the first one drew.
  const std::int64_t fresh_call_site = next_call_site_;
  if (const CellCall* earlier = FindEarlierCall(cell, inputs)) next_call_site_ = earlier->first_call_site;
  losses_.push_back(cell);
  std::vector<Tensor> outputs = function(arguments);
  losses_.pop_back();
  next_call_site_ = std::max(next_call_site_, fresh_call_site);
  if (outputs.empty()) Fail("a function without outputs has no gradient");
  return outputs;
}

void Trace::CloseLoss(absl::Span<const Parameter> parameters, LossFunction& loss) {
  Frame& frame = frames_.back();
  std::vector<compiler::NamedResult> results;
  auto add_result = [&](const Tensor& tensor) {
    if (!failed()) results.push_back({Import(tensor, depth()).node()->value, "", std::nullopt});
  };
  for (const Tensor& output : loss.outputs) add_result(output);
  // What the function leaves behind besides its outputs: operands of state updates, then assigned state.
  for (const Deferred& update : frame.deferred) {
    for (const Tensor& operand : update.operands) add_result(operand);
  }
  for (const StateValue& state : frame.states) {
    if (!state.assigned) continue;
    loss.assigned.push_back(state.parameter);
    add_result(state.current);
  }
  for (const Parameter& parameter : parameters) {
    const Tensor captured = StateAt(parameter, depth() - 1).current;
    const auto operand = std::find_if(frame.operands.begin(), frame.operands.end(),
                                      [&](const Tensor& each) { return SameValue(each, captured); });
    if (operand != frame.operands.end()) loss.wrt.push_back(operand - frame.operands.begin());
  }
  if (!failed()) graph_.EndFunction(results);
  for (const StateValue& state : frame.states) {
    if (state.read) read_by_losses_.push_back(state.parameter);
  }
  differentiated_.insert(differentiated_.end(), parameters.begin(), parameters.end());
  loss.frame = std::move(frames_.back());
  frames_.pop_back();
}

std::vector<compiler::TypedValue> Trace::CallLoss(const LossFunction& loss, const Tensor& seed, std::int64_t loss_id) {
  if (failed()) return {};
  std::vector<compiler::ValueHandle> operands;
  for (const Tensor& operand : loss.frame.operands) operands.push_back(operand.node()->value);
  absl::StatusOr<std::vector<compiler::TypedValue>> values =
      graph_.ValueAndGrad(loss.callee, operands, Import(seed, depth()).node()->value, loss.wrt, loss_id, scope());
  if (values.ok()) return *std::move(values);
  Fail(std::string(values.status().message()));
  return {};
}

Trace::Gradients Trace::ValueAndGrad(const nn::Cell* cell, const TensorFunction& function,
                                     const std::vector<Tensor>& inputs, absl::Span<const Parameter> parameters,
                                     const Tensor& seed, std::int64_t loss_id) {
  const Tensor seed_value = seed.defined() ? seed : Splat({DType::kF32, {}}, 1.0);
  LossFunction loss;
  loss.callee = graph_.BeginFunction("forward", /*is_private=*/true);
  frames_.emplace_back();
  loss.outputs = TraceForward(cell, function, inputs, parameters);
  CloseLoss(parameters, loss);
  const std::vector<compiler::TypedValue> values = CallLoss(loss, seed_value, loss_id);
  Gradients result;
  if (failed()) {
    result.outputs.assign(std::max<std::size_t>(1, loss.outputs.size()), Poison({}));
    for (const Parameter& parameter : parameters) result.gradients.push_back(Poison(parameter.shape()));
    return result;
  }
  std::size_t next = 0;
  auto take = [&] { return Symbolic(values[next++], depth()); };
  for (std::size_t i = 0; i < loss.outputs.size(); ++i) result.outputs.push_back(take());
  if (cell != nullptr) ReplaceEarlierCall(cell, inputs, result.outputs);
  for (Deferred update : loss.frame.deferred) {
    for (Tensor& operand : update.operands) operand = take();
    update.call = 0;
    frames_.back().deferred.push_back(std::move(update));
  }
  for (const Parameter& parameter : loss.assigned) Assign(parameter, take());
  for (std::size_t i = 0; i < parameters.size(); ++i) result.gradients.push_back(take());
  return result;
}

Trace::CellCall* Trace::FindEarlierCall(const nn::Cell* cell, const std::vector<Tensor>& inputs) {
  for (CellCall& call : calls_) {
    if (cell != nullptr && call.cell == cell && !call.replaced && SameValues(call.inputs, inputs)) return &call;
  }
  return nullptr;
}

// A step that calls its network and then asks for its gradient on the same inputs means one forward pass.
void Trace::ReplaceEarlierCall(const nn::Cell* cell, const std::vector<Tensor>& inputs,
                               const std::vector<Tensor>& outputs) {
  for (std::size_t index = 0; index < calls_.size(); ++index) {
    CellCall& call = calls_[index];
    if (call.cell != cell || call.replaced || !SameValues(call.inputs, inputs)) continue;
    if (call.outputs.size() != outputs.size()) continue;
    bool replaced = true;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      replaced &= graph_.ReplaceUses(call.outputs[i].node()->value, outputs[i].node()->value);
      // Handles that the program still holds stand for the new value from now on.
      if (replaced) const_cast<TensorNode*>(call.outputs[i].node().get())->value = outputs[i].node()->value;
    }
    if (!replaced) continue;
    call.replaced = true;
    std::erase_if(frames_.back().deferred,
                  [&](const Deferred& update) { return update.call > index && update.call <= call.last; });
  }
}

std::vector<Tensor> Trace::Backward(const Tensor& loss, absl::Span<const Parameter> parameters, const Tensor& seed,
                                    std::int64_t loss_id) {
  if (!loss.defined()) {
    Fail("Backward was given an undefined loss");
  } else if (!loss.status().ok()) {
    Fail(std::string(loss.status().message()));
  } else if (!HasGradients(loss.dtype())) {
    Fail(absl::StrCat("Backward differentiates a floating loss, got ", loss.spec().ToString()));
  }
  std::vector<compiler::ValueHandle> wrt;
  const compiler::ValueHandle value = failed() ? nullptr : Import(loss, depth()).node()->value;
  for (const Parameter& parameter : parameters) {
    if (!parameter.defined()) Fail("Backward was given an undefined Parameter");
    if (failed()) break;
    const StateValue& state = StateAt(parameter, depth());
    std::vector<compiler::ValueHandle> versions{state.current.node()->value};
    for (auto earlier = state.earlier.rbegin(); earlier != state.earlier.rend(); ++earlier) {
      versions.push_back(earlier->node()->value);
    }
    const std::vector<bool> read = graph_.DependsOn(value, versions);
    const auto latest = std::find(read.begin(), read.end(), true);
    if (latest != read.end()) read_by_losses_.push_back(parameter);
    wrt.push_back(latest == read.end() ? versions.front() : versions[static_cast<std::size_t>(latest - read.begin())]);
  }
  differentiated_.insert(differentiated_.end(), parameters.begin(), parameters.end());
  std::vector<Tensor> gradients;
  if (!failed()) {
    const Tensor seed_value = Import(seed.defined() ? seed : Splat({DType::kF32, {}}, 1.0), depth());
    absl::StatusOr<std::vector<compiler::TypedValue>> values = absl::UnknownError("not called");
    if (!failed()) values = graph_.Backward(value, wrt, seed_value.node()->value, loss_id, scope());
    if (!values.ok()) Fail(std::string(values.status().message()));
    if (!failed()) {
      for (const compiler::TypedValue& gradient : *values) gradients.push_back(Symbolic(gradient, depth()));
    }
  }
  if (failed()) {
    gradients.clear();
    for (const Parameter& parameter : parameters) {
      gradients.push_back(parameter.defined() ? Poison(parameter.shape()) : Poison({}));
    }
  }
  return gradients;
}

std::string Trace::TraceIsolated(std::string_view name, const std::vector<TensorSpec>& arguments,
                                 const TensorFunction& function, std::vector<Tensor>* outputs) {
  const std::string symbol = graph_.BeginFunction(name, /*is_private=*/true);
  frames_.emplace_back();
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string input = absl::StrCat("input", i);
    const compiler::ValueHandle argument =
        graph_.AddArgument(arguments[i], {.name = input, .role = Role::kInput}, depth());
    values.push_back(Symbolic({argument, arguments[i]}, depth()));
  }
  frames_.back().operands = values;
  *outputs = function(values);
  std::vector<compiler::NamedResult> results;
  for (Tensor& output : *outputs) {
    if (!output.defined()) Fail("a function given to CustomVjp returned an undefined tensor");
    if (failed()) break;
    output = Import(output, depth());
    results.push_back({output.node()->value, "", std::nullopt});
  }
  const Frame& frame = frames_.back();
  if (frame.operands.size() > arguments.size() && !failed()) {
    const std::string captured = graph_.ArgumentName(frame.operands[arguments.size()].node()->value);
    Fail(absl::StrCat("a function given to CustomVjp reads ", captured.empty() ? "a tensor" : "'" + captured + "'",
                      " from outside; make it one of the inputs"));
  }
  const bool assigns =
      std::any_of(frame.states.begin(), frame.states.end(), [](const StateValue& state) { return state.assigned; });
  if (assigns || !frame.deferred.empty()) Fail("a function given to CustomVjp must not update state");
  if (!failed()) graph_.EndFunction(results);
  frames_.pop_back();
  return symbol;
}

std::vector<Tensor> Trace::CustomVjp(const TensorFunction& forward, const TensorFunction& rule,
                                     const std::vector<Tensor>& inputs) {
  std::vector<TensorSpec> specs, floating;
  std::vector<compiler::ValueHandle> operands;
  for (const Tensor& input : inputs) {
    if (!input.defined()) Fail("CustomVjp was given an undefined input");
    if (failed()) return {Poison({})};
    operands.push_back(Import(input, depth()).node()->value);
    specs.push_back(input.spec());
    if (HasGradients(input.dtype())) floating.push_back(input.spec());
  }
  std::vector<Tensor> outputs, cotangents;
  const std::string callee = TraceIsolated("custom", specs, forward, &outputs);
  if (!failed()) {
    std::vector<TensorSpec> of_rule = specs;
    for (int copy = 0; copy < 2; ++copy) {
      for (const Tensor& output : outputs) of_rule.push_back(output.spec());
    }
    const std::string vjp = TraceIsolated("custom_vjp", of_rule, rule, &cotangents);
    if (!failed() && cotangents.size() != floating.size()) {
      Fail(absl::StrCat("the rule given to CustomVjp returns ", cotangents.size(), " cotangents for ", floating.size(),
                        " floating inputs"));
    }
    for (std::size_t i = 0; i < floating.size() && !failed(); ++i) {
      if (cotangents[i].spec() == floating[i]) continue;
      Fail(absl::StrCat("cotangent ", i, " of the rule given to CustomVjp is ", cotangents[i].spec().ToString(),
                        ", its input is ", floating[i].ToString()));
    }
    if (!failed()) {
      std::vector<Tensor> results;
      for (const compiler::TypedValue& value : graph_.CustomVjp(callee, vjp, operands, scope())) {
        results.push_back(Symbolic(value, depth()));
      }
      return results;
    }
  }
  std::vector<Tensor> poisoned;
  for (const Tensor& output : outputs) poisoned.push_back(Poison(output.defined() ? output.shape() : Shape()));
  if (poisoned.empty()) poisoned.push_back(Poison({}));
  return poisoned;
}

}  // namespace mpc::internal
