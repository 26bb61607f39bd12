// mpc-bench --ranks and --all-reduce from outside: processes that train together, with a stand-in for PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(MpcBenchRanks, TrainTogetherBesideOneRankAndOneProcess) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5:8", "--ranks=2", "--steps=3", "--warmup=1", "--runs=2",
                                                "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("lenet5, batch 8, f32, 2 ranks of 1 thread, 2 runs of 3 steps"));
  EXPECT_THAT(result.output, ContainsRegex("ratio mpc-rank-alone / mpc: [0-9.]+ "));
  EXPECT_THAT(result.output, ContainsRegex("ratio mpc-one-process / mpc: [0-9.]+ "));
  EXPECT_THAT(result.output, ContainsRegex("what ranks send each other: [0-9.]+ MiB a rank, alone [0-9.]+ ms a step"));
  EXPECT_THAT(result.output, ContainsRegex("a step of the ranks / \\(a rank's step alone \\+ that\\): [0-9.]+ "));

  const nlohmann::json rows = ReadJson(folder.File("bench.json"))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row["ranks"], 2);
    EXPECT_EQ(row["threads"], 1);
    EXPECT_EQ(row["overhead"]["runs"].size(), 2u);
    EXPECT_GT(row["mpc"]["reduction"]["median"], 0);
    EXPECT_GE(row["mpc"]["reduction"]["bytes"], 61'684 * 4);  // its parameters
  }
  EXPECT_EQ(rows[0]["peer"]["name"], "mpc-rank-alone");
  EXPECT_EQ(rows[1]["peer"]["name"], "mpc-one-process");
  // Halves of a batch have a mean loss of their own, and these have the mean of the batch.
  EXPECT_NEAR(rows[1]["mpc"]["first_loss"], rows[1]["peer"]["first_loss"], 1e-5);
  EXPECT_NEAR(rows[1]["mpc"]["final_loss"], rows[1]["peer"]["final_loss"], 1e-4);
}

/// Stands for an interpreter with PyTorch. Rank 0 runs `rank0`, another rank `others`.
std::string MakeRankInterpreter(const TemporaryFolder& folder, const std::string& rank0, const std::string& others) {
  WriteFile(folder.File("python"),
            "#!/bin/sh\nif [ \"$1\" = -c ]; then echo ok; exit; fi\necho \"$RANK of $WORLD_SIZE at "
            "$MASTER_ADDR: $@\" >> " +
                folder.File("calls") + "\nif [ $RANK = 0 ]; then " + rank0 + "; else " + others + "; fi\n");
  std::filesystem::permissions(folder.File("python"), std::filesystem::perms::owner_all);
  return folder.File("python");
}

/// A peer whose losses begin with that of step 1, the second one.
std::string Printed(const std::string& seconds, const std::string& loss) {
  return "echo '{\"step_seconds\": [" + seconds + "], \"version\": \"PyTorch 0\", \"first_loss\": " + loss +
         ", \"final_loss\": " + loss + ", \"losses\": [" + loss + "], \"steps_before\": 1}'";
}

TEST(MpcBenchRanks, OfDdpAreOneRunWithTheSlowestRanksTimesAndTheMeanLoss) {
  const TemporaryFolder folder;
  const std::string python = MakeRankInterpreter(folder, Printed("1000", "2.0"), Printed("3000", "3.0"));
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5:8", "--ranks=2", "--peer=torch-ddp", "--python=" + python, "--steps=1", "--warmup=0",
                          "--runs=1", "--peer-layout=nchw", "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const std::string calls = ReadFile(folder.File("calls"));
  EXPECT_THAT(calls, ContainsRegex("0 of 2 at 127.0.0.1: .*torch_lenet5.py --batch=8 --threads=1 .*--ranks=2"));
  EXPECT_THAT(calls, ContainsRegex("1 of 2 at 127.0.0.1: .*torch_lenet5.py --batch=8 --threads=1 .*--ranks=2"));
  const nlohmann::json rows = ReadJson(folder.File("bench.json"))["rows"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2]["peer"]["name"], "torch-ddp");
  EXPECT_EQ(rows[2]["peer"]["median"], 3000);
  EXPECT_EQ(rows[2]["peer"]["first_loss"], 2.5);
  EXPECT_EQ(rows[2]["loss_difference"]["steps"], 1);
  EXPECT_GT(rows[2]["loss_difference"]["largest"], 0);
  EXPECT_FALSE(rows[1].contains("loss_difference"));
  EXPECT_THAT(result.output, ContainsRegex("losses of mpc and torch-ddp are at most [0-9.e-]+ apart over 1 steps"));
}

