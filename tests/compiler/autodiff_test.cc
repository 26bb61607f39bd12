// What mpc-autodiff computes, run by the interpreter; tests/lit/autodiff shows what it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/dialect/dialect.h"
#include "compiler/interpreter/interpreter.h"
#include "mlir/IR/Diagnostics.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using reference::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Autodiff : public testing::Test {
 protected:
  /// The module after the pass; null if it fails. Messages are kept.
  mlir::ModuleOp differentiate(std::string_view text) {
    mlir::ScopedDiagnosticHandler handler(Context.get(), [&](mlir::Diagnostic& message) {
      Messages.push_back(message.str());
      return mlir::success();
    });
    Module = ParseModule(*Context, text);
    if (!Module || llvm::failed(RunAutodiff(*Module))) return nullptr;
    return *Module;
  }

  /// Results of `@main` after the pass.
  std::vector<Tensor> run(std::string_view text, const std::vector<Tensor>& inputs) {
    mlir::ModuleOp differentiated = differentiate(text);
    EXPECT_TRUE(differentiated);
    if (!differentiated) return {};
    auto results = interpret(differentiated.lookupSymbol<mlir::func::FuncOp>("main"), inputs);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<Tensor>();
  }

  template <typename OpTy>
  int count() {
    int number = 0;
    Module->walk([&](OpTy) { ++number; });
    return number;
  }

  std::unique_ptr<mlir::MLIRContext> Context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> Module;
  std::vector<std::string> Messages;
};

Tensor scalar(double value) { return {{DType::kF32, {}}, {value}}; }
Tensor vector(std::vector<double> values, DType dtype = DType::kF32) {
  return {{dtype, {int64_t(values.size())}}, std::move(values)};
}

TEST_F(Autodiff, AddsTheCotangentsOfSeveralUsesWithOneRounding) {
  // 60000 + 10016 - 20000 overflows f16 if the partial sum is rounded (AMP-9).
  auto results = run(R"(
    func.func private @loss(%x: tensor<1xf16>) -> tensor<1xf32> {
      %a = mpc.mul_scalar %x {value = 60000.0 : f32} : (tensor<1xf16>) -> tensor<1xf32>
      %b = mpc.mul_scalar %x {value = 10016.0 : f32} : (tensor<1xf16>) -> tensor<1xf32>
      %c = mpc.mul_scalar %x {value = -20000.0 : f32} : (tensor<1xf16>) -> tensor<1xf32>
      %y = mpc.sum_n %a, %b, %c : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      return %y : tensor<1xf32>
    }
    func.func @main(%x: tensor<1xf16>, %seed: tensor<f32>) -> tensor<1xf16> {
      %loss, %dx = mpc.value_and_grad @loss(%x) seed(%seed) {wrt = array<i64: 0>}
          : (tensor<1xf16>, tensor<f32>) -> (tensor<1xf32>, tensor<1xf16>)
      return %dx : tensor<1xf16>
    })",
                     {vector({0.5}, DType::kF16), scalar(1)});
  EXPECT_THAT(results.at(0).values, ElementsAre(50016));
  EXPECT_EQ(count<SumNOp>(), 1);
}

TEST_F(Autodiff, SeedScalesTheGradient) {
  auto results = run(R"(
    func.func private @loss(%x: tensor<3xf32>) -> tensor<f32> {
      %square = mpc.mul %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %y = mpc.reduce_sum %square {axes = array<i64>} : (tensor<3xf32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    func.func @main(%x: tensor<3xf32>, %scale: tensor<f32>) -> (tensor<f32>, tensor<3xf32>) {
      %loss, %dx = mpc.value_and_grad @loss(%x) seed(%scale) {wrt = array<i64: 0>}
          : (tensor<3xf32>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>)
      return %loss, %dx : tensor<f32>, tensor<3xf32>
    })",
                     {vector({1, -2, 3}), scalar(1024)});
  EXPECT_THAT(results.at(0).values, ElementsAre(14));
  EXPECT_THAT(results.at(1).values, ElementsAre(2048, -4096, 6144));
}

TEST_F(Autodiff, OperandPassedTwiceHasTwoGradients) {
  auto results = run(R"(
    func.func private @loss(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
      %y = mpc.div %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
      %loss, %da, %db = mpc.value_and_grad @loss(%x, %x) seed(%x) {wrt = array<i64: 0, 1>}
          : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
      %again = mpc.neg %x : (tensor<f32>) -> tensor<f32>
      return %da, %db, %again : tensor<f32>, tensor<f32>, tensor<f32>
    })",
                     {scalar(4)});
  EXPECT_THAT(results.at(0).values, ElementsAre(1));
  EXPECT_THAT(results.at(1).values, ElementsAre(-1));
  EXPECT_THAT(results.at(2).values, ElementsAre(-4));
}

