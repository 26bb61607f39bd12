#include "tools/mpc-bench/graph_under_test.h"

#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

// A role that no pass treats as its own: not a parameter, which may get a low copy.
constexpr Role kRole = Role::kSlot;
// The most results that an operation has.
constexpr std::size_t kMostResults = 8;

}  // namespace

std::string GraphUnderTest::ArgumentName(std::size_t index) { return absl::StrCat("argument", index); }

GraphUnderTest::GraphUnderTest(DType dtype) : dtype_(dtype) { builder_.BeginFunction(kFunction, /*is_private=*/false); }

compiler::TypedValue GraphUnderTest::Add(GraphArgument argument) {
  const std::string name = ArgumentName(arguments_.size());
  const compiler::ValueHandle value =
      builder_.AddArgument(argument.spec, {.name = name, .role = kRole}, builder_.depth());
  const compiler::TypedValue typed = {value, argument.spec};
  arguments_.push_back(std::move(argument));
  return typed;
}

compiler::TypedValue GraphUnderTest::Argument(const Shape& shape, Fill fill) { return Add({{dtype_, shape}, fill}); }

compiler::TypedValue GraphUnderTest::F32Argument(const Shape& shape, Fill fill) {
  return Add({{DType::kF32, shape}, fill});
}

compiler::TypedValue GraphUnderTest::Labels(const Shape& shape, std::int64_t classes) {
  return Add({{DType::kI32, shape}, Fill::kClasses, classes});
}

compiler::TypedValue GraphUnderTest::Scalar(double value, DType dtype) {
  return builder_.Splat({dtype, {}}, value, compiler::Scope());
}

std::vector<compiler::TypedValue> GraphUnderTest::Emit(const std::string& name,
                                                       const std::vector<compiler::TypedValue>& operands,
                                                       const Attributes& attributes,
                                                       std::optional<DType> result_dtype) {
  if (status_.ok()) {
    std::vector<compiler::ValueHandle> values;
    for (const compiler::TypedValue& operand : operands) values.push_back(operand.value);
    absl::StatusOr<std::vector<compiler::TypedValue>> results =
        builder_.Emit(name, values, attributes, compiler::Scope(), result_dtype);
    if (results.ok()) return *std::move(results);
    status_ = results.status();
  }
  return std::vector<compiler::TypedValue>(kMostResults);
}

compiler::TypedValue GraphUnderTest::Cast(const compiler::TypedValue& value) {
  return Emit("cast", {value}, {}, value.spec.dtype == DType::kF32 ? DType::kBF16 : DType::kF32)[0];
}

void GraphUnderTest::Result(const compiler::TypedValue& value) {
  results_.push_back({value.value, absl::StrCat("result", results_.size()), Role::kOutput});
}

void GraphUnderTest::Update(const compiler::TypedValue& argument, const compiler::TypedValue& value) {
  results_.push_back({value.value, builder_.ArgumentName(argument.value), kRole});
}

absl::StatusOr<GraphUnderTest::Finished> GraphUnderTest::Finish() {
  if (!status_.ok()) return status_;
  builder_.EndFunction(results_);
  absl::StatusOr<compiler::Module> module = builder_.Finish();
  if (!module.ok()) return module.status();
  return Finished{.module = *std::move(module), .arguments = std::move(arguments_)};
}

}  // namespace mpc::tools
