// mpc-bench from outside: what it measures of networks by itself.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

/// "lenet5 32 f32".
std::string RowTitle(const nlohmann::json& row) {
  return row["model"].get<std::string>() + " " + std::to_string(row["batch"].get<int>()) + " " +
         row["mode"].get<std::string>();
}

TEST(MpcBench, PrintsPercentilesAndWritesThemAsJson) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5", "--amp-level=O2", "--dtype=bf16", "--batch=8", "--threads=1", "--warmup=2",
                          "--steps=5", "--runs=2", "--seconds=0", "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("lenet5, batch 8, O2 bf16, 1 thread, 2 runs of 5 steps after 2 to warm up"));
  EXPECT_THAT(result.output, ContainsRegex("\nall +mpc +[0-9.]+ +[0-9.]+ +[0-9.]+\n"));
  EXPECT_THAT(result.output, ContainsRegex("\nmpc: planned [0-9.]+ MiB"));
  const nlohmann::json rows = ReadJson(folder.File("bench.json"))["rows"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].contains("peer"));
  const nlohmann::json& mpc = rows[0]["mpc"];
  ASSERT_EQ(mpc["runs"].size(), 2u);
  EXPECT_GT(mpc["p5"], 0);
  EXPECT_LE(mpc["p5"], mpc["median"]);
  EXPECT_LE(mpc["median"], mpc["p95"]);
  EXPECT_GT(mpc["peak_bytes"], 0);
  EXPECT_GT(mpc["first_step_seconds"]["cold"], 0);
  EXPECT_GT(mpc["first_step_seconds"]["cached"], 0);
  EXPECT_GT(mpc["first_loss"], 0);
  EXPECT_EQ(folder.Content(), std::vector<std::string>{"bench.json"});
}

TEST(MpcBench, RemovesTheFoldersOfRunsThatWereEnded) {
  const TemporaryFolder folder;
  for (const char* name : {"mpc-bench-ended", "mpc-bench-lives", "mpc-bench-other"}) {
    std::filesystem::create_directory(folder.File(name));
    if (std::string(name) != "mpc-bench-other") WriteFile(folder.File(name) + "/owner.lock", "");
  }
  const int lock = ::open((folder.File("mpc-bench-lives") + "/owner.lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const ToolResult result = RunTool(
      "/bin/sh",
      {"-c", "TMPDIR=\"$1\" exec \"$0\" mlp --threads=1 --warmup=0 --steps=1 --runs=1", MPC_BENCH, folder.path()});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(folder.Content(), (std::vector<std::string>{"mpc-bench-lives", "mpc-bench-other"}));
  ::close(lock);
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
    const nlohmann::json& mpc = row["mpc"];
    titles.push_back(RowTitle(row));
    EXPECT_DOUBLE_EQ(mpc["samples_per_second"]["median"].get<double>(),
                     row["batch"].get<double>() / mpc["median"].get<double>());
    EXPECT_LE(mpc["samples_per_second"]["p5"], mpc["samples_per_second"]["p95"]);
    for (const char* phase : {"trace", "passes", "lowering", "load"}) EXPECT_GT(mpc["compile_seconds"][phase], 0);
  }
  EXPECT_EQ(titles, (std::vector<std::string>{"lenet5 2 f32", "lenet5 3 f32", "lenet5 2 O2 bf16", "lenet5 3 O2 bf16",
                                              "gpt2-tiny 2 f32", "gpt2-tiny 3 f32", "gpt2-tiny 2 O2 bf16",
                                              "gpt2-tiny 3 O2 bf16"}));
}

TEST(MpcBench, ABatchSizeMayFollowTheNetworkAndASizeIsOfTheNetworksThatHaveIt) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5:2", "mlp:3,4", "gpt2-tiny", "--batch=1", "--layers=1",
                                                "--width=32", "--heads=2", "--tokens=8", "--threads=1", "--warmup=0",
                                                "--steps=1", "--runs=1", "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("gpt2-tiny with tokens 8, layers 1, width 32, heads 2, batch 1, f32"));
  const nlohmann::json rows = ReadJson(folder.File("bench.json"))["rows"];
  std::vector<std::string> titles;
  for (const nlohmann::json& row : rows) titles.push_back(RowTitle(row));
  EXPECT_EQ(titles, (std::vector<std::string>{"lenet5 2 f32", "mlp 3 f32", "mlp 4 f32", "gpt2-tiny 1 f32"}));
  EXPECT_TRUE(rows[0]["sizes"].empty());
  EXPECT_EQ(rows[3]["sizes"]["width"], 32);
}

TEST(MpcBench, ARunEndsAfterTheSecondsThatItMayTake) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5", "--threads=1", "--runs=1", "--steps=1000000", "--seconds=0.05", "--warmup=1000000",
                          "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("1 run of 1000000 steps or 0.05 s"));
}

TEST(MpcBench, TimesTheStepOfSeveralNetworks) {
  const ToolResult result =
      RunTool(MPC_BENCH, {"dcgan", "--batch=2", "--threads=1", "--warmup=0", "--steps=1", "--runs=1"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, ContainsRegex("mpc: [0-9.e+]+ samples/s"));
}

}  // namespace
}  // namespace mpc::tools
