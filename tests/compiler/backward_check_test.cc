// Gradients of mpc.backward and mpc.custom_vjp against central differences, run by the interpreter in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/interpreter/interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using reference::Tensor;

Tensor vector(std::vector<double> values) { return {{DType::kF32, {int64_t(values.size())}}, std::move(values)}; }

class BackwardCheck : public testing::Test {
 protected:
  /// Results of `@Name` after autodiff, with f32 tensors at f64 accuracy.
  std::vector<Tensor> run(std::string_view name, const std::vector<Tensor>& inputs) {
    auto function = Module->lookupSymbol<mlir::func::FuncOp>(llvm::StringRef(name.data(), name.size()));
    auto results = interpret(function, inputs, reference::Rounding::kLowOnly);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<Tensor>();
  }

  /// `@gradients` returns one gradient an input of the loss that `@loss` returns. Central differences of width 1e-4
  /// truncate at h^2 / 6 times the third derivative (below 10 here) and cancel at 1e-16 / 1e-4.
  void check(std::string_view text, std::vector<Tensor> inputs) {
    Module = ParseModule(*Context, text);
    ASSERT_TRUE(Module && llvm::succeeded(RunAutodiff(*Module)));
    const std::vector<Tensor> gradients = run("gradients", inputs);
    constexpr double step = 1e-4;
    for (std::size_t input = 0; input < inputs.size(); ++input)
      for (std::size_t element = 0; element < inputs[input].values.size(); ++element) {
        const double value = inputs[input].values[element];
        inputs[input].values[element] = value + step;
        const double above = run("loss", inputs)[0].values[0];
        inputs[input].values[element] = value - step;
        const double below = run("loss", inputs)[0].values[0];
        inputs[input].values[element] = value;
        EXPECT_NEAR(gradients[input].values[element], (above - below) / (2 * step), 10 * step * step)
            << "input " << input << " element " << element;
      }
  }

  std::unique_ptr<mlir::MLIRContext> Context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> Module;
};

TEST_F(BackwardCheck, ValueWithSharedOperands) {
  check(R"(
    func.func private @body(%w: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<f32> {
      %p = mpc.mul %w, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %t = mpc.tanh %p : (tensor<3xf32>) -> tensor<3xf32>
      %s = mpc.add %t, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %q = mpc.mul %s, %t : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %y = mpc.reduce_sum %q {axes = array<i64>} : (tensor<3xf32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    func.func @loss(%w: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<f32> {
      %y = func.call @body(%w, %b) : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    func.func @gradients(%w: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
      %y = func.call @body(%w, %b) : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
      %dw, %db = mpc.backward %y wrt(%w, %b) seed(%one)
          : (tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
      return %dw, %db : tensor<3xf32>, tensor<3xf32>
    })",
        {vector({0.5, -1.25, 0.75}), vector({0.25, 0.5, -1.5})});
}

// sigmoid(a) * b by a rule of its own, between operations of the dialect.
TEST_F(BackwardCheck, CustomRuleInAChain) {
  check(R"(
    func.func private @gate(%a: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %s = mpc.sigmoid %a : (tensor<3xf32>) -> tensor<3xf32>
      %y = mpc.mul %s, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      return %y, %s : tensor<3xf32>, tensor<3xf32>
    }
    func.func private @gate_vjp(%a: tensor<3xf32>, %b: tensor<3xf32>, %y: tensor<3xf32>, %s: tensor<3xf32>,
                                %dy: tensor<3xf32>, %ds: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %db = mpc.mul %dy, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %dyb = mpc.mul %dy, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %sum = mpc.add %dyb, %ds : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %da = mpc.sigmoid_grad %sum, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      return %da, %db : tensor<3xf32>, tensor<3xf32>
    }
    func.func private @body(%w: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<f32> {
      %a = mpc.mul %w, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %y, %s = mpc.custom_vjp @gate(%a, %b) vjp @gate_vjp
          : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
      %t = mpc.tanh %y : (tensor<3xf32>) -> tensor<3xf32>
      %r = mpc.add %t, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %loss = mpc.reduce_sum %r {axes = array<i64>} : (tensor<3xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    func.func @loss(%w: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<f32> {
      %y = func.call @body(%w, %b) : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    func.func @gradients(%w: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
      %y, %dw, %db = mpc.value_and_grad @body(%w, %b) seed(%one) {wrt = array<i64: 0, 1>}
          : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>, tensor<3xf32>)
      return %dw, %db : tensor<3xf32>, tensor<3xf32>
    })",
        {vector({0.5, -1.25, 0.75}), vector({0.25, 0.5, -1.5})});
}

}  // namespace
}  // namespace mpc
