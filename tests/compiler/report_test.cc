// The precision report and the graph of small modules, without MLIR headers: what a tool sees.
#include "compiler/report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "compiler/driver/compiler.h"
#include "compiler/module/parse_module.h"
#include "compiler/report/dot_graph.h"
#include "compiler/report/explanation.h"
#include "compiler/report/fusion_table.h"
#include "compiler/report/level_difference.h"
#include "compiler/report/memory_table.h"
#include "compiler/report/precision_table.h"

namespace mpc::compiler {
namespace {

constexpr char kDense[] = R"(
#dense = #mpc.scope<"net/dense", network>
func.func @predict(%x: tensor<2x4xf32> {mpc.state = #mpc.state<input, "x">},
                   %w: tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "dense.weight">})
    -> (tensor<2x3xf32> {mpc.state = #mpc.state<output, "y">}) attributes {mpc.step} {
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
  for (const CastGroup& group : table.casts.groups()) {
    if (group.kind == kind) return &group;
  }
  return nullptr;
}

TEST(PrecisionTable, CountsCastsByWhatTheyNarrow) {
  const CompileResult result = CompileAt("O2");
  const absl::StatusOr<PrecisionTable> table = TabulatePrecision(result.final_ir, "predict");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->casts.groups().size(), 2u);
  EXPECT_EQ(table->casts.count(), 2);
  EXPECT_EQ(table->casts.bytes(), (8 + 6) * (4 + 2));
  ASSERT_NE(Find(*table, CastKind::Input), nullptr);
  EXPECT_EQ(Find(*table, CastKind::Input)->bytes, 8 * (4 + 2));
  EXPECT_EQ(Find(*table, CastKind::Input)->where, std::vector<std::string>{"x"});
  ASSERT_NE(Find(*table, CastKind::Widening), nullptr);
  EXPECT_EQ(Find(*table, CastKind::Widening)->where, std::vector<std::string>{"matmul in net/dense"});
}

TEST(PrecisionTable, ACastOfAParameterIsAWeightCast) {
  const Module module = Parse(R"(
func.func @f(%w: tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "dense.weight">}) -> tensor<3x4xf16> attributes {mpc.step} {
  %0 = mpc.transpose %w {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %1 = mpc.cast %0 : (tensor<3x4xf32>) -> tensor<3x4xf16>
  return %1 : tensor<3x4xf16>
})");
  const absl::StatusOr<PrecisionTable> table = TabulatePrecision(module, "f");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_NE(Find(*table, CastKind::Weight), nullptr);
  EXPECT_EQ(Find(*table, CastKind::Weight)->bytes, 12 * (4 + 2));
  EXPECT_EQ(Find(*table, CastKind::Weight)->where, std::vector<std::string>{"dense.weight"});
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
  ASSERT_EQ(table->casts.groups().size(), 2u);
  EXPECT_EQ(table->casts.groups()[0].kind, CastKind::User);
  EXPECT_EQ(table->casts.groups()[1].kind, CastKind::Other);
}

TEST(PrecisionTable, ACastForALossIsNamedAfterIt) {
  const Module module = Parse(R"(
func.func @f(%x: tensor<2x3xf16>, %label: tensor<2xi32>) -> tensor<f32> {
  %0 = mpc.cast %x : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %loss, %log_sum_exp = mpc.softmax_cross_entropy %0, %label {sparse = true}
      : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return %loss : tensor<f32>
})");
  const absl::StatusOr<PrecisionTable> table = TabulatePrecision(module, "f");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_NE(Find(*table, CastKind::Loss), nullptr);
}

TEST(PrecisionTable, MatrixWorkCountsTwoAMultiplyAdd) {
  for (const auto& [level, low] : {std::pair("O0", 0.0), std::pair("O2", 48.0)}) {
    const CompileResult result = CompileAt(level);
    const absl::StatusOr<PrecisionTable> table = TabulatePrecision(result.final_ir, "predict");
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(table->matrix_flops(), 2 * 2 * 4 * 3);
    EXPECT_EQ(table->low_matrix_flops(), low);
  }
}

TEST(PrecisionTable, ConvolutionsWorkTheSameForwardAndBackward) {
  const Module module = Parse(R"(
func.func @f(%x: tensor<1x2x5x5xf16>, %w: tensor<3x2x3x3xf16>, %dy: tensor<1x3x3x3xf16>)
    -> (tensor<1x3x3x3xf16>, tensor<1x2x5x5xf16>, tensor<3x2x3x3xf16>) {
  %y = mpc.conv2d %x, %w : (tensor<1x2x5x5xf16>, tensor<3x2x3x3xf16>) -> tensor<1x3x3x3xf16>
  %dx = mpc.conv2d_grad_input %dy, %w {input_shape = array<i64: 1, 2, 5, 5>}
      : (tensor<1x3x3x3xf16>, tensor<3x2x3x3xf16>) -> tensor<1x2x5x5xf16>
  %dw = mpc.conv2d_grad_weight %x, %dy {weight_shape = array<i64: 3, 2, 3, 3>}
      : (tensor<1x2x5x5xf16>, tensor<1x3x3x3xf16>) -> tensor<3x2x3x3xf16>
  return %y, %dx, %dw : tensor<1x3x3x3xf16>, tensor<1x2x5x5xf16>, tensor<3x2x3x3xf16>
})");
  const absl::StatusOr<PrecisionTable> table = TabulatePrecision(module, "f");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 3u);
  // 27 outputs, each a sum of 18 products.
  for (const PrecisionRow& row : table->rows) EXPECT_EQ(row.flops, 2 * 27 * 18) << row.op;
  EXPECT_EQ(table->low_matrix_flops(), table->matrix_flops());
  EXPECT_FALSE(table->rows[0].backward);
  EXPECT_TRUE(table->rows[1].backward);
}

TEST(Explanation, NamesTheRuleAndBothSidesOfEachCast) {
  const CompileResult result = CompileAt("O2");
  for (const char* name : {"matmul", "mpc.matmul", "#1", "1", "net/dense", "net"}) {
    const absl::StatusOr<std::string> text = ExplainPrecision(result.final_ir, "predict", name);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text,
              "#1 matmul in net/dense: reads f16, writes f16\n"
              "  why: level O2: everything is low but norms and losses\n"
              "  reads cast f32 -> f16 (input, 48 bytes) of x, f32 (an input)\n"
              "  reads dense.weight.f16, the low copy that the parameter's update keeps: no cast in a step\n"
              "  written through cast f16 -> f32 (widening, 36 bytes) for the function's result, f32\n");
  }
}

