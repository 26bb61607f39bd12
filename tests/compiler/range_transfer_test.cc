// Every transfer function against what the reference computes of the table of operation cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/ranges/transfer.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/ranges/range_analysis.h"
#include "compiler/ranges/stored_format.h"
#include "tests/compiler/observed_range.h"
#include "tests/compiler/op_case_module.h"
#include "tests/op_cases/op_case.h"

namespace mpc::test {
namespace {

using ranges::Range;
using reference::Tensor;

bool AllFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

/// What is claimed of the values of a result, which are those of `actual`.
void ExpectHolds(const Range& claimed, const Tensor& actual) {
  if (actual.values.empty()) return;
  const Range seen = ObservedRange(actual);
  EXPECT_LE(claimed.low, seen.low);
  EXPECT_GE(claimed.high, seen.high);
  EXPECT_GE(claimed.rowNorm, seen.rowNorm);
  EXPECT_GE(claimed.columnNorm, seen.columnNorm);
  EXPECT_GE(claimed.sampleNorm, seen.sampleNorm);
  EXPECT_GE(claimed.norm, seen.norm);
  EXPECT_LE(claimed.peak, seen.peak);
  if (std::isfinite(seen.least)) {
    EXPECT_LE(claimed.least, seen.least);
  }
}

/// A tensor that cannot overflow is finite, and one that will is not. The same of vanishing.
void ExpectVerdicts(const ranges::RangeAnalysis& analysis, mlir::Value value, const Tensor& actual) {
  for (const ranges::LowTensor& tensor : analysis.lowTensors()) {
    if (tensor.value != value) continue;
    if (tensor.overflow == ranges::Verdict::Cannot) {
      EXPECT_TRUE(AllFinite(actual.values));
    }
    if (tensor.overflow == ranges::Verdict::Will) {
      EXPECT_FALSE(AllFinite(actual.values));
    }
    const bool vanished = std::all_of(actual.values.begin(), actual.values.end(), [](double v) { return v == 0; });
    if (tensor.underflow == ranges::Verdict::Will) {
      EXPECT_TRUE(vanished);
    }
  }
}

/// Compares what is claimed of the results with `results`, which the reference computes of `inputs`.
void Check(mlir::func::FuncOp function, const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
           bool with_norms) {
  ranges::Assumptions assumptions;
  for (const mlir::BlockArgument argument : function.getArguments()) {
    const Tensor& input = inputs[argument.getArgNumber()];
    assumptions.arguments[argument] = with_norms ? ObservedRange(input) : ObservedInterval(input);
  }
  const ranges::RangeAnalysis analysis(function, assumptions);
  mlir::Operation* terminator = function.getBody().front().getTerminator();
  for (std::size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "result " << i << (with_norms ? "" : " of intervals"));
    const mlir::Value value = terminator->getOperand(static_cast<unsigned>(i));
    const Tensor& actual = results[i];
    ExpectVerdicts(analysis, value, actual);
    if (AllFinite(actual.values)) {
      ExpectHolds(analysis.rangeOf(value), actual);
      continue;
    }
    const auto format = ranges::StoredFormat::of(mlir::getElementTypeOrSelf(value.getType()));
    if (format.has_value()) {
      EXPECT_GE(analysis.rangeOf(value).magnitude(), format->largest) << "it is not finite";
    }
  }
}

void CheckCase(mlir::MLIRContext& context, const op_cases::OpCase& op_case, DType dtype) {
  SCOPED_TRACE(testing::Message() << op_case.name << " in " << DTypeName(dtype));
  const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
  // Operations are taken to read finite values.
  if (!std::all_of(inputs.begin(), inputs.end(), [](const Tensor& input) { return AllFinite(input.values); })) return;
  auto module = ForwardModule(context, op_case, dtype);
  auto function = module->lookupSymbol<mlir::func::FuncOp>("forward");
  const absl::StatusOr<std::vector<Tensor>> results =
      interpret(function, inputs, reference::Rounding::kStorage, LargeIntegers::Rounded);
  ASSERT_TRUE(results.ok()) << results.status();
  for (const bool with_norms : {true, false}) Check(function, inputs, *results, with_norms);
}

/// Elements beyond which a case is tried in f32 alone: the reference takes its time.
constexpr std::int64_t kFewElements = 4096;

bool IsSmall(const op_cases::OpCase& op_case) {
  return std::all_of(op_case.operands.begin(), op_case.operands.end(),
                     [](const auto& operand) { return operand.spec.num_elements() <= kFewElements; });
}

TEST(RangeTransfers, BoundWhatTheReferenceComputes) {
  const auto context = MakeContext();
  for (const op_cases::OpCase& op_case : op_cases::AllOpCases()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      if (dtype != DType::kF32 && !(op_case.low && IsSmall(op_case))) continue;
      CheckCase(*context, op_case, dtype);
    }
  }
}

