// mpc-bench --peer from outside, with stand-ins: PyTorch is not needed by the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(MpcBenchPeers, OfTorchNeedAnInterpreterThatHasIt) {
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5", "--peer=torch", "--python=/nowhere/python", "--steps=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("no PyTorch for '/nowhere/python'"));
  EXPECT_THAT(result.error, HasSubstr("--python"));
}

/// Stands for the interpreter: it "imports torch", notes how it is called and prints what a script would.
std::string MakeInterpreter(const TemporaryFolder& folder) {
  WriteFile(folder.File("python"),
            "#!/bin/sh\nif [ \"$1\" = -c ]; then echo ok; exit; fi\necho \"$@\" >> " + folder.File("calls") +
                "\necho '{\"step_seconds\": [1000, 1000], \"version\": \"PyTorch 0\", \"first_loss\": 2.4, "
                "\"final_loss\": 2.3, \"first_step_seconds\": 3, \"steps_resident_bytes\": 1048576, "
                "\"resident_bytes\": 2097152}'\n");
  std::filesystem::permissions(folder.File("python"), std::filesystem::perms::owner_all);
  return folder.File("python");
}

TEST(MpcBenchPeers, ThatAnswerAreCompared) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5", "--peer=torch,torch-compile", "--python=" + MakeInterpreter(folder), "--threads=1",
                          "--steps=2", "--warmup=0", "--runs=2", "--peer-layout=nhwc",
                          "--json=" + folder.File("bench.json"), "--svg=" + folder.File("bench.svg")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("torch: PyTorch 0, loss of the first step 2.40000, of the last 2.30000"));
  EXPECT_THAT(result.output, HasSubstr("torch-compile: resident memory grew by 1.0 MiB in the steps, 2.0 MiB"));
  EXPECT_THAT(result.output, HasSubstr("first step after 3.000 s, in later runs 3.000 s"));
  EXPECT_THAT(result.output, ContainsRegex("ratio torch / mpc: [0-9.]+ "));
  EXPECT_THAT(result.output, ContainsRegex("ratio torch-compile / mpc: [0-9.]+ "));

  const nlohmann::json rows = ReadJson(folder.File("bench.json"))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["peer"]["name"], "torch");
  EXPECT_EQ(rows[1]["peer"]["name"], "torch-compile");
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row["model"], "lenet5");
    EXPECT_EQ(row["batch"], 32);
    EXPECT_EQ(row["mode"], "f32");
    EXPECT_EQ(row["peer"]["median"], 1000);
    EXPECT_EQ(row["peer"]["resident_bytes"], 2097152);
    EXPECT_EQ(row["ratio"]["runs"].size(), 2u);
    EXPECT_GT(row["ratio"]["median"], 1);
    EXPECT_LE(row["ratio"]["p5"], row["ratio"]["p95"]);
  }
  const std::string chart = ReadFile(folder.File("bench.svg"));
  for (const char* part :
       {"<svg ", "lenet5 b32, f32", ">torch<", ">torch-compile<", "prefers-color-scheme", "</svg>"}) {
    EXPECT_THAT(chart, HasSubstr(part));
  }
}

TEST(MpcBenchPeers, TakeTurnsFromTheWeightsAndBatchesOfMpc) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(
      MPC_BENCH, {"gpt2-tiny", "--peer=torch,torch-compile", "--python=" + MakeInterpreter(folder), "--batch=1",
                  "--threads=1", "--steps=1", "--warmup=0", "--runs=2", "--heads=2", "--amp-level=O2", "--dtype=bf16"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  std::istringstream calls(ReadFile(folder.File("calls")));
  std::vector<std::string> modes;
  for (std::string call; std::getline(calls, call);) {
    const std::size_t mode = call.find("--mode=");
    modes.push_back(call.substr(mode, call.find(' ', mode) - mode));
    EXPECT_THAT(call, ContainsRegex("torch_gpt2.py --batch=1 --threads=1 .*--amp-level=O2 .*--weights=[^ ]+ "
                                    "--data=[^ ]+ --tokens=32 --context=32 --vocabulary=256 --layers=2 --width=64 "
                                    "--heads=2 --dtype=bf16"));
  }
  EXPECT_EQ(modes, (std::vector<std::string>{"--mode=eager", "--mode=compile", "--mode=eager", "--mode=compile"}));
}

TEST(MpcBenchPeers, OfBertHaveItsSizes) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"bert-tiny:1", "--peer=torch", "--python=" + MakeInterpreter(folder), "--threads=1",
                          "--steps=1", "--warmup=0", "--runs=1", "--layers=1", "--context=64"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(ReadFile(folder.File("calls")),
              ContainsRegex("torch_bert.py --batch=1 .*--tokens=64 --context=64 --vocabulary=256 --layers=1 --width=64 "
                            "--heads=4"));
}

