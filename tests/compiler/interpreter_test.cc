#include "compiler/interpreter/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using reference::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

class Interpreter : public testing::Test {
 protected:
  absl::StatusOr<std::vector<Tensor>> run(const char* text, const std::vector<Tensor>& inputs,
                                          reference::Rounding rounding = reference::Rounding::kStorage) {
    Module = ParseModule(*Context, text);
    if (!Module) return absl::InternalError("the test's module does not parse");
    return interpret(Module->lookupSymbol<mlir::func::FuncOp>("main"), inputs, rounding);
  }

  std::unique_ptr<mlir::MLIRContext> Context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> Module;
};

Tensor vector(std::vector<double> values, DType dtype = DType::kF32) {
  return {{dtype, {int64_t(values.size())}}, std::move(values)};
}
Tensor scalar(double value, DType dtype) { return {{dtype, {}}, {value}}; }

TEST_F(Interpreter, ReadsConstantsOfEveryElementType) {
  auto results = run(R"(
    func.func @main() -> (tensor<2xf32>, tensor<f16>, tensor<3xi32>, tensor<2xi64>, tensor<2xi1>, tensor<bf16>) {
      %0 = mpc.constant {value = dense<[1.5, -2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
      %1 = mpc.constant {value = dense<65504.0> : tensor<f16>} : () -> tensor<f16>
      %2 = mpc.constant {value = dense<-7> : tensor<3xi32>} : () -> tensor<3xi32>
      %3 = mpc.constant {value = dense<[4294967296, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
      %4 = mpc.constant {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
      %5 = mpc.constant {value = dense<0.5> : tensor<bf16>} : () -> tensor<bf16>
      return %0, %1, %2, %3, %4, %5
          : tensor<2xf32>, tensor<f16>, tensor<3xi32>, tensor<2xi64>, tensor<2xi1>, tensor<bf16>
    })",
                     {});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values, ElementsAre(1.5, -2.0));
  EXPECT_THAT((*results)[1].values, ElementsAre(65504.0));
  EXPECT_THAT((*results)[2].values, ElementsAre(-7, -7, -7));
  EXPECT_THAT((*results)[3].values, ElementsAre(4294967296.0, -1));
  EXPECT_THAT((*results)[4].values, ElementsAre(1, 0));
  EXPECT_THAT((*results)[5].values, ElementsAre(0.5));
}

TEST_F(Interpreter, RoundsEachResultToItsType) {
  const char* text = R"(
    func.func @main(%x: tensor<1xf16>) -> tensor<1xf16> {
      %y = mpc.add_scalar %x {value = 1.0 : f32} : (tensor<1xf16>) -> tensor<1xf16>
      return %y : tensor<1xf16>
    })";
  // f16 has steps of 2 between 2048 and 4096: the tie 2049 goes to the even 2048.
  auto results = run(text, {vector({2048}, DType::kF16)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(results->front().values, ElementsAre(2048));
}

// Kernels compute in f32: 1 + 2^-11 + 2^-30 is the tie 1 + 2^-11 there. One rounding would give 1 + 2^-10.
TEST_F(Interpreter, RoundsLowResultsFromF32) {
  const char* text = R"(
    func.func @main(%x: tensor<1xf32>, %y: tensor<1xf32>) -> (tensor<1xf16>, tensor<1xf16>) {
      %low = mpc.add %x, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf16>
      %wide = mpc.add %x, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      %cast = mpc.cast %wide : (tensor<1xf32>) -> tensor<1xf16>
      return %low, %cast : tensor<1xf16>, tensor<1xf16>
    })";
  const std::vector<Tensor> inputs{vector({1 + 0x1p-11}), vector({0x1p-30})};
  auto results = run(text, inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values, ElementsAre(1));
  EXPECT_THAT((*results)[1].values, ElementsAre(1));
  // The oracle of tolerances keeps f32 in f64, with and without the fold.
  results = run(text, inputs, reference::Rounding::kLowOnly);
  EXPECT_THAT((*results)[0].values, ElementsAre(1 + 0x1p-10));
  EXPECT_THAT((*results)[1].values, ElementsAre(1 + 0x1p-10));
}

// 2^24 + 2^16 + 1 is just above a tie of bf16 that f32 cannot tell from it.
TEST_F(Interpreter, RoundsAnIntegerToALowTypeOnce) {
  const char* text = R"(
    func.func @main(%x: tensor<1xi32>) -> tensor<1xbf16> {
      %y = mpc.cast %x : (tensor<1xi32>) -> tensor<1xbf16>
      return %y : tensor<1xbf16>
    })";
  auto results = run(text, {vector({0x1p24 + 0x1p16 + 1}, DType::kI32)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(results->front().values, ElementsAre(0x1p24 + 0x1p17));
}

TEST_F(Interpreter, CastsTypesOfOneByte) {
  const char* text = R"(
    func.func @main(%x: tensor<4xf32>) -> (tensor<4xf8E4M3FN>, tensor<4xf16>) {
      %low = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
      %other = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf8E5M2>
      %wide = mpc.cast %other : (tensor<4xf8E5M2>) -> tensor<4xf16>
      return %low, %wide : tensor<4xf8E4M3FN>, tensor<4xf16>
    })";
  auto results = run(text, {vector({1 + 0x1p-4, 1000, 0x1p-10, -17})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].spec.dtype, DType::kF8E4M3FN);
  EXPECT_EQ((*results)[0].values[0], 1);
  EXPECT_TRUE(std::isnan((*results)[0].values[1]));
  EXPECT_EQ((*results)[0].values[2], 0) << "a tie with zero";
  EXPECT_EQ((*results)[0].values[3], -16) << "a tie";
  EXPECT_THAT((*results)[1].values, ElementsAre(1, 1024, 0x1p-10, -16));
}

TEST_F(Interpreter, LowOnlyRoundingKeepsF32TensorsInF64) {
  const char* text = R"(
    func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
      %y = mpc.add_scalar %x {value = 1.0 : f32} : (tensor<1xf32>) -> tensor<1xf32>
      return %y : tensor<1xf32>
    })";
  EXPECT_THAT(run(text, {vector({0x1p-40})})->front().values, ElementsAre(1));
  EXPECT_THAT(run(text, {vector({0x1p-40})}, reference::Rounding::kLowOnly)->front().values, ElementsAre(1 + 0x1p-40));
}

TEST_F(Interpreter, FollowsCalls) {
  auto results = run(R"(
    func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = mpc.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = call @double(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = call @double(%0) : (tensor<2xf32>) -> tensor<2xf32>
      return %1 : tensor<2xf32>
    })",
                     {vector({1, 3})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(results->front().values, ElementsAre(4, 12));
}

TEST_F(Interpreter, GuardedUpdateKeepsTheOldStateWhereTheConditionFails) {
  const char* text = R"(
    func.func @main(%finite: tensor<i1>, %step: tensor<i32>) -> tensor<i32> {
      %new = mpc.guarded_update %finite else(%step) {
        %next = mpc.increment %step : (tensor<i32>) -> tensor<i32>
        mpc.yield %next : tensor<i32>
      } : (tensor<i1>, tensor<i32>) -> tensor<i32>
      return %new : tensor<i32>
    })";
  for (double finite : {0.0, 1.0}) {
    auto results = run(text, {scalar(finite, DType::kBool), scalar(41, DType::kI32)});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_THAT(results->front().values, ElementsAre(41 + finite));
  }
}

TEST_F(Interpreter, RefusesValueAndGrad) {
  auto results = run(R"(
    func.func private @loss(%x: tensor<f32>) -> tensor<f32> {
      return %x : tensor<f32>
    }
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %loss, %dx = mpc.value_and_grad @loss(%x) seed(%x) {wrt = array<i64: 0>}
          : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      return %dx : tensor<f32>
    })",
                     {scalar(1, DType::kF32)});
  EXPECT_EQ(results.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(results.status().message()), HasSubstr("run mpc-autodiff first"));
}