// A new operation has to be decided: it gets a transfer function, or stays unbounded for a reason.
TEST(RangeTransfers, AreDecidedForEveryOperation) {
  const auto context = MakeContext();
  for (const mlir::RegisteredOperationName name : context->getRegisteredOperations()) {
    if (name.getDialectNamespace() != MpcDialect::getDialectNamespace()) continue;
    const llvm::StringRef operation = name.stripDialect();
    EXPECT_NE(ranges::transferOf(operation) != nullptr, ranges::isLeftUnbounded(operation))
        << operation.str() << " needs a function of compiler/dialect/ranges, or a place in isLeftUnbounded, not both";
  }
}

class Ranges : public testing::Test {
 protected:
  /// The analysis of `@main`; the module lives as long as the test.
  ranges::RangeAnalysis Analyze(const char* text) {
    module_ = ParseModule(*context_, text);
    function_ = module_->lookupSymbol<mlir::func::FuncOp>("main");
    return {function_, assumptions_};
  }
  mlir::Value Result(unsigned index) { return function_.getBody().front().getTerminator()->getOperand(index); }

  std::unique_ptr<mlir::MLIRContext> context_ = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp function_;
  ranges::Assumptions assumptions_;
};

TEST_F(Ranges, EndWhereTypesEnd) {
  const auto analysis = Analyze(R"(
    func.func @main() -> (tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<bf16>) {
      %below = mpc.constant {value = dense<65519.0> : tensor<f32>} : () -> tensor<f32>
      %above = mpc.constant {value = dense<65600.0> : tensor<f32>} : () -> tensor<f32>
      %small = mpc.constant {value = dense<2.0e-8> : tensor<f32>} : () -> tensor<f32>
      %least = mpc.constant {value = dense<4.0e-8> : tensor<f32>} : () -> tensor<f32>
      %0 = mpc.cast %below : (tensor<f32>) -> tensor<f16>
      %1 = mpc.cast %above : (tensor<f32>) -> tensor<f16>
      %2 = mpc.cast %small : (tensor<f32>) -> tensor<f16>
      %3 = mpc.cast %least : (tensor<f32>) -> tensor<f16>
      %4 = mpc.cast %above : (tensor<f32>) -> tensor<bf16>
      return %0, %1, %2, %3, %4 : tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<bf16>
    })");
  ASSERT_EQ(analysis.lowTensors().size(), 5U);
  using ranges::Verdict;
  const Verdict overflows[] = {Verdict::Cannot, Verdict::Will, Verdict::Cannot, Verdict::Cannot, Verdict::Cannot};
  const Verdict underflows[] = {Verdict::Cannot, Verdict::Cannot, Verdict::Will, Verdict::Cannot, Verdict::Cannot};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(analysis.lowTensors()[i].overflow, overflows[i]) << i;
    EXPECT_EQ(analysis.lowTensors()[i].underflow, underflows[i]) << i;
  }
}

// The Cauchy-Schwarz inequality is tighter than a product of magnitudes where rows are short.
TEST_F(Ranges, OfProductsFollowNorms) {
  const auto analysis = Analyze(R"(
    func.func @main(%x: tensor<2x100xf32>, %gamma: tensor<100xf32>, %w: tensor<3x100xf32>) -> tensor<2x3xf32> {
      %one = mpc.constant {value = dense<1.0> : tensor<100xf32>} : () -> tensor<100xf32>
      %zero = mpc.constant {value = dense<0.0> : tensor<100xf32>} : () -> tensor<100xf32>
      %unit = mpc.constant {value = dense<0.1> : tensor<3x100xf32>} : () -> tensor<3x100xf32>
      %y, %mean, %inv = mpc.layer_norm %x, %one, %zero
          : (tensor<2x100xf32>, tensor<100xf32>, tensor<100xf32>) -> (tensor<2x100xf32>, tensor<2xf32>, tensor<2xf32>)
      %z = mpc.matmul %y, %unit {transpose_b = true} : (tensor<2x100xf32>, tensor<3x100xf32>) -> tensor<2x3xf32>
      return %z : tensor<2x3xf32>
    })");
  // A normalised row has the norm 10, and a row of weights the norm 1. Magnitudes alone give 100 * 10 * 0.1.
  EXPECT_NEAR(analysis.rangeOf(Result(0)).high, 10, 0.2);
}

}  // namespace
}  // namespace mpc::test
