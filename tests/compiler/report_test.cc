// The precision report and the graph of small modules, without MLIR headers: what a tool sees.
#include "compiler/report.h"

#include <gtest/gtest.h>

#include "compiler/dot_graph.h"
#include "compiler/parse_module.h"
#include "compiler/precision_table.h"

namespace mpc::compiler {
namespace {

constexpr char kDense[] = R"(
#dense = #mpc.scope<path = "net/dense", network = true>
func.func @predict(%x: tensor<2x4xf32> {mpc.name = "x", mpc.role = "input"},
                   %w: tensor<4x3xf32> {mpc.name = "dense.weight", mpc.role = "parameter"})
    -> (tensor<2x3xf32> {mpc.name = "y", mpc.role = "output"}) {
  %y = mpc.matmul %x, %w {mpc.scope = #dense} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
)";

Module Parse(const char* text) {
  absl::StatusOr<Module> module = ParseModule(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

CompileResult CompileAt(const char* level) {
  CompileOptions options;
  options.function = "predict";
  options.level = level;
  absl::StatusOr<CompileResult> result = Compile(Parse(kDense), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

const CastGroup* Find(const PrecisionTable& table, CastKind kind) {
  for (const CastGroup& group : table.casts) {
    if (group.kind == kind) return &group;
  }
  return nullptr;
}

TEST(PrecisionTable, CountsCastsByWhatTheyNarrow) {
  const CompileResult result = CompileAt("O2");
  const absl::StatusOr<PrecisionTable> table = TabulatePrecision(result.final_ir, "predict");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->casts.size(), 3u);
  const CastGroup* weight = Find(*table, CastKind::kWeight);
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->count, 1);
  EXPECT_EQ(weight->bytes, 12 * (4 + 2));
  EXPECT_EQ(weight->where, std::vector<std::string>{"dense.weight"});
  ASSERT_NE(Find(*table, CastKind::kInput), nullptr);
  EXPECT_EQ(Find(*table, CastKind::kInput)->bytes, 8 * (4 + 2));
  ASSERT_NE(Find(*table, CastKind::kWidening), nullptr);
  EXPECT_EQ(Find(*table, CastKind::kWidening)->where, std::vector<std::string>{"matmul in net/dense"});
}

TEST(PrecisionTable, SaysWhatAnOperationReadsAndWhy) {
  const CompileResult result = CompileAt("O2");
  const absl::StatusOr<PrecisionTable> table = TabulatePrecision(result.final_ir, "predict");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 1u);
  EXPECT_EQ(table->rows[0].op, "matmul");
  EXPECT_EQ(table->rows[0].path, "net/dense");
  EXPECT_EQ(table->rows[0].inputs, "f16");
  EXPECT_EQ(table->rows[0].outputs, "f16");
  EXPECT_EQ(table->rows[0].compute, "f32");
  EXPECT_EQ(table->rows[0].reason, "level O2");
}

TEST(PrecisionTable, AUserCastIsNamedAsOne) {
  const Module module = Parse(R"(
func.func @f(%x: tensor<4xf32>) -> tensor<4xi32> {
  %0 = mpc.cast %x {user = true} : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = mpc.cast %0 : (tensor<4xbf16>) -> tensor<4xi32>
  return %1 : tensor<4xi32>
})");
  const absl::StatusOr<PrecisionTable> table = TabulatePrecision(module, "f");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->casts.size(), 2u);
  EXPECT_EQ(table->casts[0].kind, CastKind::kUser);
  EXPECT_EQ(table->casts[1].kind, CastKind::kOther);
}

TEST(PrecisionReport, O0HasNoCast) {
  const std::string report = PrecisionReport(CompileAt("O0"));
  EXPECT_NE(report.find("casts: none"), std::string::npos) << report;
  EXPECT_NE(report.find("parameters: 12 in 1 tensor, 48 bytes"), std::string::npos) << report;
}

TEST(PrecisionReport, TheSummaryCountsLowOperationsCastsAndBytes) {
  const std::string summary = PrecisionSummary(CompileAt("O2"));
  EXPECT_NE(summary.find("1 of 1 operations read or write a 16-bit type; 3 casts, 156 bytes a step"), std::string::npos)
      << summary;
  EXPECT_NE(summary.find("no state copies"), std::string::npos) << summary;
}

TEST(PrecisionReport, AModuleWithoutABodySaysSo) {
  EXPECT_EQ(ModuleReport(Parse("func.func private @f(tensor<4xf32>)")), "the module has no function with a body\n");
}

TEST(DotGraph, AnUnknownFunctionIsAnErrorWithItsName) {
  const absl::StatusOr<std::string> graph = DotGraph(Parse(kDense), "train");
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(graph.status().message(), "the module has no function @train with a body");
}

TEST(DotGraph, QuotesNames) {
  const absl::StatusOr<std::string> graph = DotGraph(
      Parse(
          R"(func.func @f(%x: tensor<4xf32> {mpc.name = "a \22b\22"}) -> tensor<4xf32> { return %x : tensor<4xf32> })"),
      "f");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_NE(graph->find(R"(label="a \"b\"")"), std::string::npos) << *graph;
}

TEST(ParseModule, ReportsWhatTheVerifierSays) {
  const absl::StatusOr<Module> module = ParseModule(
      "func.func @f(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {\n"
      "  %0 = mpc.matmul %x, %x : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>\n"
      "  return %0 : tensor<4x2xf32>\n}");
  EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(module.status().message().find("inner extents"), std::string::npos) << module.status();
}

}  // namespace
}  // namespace mpc::compiler
