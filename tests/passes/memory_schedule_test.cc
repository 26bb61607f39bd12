// The schedule goes on until no move lowers the peak, however many it takes.
#include "passes/memory/memory_schedule.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/dialect/dialect.h"
#include "gtest/gtest.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

namespace mpc {
namespace {

/// `count` large values, one after the other, then their sums.
std::string LargeValuesThenSums(int count) {
  std::string text =
      "func.func @f(%x: tensor<64x64xf32> {mpc.state = #mpc.state<parameter, \"x\">}, %s: tensor<64xf32>) -> "
      "tensor<64xf32> attributes {mpc.step} {\n";
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "%a", i, " = mpc.add_scalar %x {value = ", i,
                    ".0 : f32} : (tensor<64x64xf32>) -> tensor<64x64xf32>\n");
  }
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "%r", i, " = mpc.reduce_sum %a", i,
                    " {axes = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>\n");
    absl::StrAppend(&text, "%s", i, " = mpc.add %r", i, ", ", i == 0 ? "%s" : absl::StrCat("%s", i - 1),
                    " : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>\n");
  }
  return absl::StrCat(text, "return %s", count - 1, " : tensor<64xf32>\n}\n");
}

constexpr std::int64_t kLarge = 64 * 64 * 4, kSmall = 64 * 4;

class MemoryScheduleTest : public testing::Test {
 protected:
  /// The body of `@f` in the text.
  mlir::Block& Parse(const std::string& text) {
    context_.loadDialect<MpcDialect, mlir::func::FuncDialect>();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context_));
    return module_->lookupSymbol<mlir::func::FuncOp>("f").getBody().front();
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

// What the step returns lives to its end; the parameter lies elsewhere.
TEST_F(MemoryScheduleTest, KeepsResultsToTheEnd) {
  mlir::Block& body = Parse(R"(
    func.func @f(%x: tensor<64x64xf32> {mpc.state = #mpc.state<parameter, "x">})
        -> (tensor<64x64xf32>, tensor<64xf32>) attributes {mpc.step} {
      %a = mpc.add_scalar %x {value = 1.0 : f32} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %b = mpc.add_scalar %a {value = 2.0 : f32} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %s = mpc.reduce_sum %b {axes = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
      return %a, %s : tensor<64x64xf32>, tensor<64xf32>
    })");
  EXPECT_EQ(MemorySchedule(body, {}).peakBytes(), 2 * kLarge + kSmall);
}

// Workspaces lie beside operands and results, in whole cache lines.
TEST_F(MemoryScheduleTest, CountsWorkspaces) {
  mlir::Block& body = Parse(R"(
    func.func @f(%x: tensor<64x64xf32> {mpc.state = #mpc.state<parameter, "x">}) -> tensor<64xf32> attributes {mpc.step} {
      %s = mpc.reduce_sum %x {axes = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
      return %s : tensor<64xf32>
    })");
  MemoryModel model;
  model.scratch = [](mlir::Operation*) { return 1000; };
  EXPECT_EQ(MemorySchedule(body, model).peakBytes(), kSmall + 1024);
}

// A sum reads its operand, beside what comes after its start, until the wait.
TEST_F(MemoryScheduleTest, KeepsWhatASumReadsUntilItsWait) {
  const auto peak = [&](const std::string& in_front, const std::string& behind) {
    return MemorySchedule(Parse(R"(
    func.func @f(%x: tensor<64x64xf32> {mpc.state = #mpc.state<parameter, "x">})
        -> (tensor<64xf32>, tensor<64x64xf32>) attributes {mpc.step} {
      %a = mpc.add_scalar %x {value = 1.0 : f32} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %started = mpc.all_reduce_start %a : tensor<64x64xf32>
      )" + in_front + R"(
      %b = mpc.add_scalar %x {value = 2.0 : f32} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %s = mpc.reduce_sum %b {axes = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
      )" + behind + R"(
      return %s, %sum : tensor<64xf32>, tensor<64x64xf32>
    })"),
                          {})
        .peakBytes();
  };
  const std::string wait = "%sum = mpc.all_reduce_wait %started : tensor<64x64xf32>";
  EXPECT_EQ(peak(wait, ""), 2 * kLarge + kSmall);
  EXPECT_EQ(peak("", wait), 3 * kLarge + kSmall);
}

// An update writes over its state: new parameters take no room of their own.
TEST_F(MemoryScheduleTest, UpdatesTakeNoRoom) {
  mlir::Block& body = Parse(R"(
    func.func @f(%p: tensor<64x64xf32> {mpc.state = #mpc.state<parameter, "p">},
                 %v: tensor<64x64xf32> {mpc.state = #mpc.state<slot, "v">},
                 %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">})
        -> (tensor<64x64xf32> {mpc.state = #mpc.state<parameter, "p">},
            tensor<64x64xf32> {mpc.state = #mpc.state<slot, "v">}) attributes {mpc.step} {
      %g = mpc.add_scalar %p {value = 1.0 : f32} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %p2, %v2 = mpc.momentum %p, %v, %g, %rate
          : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>)
          -> (tensor<64x64xf32>, tensor<64x64xf32>)
      return %p2, %v2 : tensor<64x64xf32>, tensor<64x64xf32>
    })");
  EXPECT_EQ(MemorySchedule(body, {}).peakBytes(), kLarge);
}

TEST_F(MemoryScheduleTest, RunsToItsFixedPoint) {
  constexpr int kValues = 200;
  mlir::Block& body = Parse(LargeValuesThenSums(kValues));
  MemorySchedule schedule(body, {});
  EXPECT_GT(schedule.peakBytes(), kValues * kLarge);
  EXPECT_TRUE(schedule.improve());
  // One at a time, beside the sums that have been made.
  EXPECT_LE(schedule.peakBytes(), kLarge + (kValues + 2) * kSmall);
  EXPECT_FALSE(schedule.improve());
  schedule.apply();
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*module_)));
  MemorySchedule again(body, {});
  EXPECT_EQ(again.peakBytes(), schedule.peakBytes());
  EXPECT_FALSE(again.improve());
}

}  // namespace
}  // namespace mpc