TEST_F(Interpreter, RefusesInputsThatDoNotMatchTheArguments) {
  const char* text = R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      return %x : tensor<2xf32>
    })";
  EXPECT_THAT(std::string(run(text, {}).status().message()), HasSubstr("takes 1 arguments, got 0"));
  EXPECT_THAT(std::string(run(text, {vector({1, 2, 3})}).status().message()),
              HasSubstr("argument 0 is tensor<2xf32>, got tensor<3xf32>"));
  EXPECT_THAT(std::string(run(text, {{{DType::kF32, {2}}, {1}}}).status().message()), HasSubstr("has 1 values"));
}

TEST_F(Interpreter, RefusesIntegersThatF64DoesNotHold) {
  const char* text = R"(
    func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
      return %x : tensor<2xi64>
    })";
  EXPECT_TRUE(run(text, {vector({1, 0x1p53 - 1}, DType::kI64)}).ok());
  const absl::Status refused = run(text, {vector({1, -0x1p53}, DType::kI64)}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("@main argument 0 has about -9007199254740992 in element 1"));
}

TEST_F(Interpreter, RefusesFunctionsWithoutABody) {
  EXPECT_EQ(run("func.func private @main(tensor<f32>) -> tensor<f32>", {scalar(1, DType::kF32)}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

constexpr char kExchange[] = R"(
    func.func @main(%x: tensor<2xf32>, %code: tensor<i32>)
        -> (tensor<2xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) {
      %0 = mpc.all_reduce %x {processes = 2} : tensor<2xf32>
      %1 = mpc.all_gather %x {processes = 2} : (tensor<2xf32>) -> tensor<2x2xf32>
      %2 = mpc.all_reduce_max %code {processes = 2} : tensor<i32>
      %3 = mpc.process_rank {processes = 2} : () -> tensor<i32>
      return %0, %1, %2, %3 : tensor<2xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>
    })";

TEST_F(Interpreter, RunsProcessesInLockstep) {
  Module = ParseModule(*Context, kExchange);
  ASSERT_TRUE(Module);
  const std::vector<std::vector<Tensor>> inputs = {{vector({1, 2}), scalar(-2, DType::kI32)},
                                                   {vector({10, 20}), scalar(-3, DType::kI32)}};
  const auto results = interpretProcesses(Module->lookupSymbol<mlir::func::FuncOp>("main"), inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::vector<Tensor>& of_process = (*results)[rank];
    EXPECT_THAT(of_process[0].values, ElementsAre(11, 22));
    EXPECT_THAT(of_process[1].values, ElementsAre(1, 2, 10, 20));
    EXPECT_THAT(of_process[2].values, ElementsAre(-2));
    EXPECT_THAT(of_process[3].values, ElementsAre(static_cast<double>(rank)));
  }
}

// Rounded once, the sum would be 2052. From the left it would be 2048.
TEST_F(Interpreter, RoundsEveryAdditionOfProcesses) {
  Module = ParseModule(*Context, R"(
    func.func @main(%x: tensor<1xf16>) -> tensor<1xf16> {
      %0 = mpc.all_reduce %x {processes = 4} : tensor<1xf16>
      return %0 : tensor<1xf16>
    })");
  ASSERT_TRUE(Module);
  std::vector<std::vector<Tensor>> inputs;
  for (const double value : {2048, 1, 1, 1}) inputs.push_back({{{DType::kF16, {1}}, {value}}});
  const auto results = interpretProcesses(Module->lookupSymbol<mlir::func::FuncOp>("main"), inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  for (const std::vector<Tensor>& of_process : *results) EXPECT_THAT(of_process[0].values, ElementsAre(2050));
}

TEST_F(Interpreter, NamesACollectiveOfAnotherNumberOfProcesses) {
  const std::vector<Tensor> input = {vector({1, 2}), scalar(0, DType::kI32)};
  const auto alone = run(kExchange, input);
  EXPECT_THAT(std::string(alone.status().message()), HasSubstr("is for 2 processes; 1 run"));
  const std::vector<std::vector<Tensor>> four(4, input);
  const auto results = interpretProcesses(Module->lookupSymbol<mlir::func::FuncOp>("main"), four);
  EXPECT_THAT(std::string(results.status().message()), HasSubstr("is for 2 processes; 4 run"));
}

}  // namespace
}  // namespace mpc
