// The shadow pass changes where low copies come from, not what a step computes.
#include "compiler/dialect/dialect.h"
#include "compiler/interpreter/interpreter.h"
#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"

namespace mpc {
namespace {

using reference::Tensor;

constexpr const char* kStep = R"(
func.func @step(%w: tensor<2x2xf32> {mpc.state = #mpc.state<parameter, "w">},
                %m: tensor<2x2xf32> {mpc.state = #mpc.state<slot, "m">},
                %v: tensor<2x2xf32> {mpc.state = #mpc.state<slot, "v">},
                %x: tensor<2x2xf16>, %rate: tensor<f32>, %t: tensor<i32>, %finite: tensor<i1>)
    -> (tensor<2x2xf16>, tensor<2x2xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<2x2xf32> {mpc.state = #mpc.state<slot, "m">}, tensor<2x2xf32> {mpc.state = #mpc.state<slot, "v">}) attributes {mpc.step} {
  %moved = mpc.transpose %w {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %low = mpc.cast %moved : (tensor<2x2xf32>) -> tensor<2x2xf16>
  %y = mpc.matmul %x, %low : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  %w1, %m1, %v1 = mpc.adamw %w, %m, %v, %y, %rate, %t, %finite
      : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf16>, tensor<f32>, tensor<i32>, tensor<i1>)
      -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  return %y, %w1, %m1, %v1 : tensor<2x2xf16>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
)";

class LowCopiesPassTest : public ::testing::TestWithParam<bool> {
 protected:
  LowCopiesPassTest() {
    context_.loadDialect<MpcDialect, mlir::func::FuncDialect>();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(kStep, mlir::ParserConfig(&context_));
  }

  mlir::func::FuncOp Step() { return *module_->getOps<mlir::func::FuncOp>().begin(); }

  void RunPass(bool master_weights) {
    mlir::PassManager manager(&context_);
    manager.addNestedPass<mlir::func::FuncOp>(createLowCopiesPass({master_weights}));
    ASSERT_TRUE(mlir::succeeded(manager.run(*module_)));
  }

  std::vector<Tensor> Interpret(const std::vector<Tensor>& inputs) {
    absl::StatusOr<std::vector<Tensor>> results = interpret(Step(), inputs);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *results : std::vector<Tensor>(5);
  }

  /// Weights that f16 rounds.
  std::vector<Tensor> Inputs() const {
    const TensorSpec matrix{DType::kF32, {2, 2}};
    std::vector<double> weights;
    for (double value : {0.1, -0.7, 1.3, 0.01}) weights.push_back(reference::RoundTo(DType::kF32, value));
    return {{matrix, weights},
            {matrix, {0.5, 0, -0.25, 1}},
            {matrix, {0.25, 0.5, 1, 2}},
            {{DType::kF16, {2, 2}}, {1, 2, -3, 0.5}},
            {{DType::kF32, {}}, {0.125}},
            {{DType::kI32, {}}, {3}},
            {{DType::kBool, {}}, {GetParam() ? 1.0 : 0.0}}};
  }

  static Tensor Rounded(Tensor tensor) {
    tensor.spec.dtype = DType::kF16;
    for (double& value : tensor.values) value = reference::RoundTo(DType::kF16, value);
    return tensor;
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_P(LowCopiesPassTest, AStepComputesTheSameFromShadows) {
  std::vector<Tensor> inputs = Inputs();
  const std::vector<Tensor> before = Interpret(inputs);
  RunPass(/*master_weights=*/true);
  inputs.push_back(Rounded(inputs[0]));
  const std::vector<Tensor> after = Interpret(inputs);
  ASSERT_EQ(after.size(), before.size() + 1);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].values, after[i].values) << "result " << i;
  EXPECT_EQ(after.back().values, Rounded(after[1]).values) << "the next shadow is the rounded new parameter";
}

TEST_P(LowCopiesPassTest, WithoutMastersTheStepComputesFromRoundedParametersAndRoundsThem) {
  std::vector<Tensor> inputs = Inputs();
  std::vector<Tensor> rounded = inputs;
  rounded[0].values = Rounded(inputs[0]).values;
  const std::vector<Tensor> before = Interpret(rounded);
  RunPass(/*master_weights=*/false);
  inputs[0] = Rounded(inputs[0]);
  const std::vector<Tensor> after = Interpret(inputs);
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after[0].values, before[0].values);
  EXPECT_EQ(after[1].spec.dtype, DType::kF16);
  EXPECT_EQ(after[1].values, Rounded(before[1]).values);
  EXPECT_EQ(after[2].values, before[2].values);
  EXPECT_EQ(after[3].values, before[3].values);
}

INSTANTIATE_TEST_SUITE_P(Finite, LowCopiesPassTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Taken" : "Skipped"; });

}  // namespace
}  // namespace mpc
