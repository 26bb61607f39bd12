// Casts of one value to two types stay two, wherever their entries fall in the table that finds equal operations.
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/dialect/dialect.h"
#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"

namespace mpc {
namespace {

/// Returns the f16 and the bf16 copy of `values` arguments.
std::string CopiesOf(int function, int values) {
  std::string arguments, casts, results, types;
  for (int i = 0; i < values; ++i) {
    const char* comma = i == 0 ? "" : ", ";
    absl::StrAppend(&arguments, comma, "%x", i, ": tensor<4xf32>");
    absl::StrAppend(&casts, "%a", i, " = mpc.cast %x", i, " : (tensor<4xf32>) -> tensor<4xf16>\n");
    absl::StrAppend(&casts, "%b", i, " = mpc.cast %x", i, " : (tensor<4xf32>) -> tensor<4xbf16>\n");
    absl::StrAppend(&results, comma, "%a", i, ", %b", i);
    absl::StrAppend(&types, comma, "tensor<4xf16>, tensor<4xbf16>");
  }
  return absl::StrCat("func.func @f", function, "(", arguments, ") -> (", types, ") {\n", casts, "return ", results,
                      " : ", types, "\n}\n");
}

// Which entries meet follows from addresses: 40 of them in a table of 64, a hundred times, meet often enough.
TEST(CastCleanup, MergesNoCastsToOtherTypes) {
  constexpr int kFunctions = 100, kValues = 20;
  std::string text;
  for (int i = 0; i < kFunctions; ++i) text += CopiesOf(i, kValues);
  mlir::MLIRContext context;
  context.loadDialect<MpcDialect, mlir::func::FuncDialect>();
  const auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  ASSERT_TRUE(module);
  mlir::PassManager manager(&context);
  manager.addNestedPass<mlir::func::FuncOp>(createCastCleanupPass());
  ASSERT_TRUE(mlir::succeeded(manager.run(*module)));
  int casts = 0;
  module.get().walk([&](CastOp) { ++casts; });
  EXPECT_EQ(casts, 2 * kFunctions * kValues);
}

}  // namespace
}  // namespace mpc
