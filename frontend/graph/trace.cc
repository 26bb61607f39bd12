#include "frontend/graph/trace.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/context.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::internal {
namespace {

thread_local Trace* current_trace = nullptr;

/// A deferred "update" that writes no state: what it holds leaves every function with the other deferred operands.
constexpr char kTapOp[] = "tap";

const void* NewTraceId() {
  static std::atomic<std::uintptr_t> last{0};
  return reinterpret_cast<const void*>(++last);
}

/// `error` of an operation's verifier in the user's words, where the type of an operand is what it complains about.
std::string InUsersWords(std::string_view op, const std::string& error, absl::Span<const Tensor> operands) {
  constexpr std::string_view kOperand = "operand #";
  const std::size_t at = error.find(kOperand);
  if (at == std::string::npos || error.find(" must be ", at) == std::string::npos) return error;
  const std::size_t index = static_cast<std::size_t>(std::atoi(error.c_str() + at + kOperand.size()));
  if (index >= operands.size()) return error;
  const char* accepted = error.find("-bit float", at) != std::string::npos ? "kF32" : "kI32";
  return absl::StrCat(std::string(op), " does not take ", operands[index].spec().ToString(), " as operand ", index,
                      "; cast it first, as with ops::Cast(x, DType::", accepted, ")");
}

// "name" for the first one, "name2" for the second, ...
std::string NumberedPrefix(const char* name, const Parameter& wanted, std::vector<Parameter>& known) {
  const auto found = std::find(known.begin(), known.end(), wanted);
  const auto index = found - known.begin();
  if (found == known.end()) known.push_back(wanted);
  return index == 0 ? std::string(name) : absl::StrCat(name, index + 1);
}

}  // namespace

RngState MakeRngState(std::uint64_t seed) {
  RngState state;
  const std::int64_t seed_bits = static_cast<std::int64_t>(seed);
  state.seed = Parameter(Tensor::Scalar<std::int64_t>(seed_bits), {.requires_grad = false, .role = Role::kRng});
  state.seed.set_name("rng.seed");
  state.step = Parameter(Tensor::Scalar<std::int32_t>(0), {.requires_grad = false, .role = Role::kRng});
  state.step.set_name("rng.step");
  return state;
}

Trace::Trace(std::vector<const nn::Cell*> networks, RngState rng)
    : id_(NewTraceId()), networks_(std::move(networks)), rng_(std::move(rng)), previous_(current_trace) {
  current_trace = this;
}

Trace::~Trace() { current_trace = previous_; }

Trace* Trace::Current() { return current_trace; }

// ---- Functions ------------------------------------------------------------------------------------------------------

void Trace::BeginStep(std::string_view name) {
  graph_.BeginFunction(name, /*is_private=*/false);
  frames_.emplace_back();
  num_inputs_ = 0;
}

Tensor Trace::AddInput(const TensorSpec& spec, std::string_view name) {
  const Tensor input =
      Symbolic({graph_.AddArgument(spec, {.name = name, .role = Role::kInput}, depth()), spec}, depth());
  inputs_[input.node()->value] = num_inputs_++;
  return input;
}

void Trace::EndStep(absl::Span<const Tensor> outputs, absl::Span<const std::string> names) {
  CheckUpdates();
  for (const std::function<void()>& hook : std::exchange(end_hooks_, {})) hook();
  FlushDeferred(nullptr);
  if (uses_random_ && training_) {
    const Tensor step = Read(rng_.step);
    Assign(rng_.step, Emit("increment", {step}, {})[0]);
  }
  std::vector<compiler::NamedResult> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) {
      Fail(absl::StrCat("output ", i, " of the step is an undefined tensor"));
      continue;
    }
    results.push_back({Import(outputs[i], depth()).node()->value, names[i], Role::kOutput});
  }
  for (const StateValue& state : frames_.back().states) {
    if (!state.assigned) continue;
    results.push_back({state.current.node()->value, state.parameter.name(), state.parameter.entry()->role()});
  }
  for (const auto& [name, value] : records_) results.push_back({value.node()->value, name, Role::kRecord});
  for (const auto& [name, value] : taps_) results.push_back({value.node()->value, name, Role::kRecord});
  if (!failed()) graph_.EndFunction(results);
  frames_.pop_back();
}