/// mpc measures steps 1 to 4. A peer that has warmed up for longer measures others with the same places.
TEST(MpcBenchRanks, LossesAreThoseOfStepsWithEqualNumbers) {
  for (const auto& [before, compared] : {std::pair(0, 2), std::pair(1, 3), std::pair(3, 2), std::pair(5, 0)}) {
    const TemporaryFolder folder;
    const std::string printed = absl::StrCat(
        R"(echo '{"step_seconds": [1], "version": "PyTorch 0", "losses": [2, 2, 2], "steps_before": )", before, "}'");
    const std::string python = MakeRankInterpreter(folder, printed, printed);
    const ToolResult result =
        RunTool(MPC_BENCH, {"lenet5:8", "--peer=torch", "--python=" + python, "--steps=4", "--warmup=0", "--seconds=0",
                            "--runs=1", "--peer-layout=nchw", "--json=" + folder.File("bench.json")});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const nlohmann::json row = ReadJson(folder.File("bench.json"))["rows"][0];
    EXPECT_EQ(row.contains("loss_difference") ? row["loss_difference"]["steps"].get<int>() : 0, compared) << before;
  }
}

TEST(MpcBenchRanks, ThatWaitForOneThatFailsAreEnded) {
  const TemporaryFolder folder;
  const std::string python = MakeRankInterpreter(folder, "exec sleep 1000", "exit 3");
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5:8", "--ranks=2", "--peer=torch-ddp", "--python=" + python,
                                                "--steps=1", "--warmup=0", "--runs=1", "--peer-layout=nchw"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("ended with status 3"));
}

TEST(MpcBenchRanks, OneOfThemNeedsTheVariablesOfALauncher) {
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5:8", "--ranks=2", "--single", "--steps=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("--single --ranks=2 is one process of 2, but RANK and WORLD_SIZE tell of 1"));
}

TEST(MpcBenchRanks, AreMoreThanProcessorsWithARemark) {
  const std::string processors = std::to_string(std::thread::hardware_concurrency());
  const ToolResult result =
      RunTool(MPC_BENCH, {"mlp:8", "--ranks=2", "--threads=" + processors, "--steps=1", "--warmup=0", "--runs=1"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              ContainsRegex("remark: 2 ranks of " + processors + " threads? share " + processors + " processors"));
}

TEST(MpcBenchSums, AreMeasuredForEveryMessageAndSlot) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"--all-reduce", "--ranks=4", "--elements=1000,20000", "--slot=4KiB,64KiB", "--seconds=0.01",
                          "--dtype=bf16", "--json=" + folder.File("sums.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("sums of bf16 over 4 ranks, transport shared; "));
  const nlohmann::json sums = ReadJson(folder.File("sums.json"));
  EXPECT_EQ(sums["ranks"], 4);
  EXPECT_EQ(sums["dtype"], "bf16");
  ASSERT_EQ(sums["rows"].size(), 4u);
  EXPECT_EQ(sums["rows"][3]["elements"], 20000);
  EXPECT_EQ(sums["rows"][3]["bytes"], 40000);
  EXPECT_EQ(sums["rows"][3]["slot_bytes"], 64 << 10);
  for (const nlohmann::json& row : sums["rows"]) {
    EXPECT_GT(row["seconds"]["least"], 0);
    EXPECT_GE(row["seconds"]["median"], row["seconds"]["least"]);
  }
}

TEST(MpcBenchSums, RefuseSlotsThatAreTooSmallForTheRanks) {
  const ToolResult result = RunTool(MPC_BENCH, {"--all-reduce", "--ranks=4", "--elements=8", "--slot=64"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("slot"));
}

}  // namespace
}  // namespace mpc::tools