TEST(MpcBenchPeers, OfImagesRunInTheLayoutThatIsFasterForThem) {
  const TemporaryFolder folder;
  // Channels last takes half of the time.
  WriteFile(folder.File("python"),
            "#!/bin/sh\nif [ \"$1\" = -c ]; then echo ok; exit; fi\n"
            "case \"$*\" in *--layout=nhwc*) t=500;; *) t=1000;; esac\n"
            "echo \"{\\\"step_seconds\\\": [$t], \\\"version\\\": \\\"PyTorch 0\\\"}\"\n");
  std::filesystem::permissions(folder.File("python"), std::filesystem::perms::owner_all);
  const ToolResult result = RunTool(MPC_BENCH, {"bnnet", "--peer=torch", "--python=" + folder.File("python"),
                                                "--threads=1", "--steps=1", "--warmup=0", "--runs=1", "--batch=2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, ContainsRegex("all +torch +500000"));
}

TEST(MpcBenchPeers, CanBeginFromWhatIsWritten) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5", "--batch=2", "--start=" + folder.path()});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(folder.Content(), (std::vector<std::string>{"batches.safetensors", "weights.safetensors"}));
  EXPECT_THAT(ReadFile(folder.File("weights.safetensors")), HasSubstr("\"conv1.weight\""));
  EXPECT_THAT(ReadFile(folder.File("batches.safetensors")), HasSubstr("\"batch0.column1\""));
}

TEST(MpcBenchPeers, AreMpcItselfInF32AndWithoutLossScale) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5", "--amp-level=O2", "--peer=mpc-f32,mpc-unscaled", "--batch=2", "--threads=1",
                          "--steps=2", "--warmup=0", "--runs=1", "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json rows = ReadJson(folder.File("bench.json"))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["peer"]["name"], "mpc-f32");
  EXPECT_EQ(rows[1]["peer"]["name"], "mpc-unscaled");
  // Low copies of the weights are state of the mixed step alone; a scale changes no loss.
  EXPECT_GT(rows[0]["mpc"]["peak_bytes"], 0);
  EXPECT_EQ(rows[1]["mpc"]["first_loss"], rows[1]["peer"]["first_loss"]);
  EXPECT_NE(rows[0]["mpc"]["first_loss"], rows[0]["peer"]["first_loss"]);
}

TEST(MpcBenchPeers, AreMpcItselfOnOneThreadBesideBusyProcesses) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5", "--peer=mpc-one-thread", "--threads=2", "--busy=0,2", "--batch=2", "--steps=2",
                          "--warmup=0", "--runs=1", "--json=" + folder.File("bench.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("2 threads, 1 run of"));
  EXPECT_THAT(result.output, HasSubstr("2 threads, beside 2 busy processes, 1 run of"));
  const nlohmann::json rows = ReadJson(folder.File("bench.json"))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  for (const nlohmann::json& row : rows) EXPECT_EQ(row["peer"]["name"], "mpc-one-thread");
  EXPECT_EQ(rows[0]["busy"], 0);
  EXPECT_EQ(rows[1]["busy"], 2);
}

}  // namespace
}  // namespace mpc::tools
