#include "frontend/trace.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/cell.h"
#include "frontend/context.h"
#include "frontend/tensor_node.h"

namespace mpc::internal {
namespace {

thread_local Trace* current_trace = nullptr;

const void* NewTraceId() {
  static std::atomic<std::uintptr_t> last{0};
  return reinterpret_cast<const void*>(++last);
}

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

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// Finds the path of a Cell below another one: "conv1", or "blocks/0" for the elements of a list.
class NameFinder : public nn::internal::MemberVisitor {
 public:
  explicit NameFinder(const nn::Cell* wanted) : wanted_(wanted) {}
  void Visit(const std::string& name, nn::Cell& cell) override {
    if (name_.has_value()) return;
    const std::string path = absl::StrCat(prefix_, name);
    if (&cell == wanted_) {
      name_ = path;
      return;
    }
    const std::string outer = std::exchange(prefix_, absl::StrCat(path, "/"));
    cell.VisitMembers(*this);
    prefix_ = outer;
  }
  void Visit(const std::string&, Parameter&) override {}
  const std::optional<std::string>& name() const { return name_; }

 private:
  const nn::Cell* wanted_;
  std::string prefix_;
  std::optional<std::string> name_;
};

}  // namespace

RngState MakeRngState(std::uint64_t seed) {
  RngState state;
  const std::int64_t seed_bits = static_cast<std::int64_t>(seed);
  state.seed = Parameter(Tensor::Scalar<std::int64_t>(seed_bits), {.requires_grad = false, .role = "rng"});
  state.seed.set_name("rng.seed");
  state.step = Parameter(Tensor::Scalar<std::int32_t>(0), {.requires_grad = false, .role = "rng"});
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
}

Tensor Trace::AddInput(const TensorSpec& spec, std::string_view name) {
  return Symbolic({graph_.AddArgument(spec, name, "input", depth()), spec}, depth());
}

void Trace::EndStep(absl::Span<const Tensor> outputs, absl::Span<const std::string> names) {
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
    results.push_back({Import(outputs[i], depth()).node()->value, names[i], "output"});
  }
  for (const StateValue& state : frames_.back().states) {
    if (!state.assigned) continue;
    results.push_back({state.current.node()->value, state.parameter.name(), state.parameter.entry()->role()});
  }
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
    results.push_back({value.node()->value, parameter.name(), "output"});
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
               : graph_.Emit(op, values, attributes, scope(), result_dtype);
  if (!results.ok()) {
    Fail(std::string(results.status().message()));
    const Shape shape = operands.empty() || !operands[0].defined() ? Shape() : operands[0].shape();
    return std::vector<Tensor>(4, Poison(Shape(shape.size(), 1)));
  }
  std::vector<Tensor> tensors;
  for (const compiler::TypedValue& result : *results) tensors.push_back(Symbolic(result, depth()));
  return tensors;
}

Tensor Trace::Splat(const TensorSpec& spec, double value) {
  if (failed()) return Poison(spec.shape, spec.dtype);
  return Symbolic(graph_.Splat(spec, value, scope()), depth());
}

