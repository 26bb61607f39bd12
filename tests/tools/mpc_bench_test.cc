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
  EXPECT_THAT(peer.error, HasSubstr("lenet5 only"));
}

}  // namespace
}  // namespace mpc::tools
