// mpc-bench --data from outside, with a stand-in for the interpreter: PyTorch is not needed by the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(MpcBenchData, CountsPicturesASecond) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"--data", "--batch=4", "--threads=2", "--warmup=1", "--steps=2",
                                                "--runs=2", "--json=" + folder.File("data.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("64 JPEG pictures of 500 x 375"));
  EXPECT_THAT(result.output, HasSubstr("batch 4, 2 runs of 2 batches after 1 to warm up"));
  EXPECT_THAT(result.output, Not(HasSubstr("ratio")));
  const nlohmann::json table = ReadJson(folder.File("data.json"));
  EXPECT_EQ(table["batch"], 4);
  ASSERT_EQ(table["rows"].size(), 1u);
  EXPECT_EQ(table["rows"][0]["mpc"]["settings"], "2 workers");
  EXPECT_EQ(table["rows"][0]["mpc"]["runs"].size(), 2u);
  EXPECT_GT(table["rows"][0]["mpc"]["median"], 0);
}

TEST(MpcBenchData, OfTorchvisionNeedsAnInterpreterThatHasIt) {
  const ToolResult result = RunTool(MPC_BENCH, {"--data", "--peer=torchvision", "--python=/nowhere/python"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("no torchvision for '/nowhere/python'"));
  EXPECT_THAT(result.error, HasSubstr("--python=PROGRAM"));
  const ToolResult script = RunTool(MPC_BENCH, {"--data", "--peer=torchvision", "--peer-script=/nowhere/script.py"});
  EXPECT_EQ(script.exit_code, 1);
  EXPECT_THAT(script.error, HasSubstr("the peer's script is missing; tried /nowhere/script.py"));
}

/// Stands for the interpreter: it notes how it is called and prints what the script would. With two workers it reads
/// twice as many pictures. `largest` is how far its pixels are from mpc's.
std::string MakeInterpreter(const TemporaryFolder& folder, const std::string& largest) {
  const std::string comparison = R"({"pictures": 16, "largest": )" + largest + R"(, "mean": 0.001})";
  const std::string fast = R"({"pictures_per_second": 0.02, "version": "torchvision 0", "settings": "2 workers"})";
  WriteFile(folder.File("python"), "#!/bin/sh\nif [ \"$1\" = -c ]; then echo ok; exit; fi\necho \"$@\" >> " +
                                       folder.File("calls") + "\ncase \"$*\" in\n*--compare=*) echo '" + comparison +
                                       "';;\n*--workers=2*) echo '" + fast +
                                       "';;\n*) echo '{\"pictures_per_second\": 0.01}';;\nesac\n");
  std::filesystem::permissions(folder.File("python"), std::filesystem::perms::owner_all);
  return folder.File("python");
}

TEST(MpcBenchData, IsComparedWithTheBestNumberOfWorkersOfThePeer) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"--data", "--peer=torchvision", "--python=" + MakeInterpreter(folder, "1.0"), "--batch=2",
                          "--threads=1", "--warmup=0", "--steps=1", "--runs=2", "--json=" + folder.File("data.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("pixels of 16 pictures: at most 1.000 levels apart"));
  EXPECT_THAT(result.output, ContainsRegex("ratio mpc / torchvision, 2 workers: [0-9.]+ "));
  const nlohmann::json table = ReadJson(folder.File("data.json"));
  EXPECT_EQ(table["pixels"]["largest"], 1);
  ASSERT_EQ(table["rows"].size(), 3u);
  EXPECT_EQ(table["rows"][0]["best"], false);
  EXPECT_EQ(table["rows"][2]["best"], true);
  EXPECT_EQ(table["rows"][2]["peer"]["version"], "torchvision 0");
  for (const nlohmann::json& row : table["rows"]) EXPECT_GT(row["ratio"]["median"], 1);
  const std::string calls = ReadFile(folder.File("calls"));
  EXPECT_EQ(std::count(calls.begin(), calls.end(), '\n'), 7);  // one comparison, two rounds of three
  EXPECT_THAT(calls, ContainsRegex("torchvision_data.py --pictures=[^ ]+ --batch=2 --threads=1 --warmup=0 --steps=1 "
                                   "--workers=0\n[^\n]+ --workers=1\n[^\n]+ --workers=2\n[^\n]+ --workers=0"));
}

TEST(MpcBenchData, OtherPixelsAreNotComparedForSpeed) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"--data", "--peer=torchvision", "--python=" + MakeInterpreter(folder, "2.5"), "--steps=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("torchvision's pixels are up to 2.5 levels from mpc's"));
}

}  // namespace
}  // namespace mpc::tools