Trace::Gradients Trace::ValueAndGrad(const nn::Cell* cell, const TensorFunction& function,
                                     const std::vector<Tensor>& inputs, absl::Span<const Parameter> parameters,
                                     const Tensor& seed) {
  Gradients result;
  const Tensor seed_value = seed.defined() ? seed : Splat({DType::kF32, {}}, 1.0);
  const std::string callee = graph_.BeginFunction("forward", /*is_private=*/true);
  frames_.emplace_back();
  std::vector<Tensor> arguments;
  for (const Tensor& input : inputs) {
    if (!input.defined()) Fail("a gradient was asked for on an undefined input");
    arguments.push_back(failed() ? Poison({}) : Import(input, depth()));
  }
  for (const Parameter& parameter : parameters) StateAt(parameter, depth());
  // A repeated forward pass draws what the first one drew.
  const std::int64_t fresh_call_site = next_call_site_;
  if (const CellCall* earlier = FindEarlierCall(cell, inputs)) next_call_site_ = earlier->first_call_site;
  std::vector<Tensor> outputs = function(arguments);
  next_call_site_ = std::max(next_call_site_, fresh_call_site);
  if (outputs.empty()) Fail("a function without outputs has no gradient");

  Frame& frame = frames_.back();
  std::vector<compiler::NamedResult> results;
  auto add_result = [&](const Tensor& tensor) {
    if (!failed()) results.push_back({Import(tensor, depth()).node()->value, "", ""});
  };
  for (const Tensor& output : outputs) add_result(output);
  // What the function leaves behind besides its outputs: operands of state updates, then assigned state.
  for (const Deferred& update : frame.deferred) {
    for (const Tensor& operand : update.operands) add_result(operand);
  }
  std::vector<Parameter> assigned;
  for (const StateValue& state : frame.states) {
    if (!state.assigned) continue;
    assigned.push_back(state.parameter);
    add_result(state.current);
  }
  std::vector<std::int64_t> wrt;
  for (const Parameter& parameter : parameters) {
    const Tensor captured = StateAt(parameter, depth() - 1).current;
    for (std::size_t i = 0; i < frame.operands.size(); ++i) {
      if (SameValue(frame.operands[i], captured)) {
        wrt.push_back(static_cast<std::int64_t>(i));
        break;
      }
    }
  }
  if (!failed()) graph_.EndFunction(results);
  for (const StateValue& state : frame.states) {
    if (state.read) read_by_losses_.push_back(state.parameter);
  }
  differentiated_.insert(differentiated_.end(), parameters.begin(), parameters.end());
  const Frame closed = std::move(frames_.back());
  frames_.pop_back();

  absl::StatusOr<std::vector<compiler::TypedValue>> values = absl::UnknownError("not called");
  if (!failed()) {
    std::vector<compiler::ValueHandle> operands;
    for (const Tensor& operand : closed.operands) operands.push_back(operand.node()->value);
    values = graph_.ValueAndGrad(callee, operands, Import(seed_value, depth()).node()->value, wrt, scope());
    if (!values.ok()) Fail(std::string(values.status().message()));
  }
  if (failed()) {
    result.outputs.assign(std::max<std::size_t>(1, outputs.size()), Poison({}));
    for (const Parameter& parameter : parameters) result.gradients.push_back(Poison(parameter.shape()));
    return result;
  }
  std::size_t next = 0;
  auto take = [&] { return Symbolic((*values)[next++], depth()); };
  for (std::size_t i = 0; i < outputs.size(); ++i) result.outputs.push_back(take());
  if (cell != nullptr) ReplaceEarlierCall(cell, inputs, result.outputs);
  for (Deferred update : closed.deferred) {
    for (Tensor& operand : update.operands) operand = take();
    update.call = 0;
    frames_.back().deferred.push_back(std::move(update));
  }
  for (const Parameter& parameter : assigned) Assign(parameter, take());
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

// ---- State ----------------------------------------------------------------------------------------------------------

Trace::StateValue& Trace::StateAt(const Parameter& parameter, std::size_t depth) {
  for (StateValue& state : frames_[depth - 1].states) {
    if (state.parameter == parameter) return state;
  }
  Tensor value;
  if (depth == 1) {
    used_.push_back(parameter);
    const TensorSpec& spec = parameter.entry()->spec();
    value = Symbolic({graph_.AddArgument(spec, parameter.name(), parameter.entry()->role(), depth), spec}, depth);
  } else {
    const Tensor outer = StateAt(parameter, depth - 1).current;
    value = failed() ? Poison(parameter.shape()) : Import(outer, depth);
  }
  frames_[depth - 1].states.push_back({parameter, value, false, false});
  return frames_[depth - 1].states.back();
}

Tensor Trace::Read(const Parameter& parameter) {
  if (!parameter.defined()) {
    Fail("an undefined Parameter was read");
    return Poison({});
  }
  const std::string& role = parameter.entry()->role();
  if (registered_.has_value() && (role == "parameter" || role == "statistic") &&
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
  if (!failed() && value.spec() != parameter.entry()->spec()) {
    Fail(absl::StrCat("parameter '", parameter.name(), "' is ", parameter.entry()->spec().ToString(),
                      ", it cannot become ", value.spec().ToString()));
  }
  StateValue& state = StateAt(parameter, depth());
  state.current = failed() ? value : Import(value, depth());
  state.assigned = true;
}

void Trace::DeferUpdate(std::string_view op, std::vector<Parameter> states, std::vector<Tensor> operands,
                        Attributes attributes) {
  const std::size_t call = cells_.empty() ? 0 : cells_.back().call;
  frames_.back().deferred.push_back(
      {std::string(op), std::move(states), std::move(operands), std::move(attributes), scope(), call});
}

void Trace::EmitUpdate(const Deferred& update) {
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

bool Trace::IsUnused(const Parameter& parameter) const {
  const auto holds = [&](const std::vector<Parameter>& list) {
    return std::find(list.begin(), list.end(), parameter) != list.end();
  };
  return holds(differentiated_) && !holds(read_by_losses_);
}

std::string Trace::OptimizerPrefix(const Parameter& step) {
  const auto known = std::find(optimizer_steps_.begin(), optimizer_steps_.end(), step);
  const auto index = known - optimizer_steps_.begin();
  if (known == optimizer_steps_.end()) optimizer_steps_.push_back(step);
  return index == 0 ? "optimizer" : absl::StrCat("optimizer", index + 1);
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
  const Tensor inner = Symbolic({graph_.AddArgument(tensor.spec(), name, "capture", depth), tensor.spec()}, depth);
  frame.operands.push_back(outer);
  frame.captured.emplace(outer.node()->value, inner);
  return inner;
}

// ---- Cells ----------------------------------------------------------------------------------------------------------

void Trace::EnterCell(nn::Cell& cell, const std::vector<Tensor>& inputs) {
  CellFrame frame{&cell, scope(), inputs, 0};
  nn::Cell* parent = cells_.empty() ? nullptr : cells_.back().cell;
  std::string name = Lower(cell.TypeName());
  if (cell.transparent()) name.clear();
  const bool is_network = std::find(networks_.begin(), networks_.end(), &cell) != networks_.end();
  if (parent != nullptr) {
    NameFinder finder(&cell);
    parent->VisitMembers(finder);
    if (finder.name().has_value() && !is_network && !cell.transparent()) name = *finder.name();
    if (!finder.name().has_value() && !cell.ParametersAndNames().empty()) {
      Fail(absl::StrCat("a ", cell.TypeName(), " cell is called but not registered; name its member in MPC_CELL(",
                        parent->TypeName(), ", ...)"));
    }
  }
  if (is_network || frame.scope.path.empty()) {
    frame.scope.path = name;
  } else if (!name.empty()) {
    absl::StrAppend(&frame.scope.path, "/", name);
  }
  if (is_network) frame.scope.network = true;
  if (cell.is_loss()) frame.scope.network = false;
  if (cell.to_float().has_value()) frame.scope.pin = cell.to_float();
  if (depth() == 1) {
    calls_.push_back({&cell, inputs, {}, next_call_site_, 0, false});
    frame.call = calls_.size();
  }
  cells_.push_back(std::move(frame));
}

void Trace::LeaveCell(const std::vector<Tensor>& outputs) {
  const CellFrame& frame = cells_.back();
  if (frame.call != 0) {
    calls_[frame.call - 1].outputs = outputs;
    calls_[frame.call - 1].last = calls_.size();
  }
  cells_.pop_back();
}

compiler::Scope Trace::scope() const { return cells_.empty() ? compiler::Scope() : cells_.back().scope; }

std::string Trace::path() const { return scope().path; }

void Trace::Fail(const std::string& message) {
  if (failed()) return;
  const std::string where = path();
  status_ = absl::InvalidArgumentError(where.empty() ? message : absl::StrCat(where, ": ", message));
}

}  // namespace mpc::internal
