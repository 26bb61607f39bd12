// The graph that a trace builds, and the Tensors that stand for its values. Not part of the public API.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/module/graph_builder.h"
#include "frontend/graph/cell_stack.h"
#include "frontend/graph/input_elements.h"
#include "frontend/graph/tensor.h"

namespace mpc::internal {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// A stack of open functions, of which the innermost receives operations in the scope of the innermost Cell. What it
/// reads of the outer ones becomes its arguments. The first error is kept with the Cell path; after it operations
/// return poisoned tensors.
class TracedGraph {
 public:
  explicit TracedGraph(const CellStack& cells);

  // Functions.
  /// Opens a function and returns its name, as compiler::GraphBuilder does.
  std::string BeginFunction(std::string_view name, bool is_private);
  /// Returns `results`, unless the trace has failed, and closes the innermost function. The outer value of each
  /// captured argument is returned, in order.
  std::vector<Tensor> EndFunction(absl::Span<const compiler::NamedResult> results);
  /// The outer values that the innermost function has captured so far.
  const std::vector<Tensor>& captures() const { return functions_.back().captures; }
  /// Appends an argument to the open function at `depth` (1: the outermost).
  Tensor AddArgument(const TensorSpec& spec, const compiler::NamedArgument& argument, std::size_t depth);
  /// Appends an input of the step.
  Tensor AddInput(const TensorSpec& spec, std::string_view name);
  /// Number of open functions.
  std::size_t depth() const { return functions_.size(); }
  /// True in the step itself, false in a function that is differentiated.
  bool in_step() const { return depth() == 1; }
  /// The module, or the first error.
  absl::StatusOr<compiler::Module> Finish();

  // Operations.
  std::vector<Tensor> Emit(std::string_view op, absl::Span<const Tensor> operands, const Attributes& attributes,
                           std::optional<DType> result_dtype = std::nullopt);
  Tensor Splat(const TensorSpec& spec, double value);
  /// For what works on values: gradients.
  compiler::GraphBuilder& builder() { return builder_; }

  // Values.
  /// A Tensor that stands for a value of the innermost function.
  Tensor Symbolic(const compiler::TypedValue& value) const { return Symbolic(value, depth()); }
  /// `tensor` as a value of the function at `depth`: constants are made, outer values become arguments.
  Tensor Import(const Tensor& tensor, std::size_t depth);
  Tensor Import(const Tensor& tensor) { return Import(tensor, depth()); }
  /// The imported tensor's value in the innermost function; null if it is poisoned.
  compiler::ValueHandle ImportValue(const Tensor& tensor);
  Tensor Poison(const Shape& shape, DType dtype = DType::kF32) const;
  /// Each of `from` becomes the one of `to` at its index, in the graph and for those who hold it. False, and nothing
  /// changes, where one of `to` follows from its partner.
  bool ReplaceValues(const std::vector<Tensor>& from, const std::vector<Tensor>& to);
  /// The input of the step whose elements `tensor` holds in their order, as it came in or reshaped.
  std::optional<std::size_t> FindInput(const Tensor& tensor) const;

  // Errors.
  /// Keeps the first error, with the Cell path in front.
  void Fail(const std::string& message);
  /// The same for an error that has its path. Does nothing if `status` is OK.
  void KeepError(const absl::Status& status);
  bool failed() const { return !status_.ok(); }

 private:
  struct OpenFunction {
    std::vector<Tensor> captures;                         ///< outer values, in the order of their arguments
    std::map<compiler::ValueHandle, Tensor> argument_of;  ///< arguments, by the values that they capture
    std::size_t num_arguments = 0;
  };

  Tensor Symbolic(const compiler::TypedValue& value, std::size_t depth) const;

  const void* id_;  ///< identifies the values of this trace; never used again, unlike an address
  const CellStack& cells_;
  compiler::GraphBuilder builder_;
  std::vector<OpenFunction> functions_;
  InputElements inputs_;
  absl::Status status_;
};

}  // namespace mpc::internal
