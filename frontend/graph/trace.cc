#include "frontend/graph/trace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/dialect/record_names.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::internal {
namespace {

thread_local Trace* current_trace = nullptr;

}  // namespace

Trace::Trace(const TraceOptions& options)
    : cells_(options.networks, options.network_outputs),
      graph_(cells_),
      state_(graph_, cells_, options.registered, options.optimizers),
      random_(options.rng, graph_, state_),
      updates_(options.divided_scale),
      report_(graph_, options.records),
      training_(options.training),
      processes_(options.processes),
      previous_(current_trace) {
  current_trace = this;
}

Trace::~Trace() { current_trace = previous_; }

Trace* Trace::Current() { return current_trace; }

// ---- Functions ------------------------------------------------------------------------------------------------------

void Trace::BeginStep(std::string_view name) {
  graph_.BeginFunction(name, /*is_private=*/false);
  state_.BeginFunction();
}

void Trace::EndStep(absl::Span<const Tensor> outputs, absl::Span<const std::string> names) {
  locals_.RunEndHooks();
  for (const auto& [name, value] : state_.EmitDeferred()) report_.AddTap(name, value);
  if (training_) random_.AdvanceStep();
  std::vector<compiler::NamedResult> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) {
      Fail(absl::StrCat("output ", i, " of the step is an undefined tensor"));
      continue;
    }
    results.push_back({graph_.ImportValue(outputs[i]), names[i], Role::kOutput});
  }
  for (const StateValue& value : state_.values()) {
    if (!value.assigned) continue;
    results.push_back({value.current.node()->value, value.parameter.name(), value.parameter.entry()->role()});
  }
  report_.AppendTo(results);
  CheckGradients(results);
  graph_.EndFunction(results);
  state_.EndFunction();
}

void Trace::CheckGradients(absl::Span<const compiler::NamedResult> results) {
  if (failed()) return;
  std::vector<compiler::ValueHandle> gradients;
  for (const Tensor& gradient : updates_.gradients()) gradients.push_back(gradient.node()->value);
  const auto reads_gradient = [&](const compiler::NamedResult& result) {
    const std::vector<bool> read = graph_.builder().DependsOn(result.value, gradients);
    return std::find(read.begin(), read.end(), true) != read.end();
  };
  // A step without an optimizer may make of its gradients what it likes.
  const bool needs_optimizer =
      updates_.any_claimed() || (!gradients.empty() && std::none_of(results.begin(), results.end(), reads_gradient));
  if (!needs_optimizer) return;
  if (absl::Status status = updates_.CheckAllTaken(); !status.ok()) Fail(std::string(status.message()));
}

void Trace::AddInitState(absl::Span<const Parameter> parameters) {
  graph_.BeginFunction("init_state", /*is_private=*/false);
  const Tensor seed = graph_.AddArgument({DType::kI64, {}}, {.name = "seed", .role = Role::kInput}, graph_.depth());
  std::vector<compiler::NamedResult> results;
  for (const Parameter& parameter : parameters) {
    const Initializer::Draw draw = parameter.initializer().For(parameter.shape());
    Tensor value;
    if (draw.constant) {
      value = Splat({DType::kF32, parameter.shape()}, draw.value);
    } else {
      value = Emit("random", {seed},
                   {{"distribution", draw.distribution},
                    {"a", draw.a},
                    {"b", draw.b},
                    {"stream", parameter.stream()},
                    {"shape", parameter.shape()}})[0];
    }
    results.push_back({value.node()->value, parameter.name(), Role::kOutput});
  }
  graph_.EndFunction(results);
}

// ---- Cells ----------------------------------------------------------------------------------------------------------

void Trace::EnterCell(nn::Cell& cell, const std::vector<Tensor>& inputs) {
  NotePart(cell.identity());
  const std::size_t call = in_step() ? calls_.Begin({&cell, inputs, SettingsBelow(cell), cells_.precision()},
                                                    random_.next_call_site(), state_.num_uses())
                                     : 0;
  graph_.KeepError(cells_.Enter(cell, call));
}

std::vector<Tensor> Trace::LeaveCell(std::vector<Tensor> outputs) {
  if (const std::optional<DType> rounded = cells_.rounded_outputs()) {
    for (Tensor& output : outputs) {
      if (failed() || !output.defined() || !IsFloating(output.dtype()) || output.dtype() == *rounded) continue;
      output = Emit("cast", {output}, {{"user", true}}, rounded)[0];
    }
  }
  if (const std::size_t call = cells_.call(); call != 0) calls_.End(call, outputs, state_.num_uses());
  cells_.Leave();
  return outputs;
}

void Trace::Tap(const std::string& name, const Tensor& tensor) {
  if (!tensor.defined()) Fail(absl::StrCat("tap '", name, "' was given an undefined tensor"));
  if (!failed()) state_.DeferTap(name, graph_.Import(tensor));
}

void Trace::RecordLossWeight(const Tensor& share) { Tap(std::string(kLossWeight), share); }

}  // namespace mpc::internal