void Trace::AddInitState(absl::Span<const Parameter> parameters) {
  graph_.BeginFunction("init_state", /*is_private=*/false);
  frames_.emplace_back();
  const Tensor seed = AddInput({DType::kI64, {}}, "seed");
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
  if (!failed()) graph_.EndFunction(results);
  frames_.pop_back();
}

absl::StatusOr<compiler::Module> Trace::Finish() {
  if (!status_.ok()) return status_;
  return graph_.Finish();
}

// ---- Operations -----------------------------------------------------------------------------------------------------

std::vector<Tensor> Trace::Emit(std::string_view op, absl::Span<const Tensor> operands, const Attributes& attributes,
                                std::optional<DType> result_dtype) {
  std::vector<compiler::ValueHandle> values;
  for (const Tensor& operand : operands) {
    if (!operand.defined()) {
      Fail(absl::StrCat(std::string(op), " was given an undefined tensor"));
    } else if (!operand.status().ok()) {
      Fail(std::string(operand.status().message()));
    }
    if (failed()) break;
    values.push_back(Import(operand, depth()).node()->value);
  }
  absl::StatusOr<std::vector<compiler::TypedValue>> results =
      failed() ? absl::StatusOr<std::vector<compiler::TypedValue>>(status_)
               : graph_.Emit(op, values, attributes, ScopeOf(op), result_dtype);
  if (!results.ok()) {
    Fail(InUsersWords(op, std::string(results.status().message()), operands));
    const Shape shape = operands.empty() || !operands[0].defined() ? Shape() : operands[0].shape();
    return std::vector<Tensor>(4, Poison(Shape(shape.size(), 1)));
  }
  std::vector<Tensor> tensors;
  for (const compiler::TypedValue& result : *results) tensors.push_back(Symbolic(result, depth()));
  if (op == "reshape") SameElements(values[0], tensors[0].node()->value);
  return tensors;
}

Tensor Trace::Splat(const TensorSpec& spec, double value) {
  if (failed()) return Poison(spec.shape, spec.dtype);
  return Symbolic(graph_.Splat(spec, value, scope()), depth());
}

// ---- State ----------------------------------------------------------------------------------------------------------

Trace::StateValue& Trace::StateAt(const Parameter& parameter, std::size_t depth) {
  for (StateValue& state : frames_[depth - 1].states) {
    if (state.parameter == parameter) return state;
  }
  Tensor value;
  if (depth == 1) {
    const Role role = parameter.entry()->role();
    if (!IsState(role)) {
      Fail(absl::StrCat("Parameter '", parameter.name(), "' has the role '", std::string(RoleName(role)),
                        "', which is none of state"));
    }
    if (parameter.name().empty()) {
      Fail(absl::StrCat("a Parameter ", parameter.entry()->spec().ToString(), " of the role '",
                        std::string(RoleName(role)), "' has no name; make it a member of a Cell that MPC_CELL names"));
    }
    used_.push_back(parameter);
    const TensorSpec spec = parameter.traced_spec();
    const Parameter& owner = parameter.owner();
    const compiler::NamedArgument argument{.name = parameter.name(),
                                           .role = role,
                                           .of = owner.defined() ? std::string_view(owner.name()) : "",
                                           .storage = parameter.low_storage()};
    value = Symbolic({graph_.AddArgument(spec, argument, depth), spec}, depth);
  } else {
    const Tensor outer = StateAt(parameter, depth - 1).current;
    value = failed() ? Poison(parameter.shape()) : Import(outer, depth);
  }
  frames_[depth - 1].states.push_back({parameter, value, false, false, {}});
  return frames_[depth - 1].states.back();
}

Tensor Trace::Read(const Parameter& parameter) {
  if (!parameter.defined()) {
    Fail("an undefined Parameter was read");
    return Poison({});
  }
  const Role role = parameter.entry()->role();
  if (registered_.has_value() && (role == Role::kParameter || role == Role::kStatistic) &&
      std::find(registered_->begin(), registered_->end(), parameter) == registered_->end()) {
    const nn::Cell* reader = cells_.empty() ? nullptr : cells_.back().cell;
    Fail(absl::StrCat("a Parameter ", parameter.entry()->spec().ToString(),
                      " is used but not registered; name its member in MPC_CELL(",
                      reader == nullptr ? "Cell" : reader->TypeName(), ", ...)"));
    return Poison(parameter.shape());
  }
  if (depth() == 1) FlushDeferred(&parameter);
  StateValue& state = StateAt(parameter, depth());
  state.read = true;
  return state.current;
}

