// What functions of many arguments allocate. Types and attributes live as long as their context, so that a new
// signature for each argument would take bytes with the square of their number.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/dialect/dialect.h"
#include "compiler/module/graph_builder.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "tests/support/counted_allocations.h"

namespace mpc {
namespace {

/// Four times as many arguments may take six times the bytes: tables grow in powers of two.
constexpr int kFew = 1000;
constexpr int kMany = 4 * kFew;
constexpr std::size_t kMost = 6;

std::size_t BytesOfTracing(int parameters) {
  testing::StartCounting();
  compiler::GraphBuilder builder;
  builder.BeginFunction("f", /*isPrivate=*/false);
  std::vector<compiler::NamedResult> results;
  for (int i = 0; i < parameters; ++i) {
    const std::string name = absl::StrCat("w", i);
    const compiler::ValueHandle argument =
        builder.AddArgument({DType::kF32, {2}}, {.name = name, .role = Role::kParameter}, builder.depth());
    EXPECT_EQ(builder.ArgumentName(argument), name);
    results.push_back({.value = argument, .name = name, .role = Role::kParameter});
  }
  builder.EndFunction(results);
  return testing::StopCounting().bytes;
}

TEST(SignatureBytes, TracingTakesThemInProportionToArguments) {
  EXPECT_LE(BytesOfTracing(kMany), kMost * BytesOfTracing(kFew));
}

/// Of a step that reads each parameter in f16.
std::size_t BytesOfLowCopies(int parameters) {
  constexpr const char* kWide = "tensor<2xf32>";
  std::string arguments, body, returned, types;
  for (int i = 0; i < parameters; ++i) {
    const char* comma = i == 0 ? "" : ", ";
    absl::StrAppend(&arguments, comma, "%w", i, ": ", kWide, " {mpc.state = #mpc.state<parameter, \"w", i, "\">}");
    absl::StrAppend(&body, "%c", i, " = mpc.cast %w", i, " : (", kWide, ") -> tensor<2xf16>\n", "%r", i,
                    " = mpc.relu %c", i, " : tensor<2xf16>\n");
    absl::StrAppend(&returned, comma, "%r", i);
    absl::StrAppend(&types, comma, "tensor<2xf16>");
  }
  mlir::MLIRContext context;
  context.loadDialect<MpcDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      absl::StrCat("func.func @step(", arguments, ") -> (", types, ") attributes {mpc.step} {\n", body, "return ",
                   returned, " : ", types, "\n}\n"),
      mlir::ParserConfig(&context));
  EXPECT_TRUE(module);
  if (!module) return 0;
  mlir::PassManager manager(&context);
  manager.addNestedPass<mlir::func::FuncOp>(createLowCopiesPass({/*masterWeights=*/true}));
  testing::StartCounting();
  EXPECT_TRUE(mlir::succeeded(manager.run(*module)));
  const std::size_t bytes = testing::StopCounting().bytes;
  EXPECT_EQ((*module->getOps<mlir::func::FuncOp>().begin()).getNumArguments(), 2u * parameters);
  return bytes;
}

TEST(SignatureBytes, LowCopiesTakeThemInProportionToParameters) {
  const std::size_t few = BytesOfLowCopies(kFew);
  EXPECT_GT(few, 0u);
  EXPECT_LE(BytesOfLowCopies(kMany), kMost * few);
}

}  // namespace
}  // namespace mpc
