// mpc-bench from outside, without a peer: PyTorch is not needed by the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(MpcBench, PrintsPercentilesAndWritesThemAsJson) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5", "--amp-level=O2", "--dtype=bf16", "--batch=8", "--threads=1", "--warmup=2",
                          "--steps=5", "--runs=2", "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("lenet5, batch 8, O2 (bf16), 1 thread, 2 runs of 5 steps after 2 to warm up"));
  EXPECT_THAT(result.output, ContainsRegex("\nall +mpc +[0-9.]+ +[0-9.]+ +[0-9.]+\n"));
  const nlohmann::json json = ReadJson(folder.File("bench.json"));
  const nlohmann::json& mpc = json["contestants"]["mpc"];
  ASSERT_EQ(mpc["runs"].size(), 2u);
  EXPECT_GT(mpc["step_seconds"]["p5"], 0);
  EXPECT_LE(mpc["step_seconds"]["p5"], mpc["step_seconds"]["median"]);
  EXPECT_LE(mpc["step_seconds"]["median"], mpc["step_seconds"]["p95"]);
}

TEST(MpcBench, MeasuresEveryCombinationOfNetworksBatchesAndLevels) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5", "gpt2-tiny", "--amp-level=O0,O2", "--dtype=bf16", "--batch=2,3", "--threads=1",
                          "--warmup=1", "--steps=2", "--runs=1", "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json rows = ReadJson(folder.File("bench.json"))["rows"];
  ASSERT_EQ(rows.size(), 8u);
  std::vector<std::string> titles;
  for (const nlohmann::json& row : rows) {
    const nlohmann::json& mpc = row["contestants"]["mpc"];
    titles.push_back(row["model"].get<std::string>() + " " + std::to_string(row["batch"].get<int>()) + " " +
                     row["precision"].get<std::string>());
    EXPECT_DOUBLE_EQ(mpc["samples_per_second"]["median"].get<double>(),
                     row["batch"].get<double>() / mpc["step_seconds"]["median"].get<double>());
    EXPECT_LE(mpc["samples_per_second"]["p5"], mpc["samples_per_second"]["p95"]);
    EXPECT_GT(mpc["peak_bytes"], 0);
    for (const char* phase : {"trace", "passes", "lowering", "load"}) EXPECT_GT(mpc["compile_seconds"][phase], 0);
  }
  EXPECT_EQ(titles, (std::vector<std::string>{"lenet5 2 O0 (f32)", "lenet5 3 O0 (f32)", "lenet5 2 O2 (bf16)",
                                              "lenet5 3 O2 (bf16)", "gpt2-tiny 2 O0 (f32)", "gpt2-tiny 3 O0 (f32)",
                                              "gpt2-tiny 2 O2 (bf16)", "gpt2-tiny 3 O2 (bf16)"}));
}

TEST(MpcBench, TimesTheStepOfSeveralNetworks) {
  const ToolResult result =
      RunTool(MPC_BENCH, {"dcgan", "--batch=2", "--threads=1", "--warmup=0", "--steps=1", "--runs=1"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, ContainsRegex("mpc: [0-9.e+]+ samples/s"));
}

TEST(MpcBench, SaysWhenThereIsNoTorch) {
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5", "--peer=torch", "--python=/nowhere/python", "--steps=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("no PyTorch for '/nowhere/python'"));
  EXPECT_THAT(result.error, HasSubstr("--python"));
}

TEST(MpcBench, ComparesWithAPeerThatAnswers) {
  const TemporaryFolder folder;
  // Stands for the interpreter: it "imports torch", then prints what the script would.
  WriteFile(folder.File("python"),
            "#!/bin/sh\nif [ \"$1\" = -c ]; then echo ok; exit; fi\n"
            "echo '{\"step_seconds\": [1000, 1000], \"version\": \"PyTorch 0\", \"final_loss\": 2.3}'\n");
  std::filesystem::permissions(folder.File("python"), std::filesystem::perms::owner_all);
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5", "--peer=torch", "--python=" + folder.File("python"),
                                                "--threads=1", "--steps=2", "--warmup=0", "--runs=2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("torch: PyTorch 0"));
  EXPECT_THAT(result.output, ContainsRegex("ratio torch / mpc: [0-9.]+ "));
}

TEST(MpcBench, RefusesBadCommandLines) {
  EXPECT_EQ(RunTool(MPC_BENCH, {}).exit_code, 2);
  const ToolResult flag = RunTool(MPC_BENCH, {"lenet5", "--step=3"});
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.error, HasSubstr("unknown flag '--step'; accepted: --batch"));
  const ToolResult peer = RunTool(MPC_BENCH, {"mlp", "--peer=torch"});
  EXPECT_EQ(peer.exit_code, 2);
  EXPECT_THAT(peer.error, HasSubstr("lenet5, resnet50 and gpt2 only, not mlp"));
  const ToolResult captured = RunTool(MPC_BENCH, {"lenet5", "--peer=torch", "--peer-mode=graph"});
  EXPECT_EQ(captured.exit_code, 2);
  EXPECT_THAT(captured.error, HasSubstr("lenet5 with --device=cuda, not of lenet5 with --device=cpu"));
  const ToolResult batches = RunTool(MPC_BENCH, {"lenet5", "--batch=8,none"});
  EXPECT_EQ(batches.exit_code, 2);
  EXPECT_THAT(batches.error, HasSubstr("'8,none' is no list of whole numbers"));
  const ToolResult device = RunTool(MPC_BENCH, {"lenet5", "--steps-per-launch=4"});
  EXPECT_EQ(device.exit_code, 2);
  EXPECT_THAT(device.error, HasSubstr("--steps-per-launch=4 and --device=cpu contradict"));
}

}  // namespace
}  // namespace mpc::tools