void Trace::Assign(const Parameter& parameter, const Tensor& value) {
  if (!parameter.defined() || !value.defined()) {
    Fail("an assignment needs a defined Parameter and a defined tensor");
    return;
  }
  if (!failed() && value.spec() != parameter.traced_spec()) {
    Fail(absl::StrCat("parameter '", parameter.name(), "' is ", parameter.traced_spec().ToString(),
                      ", it cannot become ", value.spec().ToString()));
  }
  StateValue& state = StateAt(parameter, depth());
  state.earlier.push_back(state.current);
  state.current = failed() ? value : Import(value, depth());
  state.assigned = true;
}

void Trace::DeferUpdate(std::string_view op, std::vector<Parameter> states, std::vector<Tensor> operands,
                        Attributes attributes) {
  const std::size_t call = cells_.empty() ? 0 : cells_.back().call;
  frames_.back().deferred.push_back(
      {std::string(op), std::move(states), std::move(operands), std::move(attributes), scope(), call});
}

void Trace::Tap(const std::string& name, const Tensor& tensor) {
  if (!tensor.defined()) Fail(absl::StrCat("tap '", name, "' was given an undefined tensor"));
  if (failed()) return;
  DeferUpdate(kTapOp, {}, {Import(tensor, depth())}, {{"name", name}});
}

void Trace::EmitUpdate(const Deferred& update) {
  if (update.op == kTapOp) {
    if (failed()) return;
    const std::string name = update.attributes.GetString("name");
    std::string unique = name;
    const auto taken = [&](const auto& tap) { return tap.first == unique; };
    for (int use = 2; std::any_of(taps_.begin(), taps_.end(), taken); ++use) unique = absl::StrCat(name, "#", use);
    taps_.emplace_back(unique, update.operands[0]);
    return;
  }
  std::vector<Tensor> operands;
  for (const Parameter& state : update.states) operands.push_back(StateAt(state, depth()).current);
  operands.insert(operands.end(), update.operands.begin(), update.operands.end());
  cells_.push_back({nullptr, update.scope, {}, 0});
  const std::vector<Tensor> results = Emit(update.op, operands, update.attributes);
  cells_.pop_back();
  if (failed()) return;
  for (std::size_t i = 0; i < update.states.size(); ++i) Assign(update.states[i], results[i]);
}

// Emits the pending updates of the outermost function, or those that write `reader`.
void Trace::FlushDeferred(const Parameter* reader) {
  std::vector<Deferred> pending = std::exchange(frames_.back().deferred, {});
  for (Deferred& update : pending) {
    bool wanted = reader == nullptr;
    for (const Parameter& state : update.states) wanted |= reader != nullptr && state == *reader;
    if (wanted) {
      EmitUpdate(update);
    } else {
      frames_.back().deferred.push_back(std::move(update));
    }
  }
}

bool Trace::ClaimUpdate(const Parameter& parameter) {
  if (std::find(updated_.begin(), updated_.end(), parameter) != updated_.end()) return false;
  updated_.push_back(parameter);
  return true;
}

void Trace::CheckUpdates() {
  if (updated_.empty()) return;
  const auto holds = [](const std::vector<Parameter>& list, const Parameter& parameter) {
    return std::find(list.begin(), list.end(), parameter) != list.end();
  };
  for (const Parameter& parameter : differentiated_) {
    if (holds(updated_, parameter) || !holds(read_by_losses_, parameter)) continue;
    Fail(
        absl::StrCat("the step computes the gradient of '", parameter.name(),
                     "', and no optimizer updates it; give it to one, or freeze it with SetRequiresGrad(path, false)"));
    return;
  }
}

bool Trace::IsUnused(const Parameter& parameter) const {
  const auto holds = [&](const std::vector<Parameter>& list) {
    return std::find(list.begin(), list.end(), parameter) != list.end();
  };
  return holds(differentiated_) && !holds(read_by_losses_);
}