TEST(Explanation, FollowsTheInferRuleToItsPin) {
  const Module module = Parse(R"(
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mpc.exp %x {mpc.precision = #mpc.precision<f32, class "deny">} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mpc.sigmoid %0 {mpc.precision = #mpc.precision<f32, infer_rule>} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mpc.tanh %1 {mpc.precision = #mpc.precision<f32, infer_rule>} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
})");
  const absl::StatusOr<std::string> text = ExplainPrecision(module, "f", "tanh");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(
      text->find("    from #2 sigmoid, f32: infer rule\n    from #1 exp, f32: class deny: it loses too much in low "
                 "precision\n"),
      std::string::npos)
      << *text;
}

TEST(Explanation, FollowsTheCutToItsNearestPinBothWays) {
  const Module module = Parse(R"(
func.func @f(%x: tensor<2x2xf16>) -> tensor<2x2xf16> {
  %0 = mpc.relu %x {mpc.precision = #mpc.precision<f16, cut>} : (tensor<2x2xf16>) -> tensor<2x2xf16>
  %1 = mpc.matmul %0, %0 {mpc.precision = #mpc.precision<f16, class "allow">}
      : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  return %1 : tensor<2x2xf16>
})");
  const absl::StatusOr<std::string> text = ExplainPrecision(module, "f", "relu");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("why: cut: so that casts cost least"), std::string::npos) << *text;
  EXPECT_NE(text->find("    from #2 matmul, f16: class allow: matrix work gains"), std::string::npos) << *text;
}

TEST(Explanation, AnUnknownNameIsAnsweredWithTheNearestAndAll) {
  const CompileResult result = CompileAt("O2");
  for (const char* name : {"net/dence", "#2"}) {
    const absl::Status status = ExplainPrecision(result.final_ir, "predict", name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_NE(status.message().find("Operations #1 to #1: matmul. Cells: net/dense"), std::string::npos) << status;
  }
  EXPECT_NE(ExplainPrecision(result.final_ir, "predict", "matmull").status().message().find("nearest is 'matmul'"),
            std::string::npos);
}

TEST(LevelDifference, ListsChangedOperationsCastsAndBytes) {
  const CompileResult o0 = CompileAt("O0");
  const CompileResult o2 = CompileAt("O2");
  const absl::StatusOr<std::string> text = LevelDifference({&o0.final_ir, "O0"}, {&o2.final_ir, "O2"}, "predict");
  ASSERT_TRUE(text.ok()) << text.status();
  for (const char* part : {"difference of @predict from O0 to O2", "operations (1 changed, 0 the same)", "f32 -> f32",
                           "f16 -> f16", "casts (0 to 2)", "by operations    104 bytes  52 bytes",
                           "by casts         0 bytes    84 bytes", "low matrix work  0.0 %"}) {
    EXPECT_NE(text->find(part), std::string::npos) << part << " is not in\n" << *text;
  }
}

TEST(LevelDifference, OfAModuleWithItselfIsEmpty) {
  const CompileResult o2 = CompileAt("O2");
  const absl::StatusOr<std::string> text = LevelDifference({&o2.final_ir, "O2"}, {&o2.final_ir, "O2"}, "predict");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("operations (0 changed, 1 the same)\n\n"), std::string::npos) << *text;
}

TEST(PrecisionReport, AsJsonHasTheSameNumbers) {
  const std::string json = PrecisionReportJson(CompileAt("O2"));
  for (const char* part : {"\"function\": \"predict\"", "\"kind\": \"input\"", "\"cast_bytes\": 84", "\"low_share\": 1",
                           "\"why\": \"level O2\"", "\"state_bytes\": 72"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " is not in\n" << json;
  }
}

TEST(PrecisionReport, O0HasNoCast) {
  const std::string report = PrecisionReport(CompileAt("O0"));
  EXPECT_NE(report.find("casts: none"), std::string::npos) << report;
  EXPECT_NE(report.find("parameters: 12 in 1 tensor, 48 bytes"), std::string::npos) << report;
}

TEST(PrecisionReport, TheSummaryCountsLowOperationsCastsAndBytes) {
  const std::string summary = PrecisionSummary(CompileAt("O2"));
  EXPECT_NE(summary.find("1 of 1 operations read or write a 16-bit type; 2 casts, 84 bytes a step"), std::string::npos)
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

TEST(DotGraph, CastsStandOut) {
  const absl::StatusOr<std::string> graph = DotGraph(CompileAt("O2").final_ir, "predict");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_NE(graph->find(R"([label="f32 to f16", fillcolor="#f9cb9c", shape=hexagon)"), std::string::npos) << *graph;
}

TEST(DotGraph, QuotesNames) {
  const absl::StatusOr<std::string> graph = DotGraph(
      Parse(
          R"(func.func @f(%x: tensor<4xf32> {mpc.state = #mpc.state<input, "a \22b\22">}) -> tensor<4xf32> { return %x : tensor<4xf32> })"),
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

/// The operations of `kApart` with the last two in a region.
constexpr char kApart[] = R"(
func.func @predict(%x: tensor<8x16xbf16> {mpc.state = #mpc.state<input, "x">}, %w: tensor<16x16xbf16>) -> tensor<8x16xbf16> {
  %m = mpc.matmul %x, %w {mpc.scope = #mpc.scope<"net/a">} : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  %s = mpc.add %m, %x {mpc.scope = #mpc.scope<"net/b">} : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xf32>
  %c = mpc.cast %s : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  return %c : tensor<8x16xbf16>
}
)";
constexpr char kFused[] = R"(
func.func @predict(%x: tensor<8x16xbf16> {mpc.state = #mpc.state<input, "x">}, %w: tensor<16x16xbf16>) -> tensor<8x16xbf16> {
  %m = mpc.matmul %x, %w {mpc.scope = #mpc.scope<"net/a">} : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  %y = mpc.fusion(%m, %x) {
  ^bb0(%a: tensor<8x16xbf16>, %b: tensor<8x16xbf16>):
    %s = mpc.add %a, %b {mpc.scope = #mpc.scope<"net/b">} : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xf32>
    %c = mpc.cast %s : (tensor<8x16xf32>) -> tensor<8x16xbf16>
    mpc.yield %c : tensor<8x16xbf16>
  } {mpc.fusion_choice = {bytes_saved = 1024 : i64, left_out = ["matmul in net/a: it is not computed element by element"]},
     mpc.scope = #mpc.scope<"net/b">} : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %y : tensor<8x16xbf16>
}
)";

TEST(FusionTable, HoldsOperationsPlacesBytesAndWhatWasLeftOut) {
  const absl::StatusOr<FusionTable> table = TabulateFusion(Parse(kFused), "predict");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 1u);
  const FusionRow& row = table->rows[0];
  EXPECT_EQ(row.operations, (std::vector<std::string>{"add", "cast"}));
  EXPECT_EQ(row.cells, (std::vector<std::string>{"net/b", ""}));
  EXPECT_EQ(row.path, "net/b");
  EXPECT_EQ(row.bytes, 3 * 8 * 16 * 2);
  EXPECT_EQ(row.bytes_saved, 1024);
  EXPECT_EQ(row.left_out, std::vector<std::string>{"matmul in net/a: it is not computed element by element"});
  EXPECT_EQ(TabulateFusion(Parse(kApart), "predict")->rows.size(), 0u);
  EXPECT_EQ(TabulateFusion(Parse(kFused), "train").status().code(), absl::StatusCode::kNotFound);
}

TEST(FusionReport, FollowsTheOperations) {
  const std::string report = ModuleReport(Parse(kFused));
  EXPECT_NE(report.find("fusion (2 operations in 1 region, 1.0 KiB less moved a step)\n"), std::string::npos) << report;
  EXPECT_NE(report.find("  1       add, cast   net/b  1.0 KiB\n"), std::string::npos) << report;
  EXPECT_NE(report.find("  1       matmul in net/a: it is not computed element by element\n"), std::string::npos)
      << report;
  EXPECT_EQ(ModuleReport(Parse(kApart)).find("fusion"), std::string::npos);
  EXPECT_NE(ModuleReportJson(Parse(kFused)).find("\"bytes_saved\": 1024"), std::string::npos);
}

/// A step whose operands, results and gradients have known sizes.
constexpr char kStep[] = R"(
func.func @train_step(%x: tensor<8x16xf32> {mpc.state = #mpc.state<input, "x">},
                      %w: tensor<16x16xf32> {mpc.state = #mpc.state<parameter, "w">},
                      %v: tensor<16x16xf32> {mpc.state = #mpc.state<slot, "v">},
                      %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">})
    -> (tensor<16x16xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<16x16xf32> {mpc.state = #mpc.state<slot, "v">}) attributes {mpc.step} {
  %y = mpc.matmul %x, %w {mpc.scope = #mpc.scope<"net/fc">} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %e = mpc.exp %y {mpc.scope = #mpc.scope<"net/act">} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %d = mpc.mul %e, %y {mpc.backward, mpc.scope = #mpc.scope<"net/act">} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %g = mpc.matmul %x, %d {mpc.backward, transpose_a = true, mpc.scope = #mpc.scope<"net/fc">} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %w2, %v2 = mpc.momentum %w, %v, %g, %rate {momentum = 0.9 : f32} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<f32>) -> (tensor<16x16xf32>, tensor<16x16xf32>)
  return %w2, %v2 : tensor<16x16xf32>, tensor<16x16xf32>
}
)";

TEST(MemoryTable, HoldsWhatIsLiveAtThePeakAndWhatForAndWhereItIsFrom) {
  CompileOptions options;
  options.function = "train_step";
  options.fusion = false;
  absl::StatusOr<CompileResult> result = Compile(Parse(kStep), options);
  ASSERT_TRUE(result.ok()) << result.status();
  const absl::StatusOr<MemoryTable> table = TabulateMemory(result->program, result->final_ir);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->instructions, 5u);
  // At the gradient: x, the product before it (over which the product of the two lies) and the gradient itself.
  EXPECT_EQ(table->peak_op, "matmul");
  EXPECT_EQ(table->peak_path, "net/fc");
  EXPECT_EQ(table->peak, 3u);
  EXPECT_EQ(table->bytes(StorageUse::Input), 8 * 16 * 4);
  EXPECT_EQ(table->bytes(StorageUse::Backward), 8 * 16 * 4);
  EXPECT_EQ(table->bytes(StorageUse::Gradient), 16 * 16 * 4);
  std::int64_t sum = 0;
  for (const MemoryRow& row : table->rows) sum += row.bytes;
  EXPECT_EQ(sum, table->peak_bytes);
  EXPECT_LE(table->peak_bytes, static_cast<std::int64_t>(result->program.arena_bytes));
  EXPECT_LE(table->activation_bytes, table->peak_bytes);
  const auto gradient = std::find_if(table->rows.begin(), table->rows.end(),
                                     [](const MemoryRow& row) { return row.use == StorageUse::Gradient; });
  ASSERT_NE(gradient, table->rows.end());
  EXPECT_EQ(gradient->op, "matmul");
  EXPECT_EQ(gradient->path, "net/fc");
  EXPECT_EQ(gradient->first, 3u);
  EXPECT_EQ(gradient->last, 4u);
}

TEST(MemoryReport, ListsThePeak) {
  CompileOptions options;
  options.function = "train_step";
  options.fusion = false;
  absl::StatusOr<CompileResult> result = Compile(Parse(kStep), options);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::string report = PrecisionReport(*result);
  EXPECT_NE(report.find("at instruction 3 of 5, matmul in net/fc)"), std::string::npos) << report;
  EXPECT_TRUE(std::regex_search(report, std::regex("gradients +matmul  net/fc"))) << report;
  const std::string json = PrecisionReportJson(*result);
  EXPECT_NE(json.find("\"activation_bytes\": "), std::string::npos) << json;
  EXPECT_NE(json.find("\"use\": \"gradients\""), std::string::npos) << json;
}

TEST(MemoryTable, AProgramOfAnotherModuleIsRefused) {
  CompileOptions options;
  options.function = "train_step";
  options.fusion = false;
  absl::StatusOr<CompileResult> result = Compile(Parse(kStep), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(TabulateMemory(result->program, Parse(kDense)).status().code(), absl::StatusCode::kNotFound);
}

TEST(PrecisionTable, SeesTheOperationsOfRegions) {
  const absl::StatusOr<PrecisionTable> fused = TabulatePrecision(Parse(kFused), "predict");
  const absl::StatusOr<PrecisionTable> apart = TabulatePrecision(Parse(kApart), "predict");
  ASSERT_TRUE(fused.ok() && apart.ok());
  ASSERT_EQ(fused->rows.size(), apart->rows.size());
  for (std::size_t i = 0; i < apart->rows.size(); ++i) {
    EXPECT_EQ(fused->rows[i].op, apart->rows[i].op);
    EXPECT_EQ(fused->rows[i].path, apart->rows[i].path);
  }
  // What the cast narrows is known across the region's border.
  ASSERT_NE(Find(*fused, CastKind::Activation), nullptr);
  EXPECT_EQ(Find(*fused, CastKind::Activation)->where, std::vector<std::string>{"add in net/b"});
  const Module from = Parse(kApart), to = Parse(kFused);
  const absl::StatusOr<std::string> difference = LevelDifference({&from, "apart"}, {&to, "fused"}, "predict");
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_NE(difference->find("operations (0 changed, 2 the same)"), std::string::npos) << *difference;
}

TEST(Explanation, NamesTheRegionOfAnOperation) {
  const absl::StatusOr<std::string> text = ExplainPrecision(Parse(kFused), "predict", "add");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("  computed in region 1 with cast\n"), std::string::npos) << *text;
  EXPECT_EQ(ExplainPrecision(Parse(kFused), "predict", "matmul")->find("region"), std::string::npos);
}

TEST(DotGraph, DrawsTheOperationsOfRegionsWithTheirEdges) {
  const absl::StatusOr<std::string> graph = DotGraph(Parse(kFused), "predict");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_NE(graph->find("label=\"add [region 1]\""), std::string::npos) << *graph;
  EXPECT_NE(graph->find("label=\"f32 to bf16 [region 1]\""), std::string::npos) << *graph;
  EXPECT_EQ(graph->find("fusion"), std::string::npos);
  std::size_t edges = 0;
  for (std::size_t at = graph->find(" -> "); at != std::string::npos; at = graph->find(" -> ", at + 1)) ++edges;
  EXPECT_EQ(edges, 6u) << *graph;
}

}  // namespace
}  // namespace mpc::compiler
