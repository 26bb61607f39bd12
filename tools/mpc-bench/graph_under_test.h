// A small graph of operations, built to be measured.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::tools {

/// How an argument's elements are made.
enum class Fill {
  kNormal,    ///< standard normal
  kPositive,  ///< their magnitude
  kOnes,
  kClasses,  ///< whole numbers below GraphArgument::classes
};

struct GraphArgument {
  TensorSpec spec;
  Fill fill = Fill::kNormal;
  std::int64_t classes = 0;
};

/// Arguments are state, so that no step copies them in. The first error is kept; what follows it does nothing.
class GraphUnderTest {
 public:
  /// Name of the function; argument i is state "argument<i>".
  static constexpr char kFunction[] = "operations";
  static std::string ArgumentName(std::size_t index);

  explicit GraphUnderTest(DType dtype);

  /// An argument of the measured type, of f32, or of i32 below `classes`.
  compiler::TypedValue Argument(const Shape& shape, Fill fill = Fill::kNormal);
  compiler::TypedValue F32Argument(const Shape& shape, Fill fill = Fill::kNormal);
  compiler::TypedValue Labels(const Shape& shape, std::int64_t classes);
  /// A constant scalar; no argument.
  compiler::TypedValue Scalar(double value, DType dtype = DType::kF32);

  /// All results of operation `name`.
  std::vector<compiler::TypedValue> Emit(const std::string& name, const std::vector<compiler::TypedValue>& operands,
                                         const Attributes& attributes = {}) {
    return Emit(name, operands, attributes, std::nullopt);
  }
  /// Its first result.
  compiler::TypedValue Op(const std::string& name, const std::vector<compiler::TypedValue>& operands,
                          const Attributes& attributes = {}) {
    return Emit(name, operands, attributes)[0];
  }

  /// Converts `value` to f32, or to bf16 if it is f32.
  compiler::TypedValue Cast(const compiler::TypedValue& value);

  /// Makes `value` an output of the function.
  void Result(const compiler::TypedValue& value);
  /// Makes `value` the new content of `argument`, as of an optimizer's state.
  void Update(const compiler::TypedValue& argument, const compiler::TypedValue& value);

  struct Finished {
    compiler::Module module;
    std::vector<GraphArgument> arguments;
  };
  /// Ends the function. Errors: that of the first operation that rejected its operands or attributes.
  absl::StatusOr<Finished> Finish();

 private:
  compiler::TypedValue Add(GraphArgument argument);
  std::vector<compiler::TypedValue> Emit(const std::string& name, const std::vector<compiler::TypedValue>& operands,
                                         const Attributes& attributes, std::optional<DType> result_dtype);

  DType dtype_;
  compiler::GraphBuilder builder_;
  absl::Status status_;
  std::vector<GraphArgument> arguments_;
  std::vector<compiler::NamedResult> results_;
};

}  // namespace mpc::tools