std::string Trace::OptimizerPrefix(const Parameter& step) {
  return NumberedPrefix("optimizer", step, optimizer_steps_);
}

std::string Trace::ScalerPrefix(const Parameter& scale) { return NumberedPrefix("scaler", scale, scaler_scales_); }

void Trace::Record(std::string_view name, const Tensor& value) {
  if (failed()) return;
  if (depth() != 1) {
    Fail(
        absl::StrCat("the record '", std::string(name), "' belongs into the step, not into a differentiated function"));
    return;
  }
  const Tensor imported = Import(value, depth());
  for (auto& [known, current] : records_) {
    if (known == name) {
      current = imported;
      return;
    }
  }
  records_.emplace_back(name, imported);
}

bool Trace::wants(std::string_view record) const {
  return std::find(requested_records_.begin(), requested_records_.end(), record) != requested_records_.end();
}

Trace::RandomUse Trace::UseRandom() {
  uses_random_ = true;
  return {StateAt(rng_.seed, depth()).current, StateAt(rng_.step, depth()).current, next_call_site_++};
}

// ---- Values ---------------------------------------------------------------------------------------------------------

Tensor Trace::Symbolic(const compiler::TypedValue& value, std::size_t depth) const {
  auto node = std::make_shared<TensorNode>();
  node->spec = value.spec;
  node->graph = id_;
  node->value = value.value;
  node->depth = depth;
  return Tensor(std::move(node));
}

Tensor Trace::Poison(const Shape& shape, DType dtype) {
  auto node = std::make_shared<TensorNode>();
  node->spec = {dtype, Shape(shape.size(), 1)};
  node->graph = id_;
  return Tensor(std::move(node));
}

Tensor Trace::Import(const Tensor& tensor, std::size_t depth) {
  const TensorNode& node = *tensor.node();
  if (tensor.concrete()) {
    if (InfoOf(tensor.dtype()).cast_only && !failed()) {
      Fail(absl::StrCat("a tensor is ", tensor.spec().ToString(),
                        ", which no operation takes; convert it first, as with x.To(DType::kF32)"));
    }
    if (failed()) return Poison(tensor.shape(), tensor.dtype());
    return Symbolic(graph_.Constant(tensor.spec(), tensor.bytes(), scope()), depth);
  }
  if (node.graph != id_ || node.value == nullptr || node.depth > depth) {
    if (!failed()) Fail("a tensor of another trace, or of an inner function that has ended, was used");
    return Poison(tensor.shape(), tensor.dtype());
  }
  if (node.depth == depth) return tensor;
  const Tensor outer = Import(tensor, depth - 1);
  Frame& frame = frames_[depth - 1];
  const auto found = frame.captured.find(outer.node()->value);
  if (found != frame.captured.end()) return found->second;
  std::string name = graph_.ArgumentName(outer.node()->value);
  if (name.empty()) name = absl::StrCat("capture", frame.operands.size());
  const Tensor inner = Symbolic(
      {graph_.AddArgument(tensor.spec(), {.name = name, .role = Role::kCapture}, depth), tensor.spec()}, depth);
  frame.operands.push_back(outer);
  frame.captured.emplace(outer.node()->value, inner);
  SameElements(outer.node()->value, inner.node()->value);
  return inner;
}

void Trace::SameElements(compiler::ValueHandle from, compiler::ValueHandle to) {
  if (const auto input = inputs_.find(from); input != inputs_.end()) inputs_[to] = input->second;
}

void Trace::ExpectLabels(const Tensor& labels, std::int64_t classes) {
  if (failed() || !labels.symbolic() || (labels.dtype() != DType::kI32 && labels.dtype() != DType::kI64)) return;
  if (const auto input = inputs_.find(labels.node()->value); input != inputs_.end()) {
    labels_.push_back({input->second, classes});
  }
}

void Trace::Fail(const std::string& message) { FailAt(path(), message); }

void Trace::FailAt(const std::string& where, const std::string& message) {
  if (failed()) return;
  status_ = absl::InvalidArgumentError(where.empty() ? message : absl::StrCat(where, ": ", message));
}

}  // namespace mpc::internal
