#include "frontend/graph/traced_graph.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::internal {
namespace {

const void* NewTraceId() {
  static std::atomic<std::uintptr_t> last{0};
  return reinterpret_cast<const void*>(++last);
}

/// The error of operation `op`, which does not take the type of one of `operands`.
std::string RefusalOf(std::string_view op, const compiler::RefusedOperand& refused, absl::Span<const Tensor> operands) {
  return absl::StrCat(std::string(op), " does not take ", operands[refused.index].spec().ToString(), " as operand ",
                      refused.index,
                      "; cast it first, as with ops::Cast(x, DType::", refused.takesFloats ? "kF32" : "kI32", ")");
}

}  // namespace

TracedGraph::TracedGraph(const CellStack& cells) : id_(NewTraceId()), cells_(cells) {}

// ---- Functions ------------------------------------------------------------------------------------------------------

std::string TracedGraph::BeginFunction(std::string_view name, bool is_private) {
  functions_.emplace_back();
  return builder_.BeginFunction(name, is_private);
}

std::vector<Tensor> TracedGraph::EndFunction(absl::Span<const compiler::NamedResult> results) {
  if (!failed()) builder_.EndFunction(results);
  std::vector<Tensor> captures = std::move(functions_.back().captures);
  functions_.pop_back();
  return captures;
}

Tensor TracedGraph::AddArgument(const TensorSpec& spec, const compiler::NamedArgument& argument, std::size_t depth) {
  ++functions_[depth - 1].num_arguments;
  return Symbolic({builder_.AddArgument(spec, argument, depth), spec}, depth);
}

Tensor TracedGraph::AddInput(const TensorSpec& spec, std::string_view name) {
  const Tensor input = AddArgument(spec, {.name = name, .role = Role::kInput}, depth());
  inputs_.AddInput(input.node()->value);
  return input;
}

absl::StatusOr<compiler::Module> TracedGraph::Finish() {
  if (failed()) return status_;
  return builder_.Finish();
}

// ---- Operations -----------------------------------------------------------------------------------------------------

std::vector<Tensor> TracedGraph::Emit(std::string_view op, absl::Span<const Tensor> operands,
                                      const Attributes& attributes, std::optional<DType> result_dtype) {
  std::vector<compiler::ValueHandle> values;
  for (const Tensor& operand : operands) {
    if (!operand.defined()) {
      Fail(absl::StrCat(std::string(op), " was given an undefined tensor"));
    } else if (!operand.status().ok()) {
      Fail(std::string(operand.status().message()));
    }
    if (failed()) break;
    values.push_back(ImportValue(operand));
  }
  absl::StatusOr<std::vector<compiler::TypedValue>> results =
      failed() ? absl::StatusOr<std::vector<compiler::TypedValue>>(status_)
               : builder_.Emit(op, values, attributes, cells_.ScopeOf(op), result_dtype);
  if (!results.ok()) {
    const std::optional<compiler::RefusedOperand> refused = failed() ? std::nullopt : builder_.LastRefusedOperand();
    Fail(refused ? RefusalOf(op, *refused, operands) : std::string(results.status().message()));
    const Shape shape = operands.empty() || !operands[0].defined() ? Shape() : operands[0].shape();
    return std::vector<Tensor>(4, Poison(Shape(shape.size(), 1)));
  }
  std::vector<Tensor> tensors;
  for (const compiler::TypedValue& result : *results) tensors.push_back(Symbolic(result));
  if (op == "reshape") inputs_.AddAlias(values[0], tensors[0].node()->value);
  return tensors;
}

Tensor TracedGraph::Splat(const TensorSpec& spec, double value) {
  if (failed()) return Poison(spec.shape, spec.dtype);
  return Symbolic(builder_.Splat(spec, value, cells_.scope()));
}

// ---- Values ---------------------------------------------------------------------------------------------------------

Tensor TracedGraph::Symbolic(const compiler::TypedValue& value, std::size_t depth) const {
  auto node = std::make_shared<TensorNode>();
  node->spec = value.spec;
  node->graph = id_;
  node->value = value.value;
  node->depth = depth;
  return Tensor(std::move(node));
}

Tensor TracedGraph::Poison(const Shape& shape, DType dtype) const {
  auto node = std::make_shared<TensorNode>();
  node->spec = {dtype, Shape(shape.size(), 1)};
  node->graph = id_;
  return Tensor(std::move(node));
}

Tensor TracedGraph::Import(const Tensor& tensor, std::size_t depth) {
  const TensorNode& node = *tensor.node();
  if (tensor.concrete()) {
    if (InfoOf(tensor.dtype()).cast_only && !failed()) {
      Fail(absl::StrCat("a tensor is ", tensor.spec().ToString(),
                        ", which no operation takes; convert it first, as with x.To(DType::kF32)"));
    }
    if (failed()) return Poison(tensor.shape(), tensor.dtype());
    return Symbolic(builder_.Constant(tensor.spec(), tensor.bytes(), cells_.scope()), depth);
  }
  if (node.graph != id_ || node.value == nullptr || node.depth > depth) {
    if (!failed()) Fail("a tensor of another trace, or of an inner function that has ended, was used");
    return Poison(tensor.shape(), tensor.dtype());
  }
  if (node.depth == depth) return tensor;
  const Tensor outer = Import(tensor, depth - 1);
  const compiler::ValueHandle captured = outer.node()->value;
  OpenFunction& function = functions_[depth - 1];
  if (const auto known = function.argument_of.find(captured); known != function.argument_of.end()) return known->second;
  std::string name = builder_.ArgumentName(captured);
  if (name.empty()) name = absl::StrCat("capture", function.num_arguments);
  const Tensor inner = AddArgument(tensor.spec(), {.name = name, .role = Role::kCapture}, depth);
  function.captures.push_back(outer);
  function.argument_of.emplace(captured, inner);
  inputs_.AddAlias(captured, inner.node()->value);
  return inner;
}

compiler::ValueHandle TracedGraph::ImportValue(const Tensor& tensor) { return Import(tensor).node()->value; }

bool TracedGraph::ReplaceValues(const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
  std::vector<compiler::ValueHandle> old_values, new_values;
  for (const Tensor& tensor : from) old_values.push_back(tensor.node()->value);
  for (const Tensor& tensor : to) new_values.push_back(tensor.node()->value);
  if (!builder_.ReplaceUses(old_values, new_values)) return false;
  // Handles that the program still holds stand for the new value from now on.
  for (std::size_t i = 0; i < to.size(); ++i) const_cast<TensorNode*>(from[i].node().get())->value = new_values[i];
  return true;
}

std::optional<std::size_t> TracedGraph::FindInput(const Tensor& tensor) const {
  return inputs_.Find(tensor.node()->value);
}

// ---- Errors ---------------------------------------------------------------------------------------------------------

void TracedGraph::Fail(const std::string& message) { KeepError(ErrorAt(cells_.path(), message)); }

void TracedGraph::KeepError(const absl::Status& status) {
  if (!failed()) status_ = status;
}

}  // namespace mpc::internal