TEST_F(Autodiff, LossThatIsItsArgumentHasTheSeedAsGradient) {
  auto results = run(R"(
    func.func private @loss(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      return %a, %a : tensor<2xf32>, tensor<2xf32>
    }
    func.func @main(%x: tensor<2xf32>, %seed: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %loss, %aux, %dx = mpc.value_and_grad @loss(%x) seed(%seed) {wrt = array<i64: 0>}
          : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
      return %loss, %aux, %dx : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    })",
                     {vector({1, 2}), vector({3, 5})});
  EXPECT_THAT(results.at(0).values, ElementsAre(1, 2));
  EXPECT_THAT(results.at(1).values, ElementsAre(1, 2));
  EXPECT_THAT(results.at(2).values, ElementsAre(3, 5));
}

TEST_F(Autodiff, StopGradientIsAConstant) {
  auto results = run(R"(
    func.func private @loss(%x: tensor<f32>) -> tensor<f32> {
      %c = mpc.stop_gradient %x : (tensor<f32>) -> tensor<f32>
      %y = mpc.mul %c, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    func.func @main(%x: tensor<f32>, %seed: tensor<f32>) -> tensor<f32> {
      %loss, %dx = mpc.value_and_grad @loss(%x) seed(%seed) {wrt = array<i64: 0>}
          : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      return %dx : tensor<f32>
    })",
                     {scalar(3), scalar(1)});
  EXPECT_THAT(results.at(0).values, ElementsAre(3));
}

TEST_F(Autodiff, UnusedParameterHasAZeroGradientAndAWarning) {
  auto results = run(R"(
    func.func private @loss(%x: tensor<f32>, %w: tensor<2xf16>) -> tensor<f32> {
      return %x : tensor<f32>
    }
    func.func @main(%x: tensor<f32>, %w: tensor<2xf16> {mpc.state = #mpc.state<input, "fc.weight">}) -> tensor<2xf16> {
      %loss, %dw = mpc.value_and_grad @loss(%x, %w) seed(%x) {wrt = array<i64: 1>}
          : (tensor<f32>, tensor<2xf16>, tensor<f32>) -> (tensor<f32>, tensor<2xf16>)
      return %dw : tensor<2xf16>
    })",
                     {scalar(3), vector({1, 2}, DType::kF16)});
  EXPECT_THAT(results.at(0).values, ElementsAre(0, 0));
  ASSERT_EQ(Messages.size(), 1u);
  EXPECT_THAT(Messages[0], HasSubstr("does not depend on operand 1 ('fc.weight'); its gradient is zero"));
}

TEST_F(Autodiff, NestedCallsAreInlinedAndRemoved) {
  auto results = run(R"(
    func.func private @square(%x: tensor<f32>) -> tensor<f32> {
      %y = mpc.mul %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    func.func private @loss(%x: tensor<f32>) -> tensor<f32> {
      %0 = call @square(%x) : (tensor<f32>) -> tensor<f32>
      %1 = call @square(%0) : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }
    func.func @main(%x: tensor<f32>, %seed: tensor<f32>) -> tensor<f32> {
      %loss, %dx = mpc.value_and_grad @loss(%x) seed(%seed) {wrt = array<i64: 0>}
          : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      return %dx : tensor<f32>
    })",
                     {scalar(3), scalar(1)});
  EXPECT_THAT(results.at(0).values, ElementsAre(108));
  EXPECT_EQ(count<mlir::func::FuncOp>(), 1);
  EXPECT_THAT(Messages, IsEmpty());
}

TEST_F(Autodiff, DerivativeOfADerivative) {
  // f = x^3 through products, whose rule is made of products: f'' = 6 x.
  auto results = run(R"(
    func.func private @cube(%x: tensor<f32>) -> tensor<f32> {
      %0 = mpc.mul %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %1 = mpc.mul %0, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }
    func.func private @slope(%x: tensor<f32>) -> tensor<f32> {
      %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
      %loss, %dx = mpc.value_and_grad @cube(%x) seed(%one) {wrt = array<i64: 0>}
          : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      return %dx : tensor<f32>
    }
    func.func @main(%x: tensor<f32>, %seed: tensor<f32>) -> tensor<f32> {
      %slope, %dx = mpc.value_and_grad @slope(%x) seed(%seed) {wrt = array<i64: 0>}
          : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      return %dx : tensor<f32>
    })",
                     {scalar(5), scalar(1)});
  EXPECT_THAT(results.at(0).values, ElementsAre(30));
}

TEST_F(Autodiff, FailureLeavesTheModuleAsItWas) {
  const char* text = R"(
    func.func private @loss(%c: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %y = mpc.select %c, %x, %x : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    func.func @main(%c: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %loss, %dx = mpc.value_and_grad @loss(%c, %x) seed(%x) {wrt = array<i64: 1>}
          : (tensor<i1>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      return %dx : tensor<f32>
    })";
  EXPECT_FALSE(differentiate(text));
  ASSERT_EQ(Messages.size(), 1u);
  EXPECT_THAT(Messages[0], HasSubstr("'mpc.select' has no derivative rule (VJP)"));
  EXPECT_EQ(printed(*Module), printed(*ParseModule(*Context, text)));
}

}  // namespace
}  // namespace mpc
