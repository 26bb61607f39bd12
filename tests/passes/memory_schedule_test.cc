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
      "func.func @f(%x: tensor<64x64xf32> {mpc.role = \"parameter\", mpc.name = \"x\"}, %s: tensor<64xf32>) -> "
      "tensor<64xf32> {\n";
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

TEST(MemorySchedule, RunsToItsFixedPoint) {
  mlir::MLIRContext context;
  context.loadDialect<MpcDialect, mlir::func::FuncDialect>();
  constexpr int kValues = 200;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(LargeValuesThenSums(kValues), mlir::ParserConfig(&context));
  ASSERT_TRUE(module);
  mlir::Block& body = module->lookupSymbol<mlir::func::FuncOp>("f").getBody().front();
  constexpr std::int64_t kLarge = 64 * 64 * 4, kSmall = 64 * 4;
  MemorySchedule schedule(body, {});
  EXPECT_GT(schedule.peakBytes(), kValues * kLarge);
  EXPECT_TRUE(schedule.improve());
  // One at a time, beside the sums that have been made.
  EXPECT_LE(schedule.peakBytes(), kLarge + (kValues + 2) * kSmall);
  EXPECT_FALSE(schedule.improve());
  schedule.apply();
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*module)));
  MemorySchedule again(body, {});
  EXPECT_EQ(again.peakBytes(), schedule.peakBytes());
  EXPECT_FALSE(again.improve());
}

}  // namespace
}  // namespace mpc
