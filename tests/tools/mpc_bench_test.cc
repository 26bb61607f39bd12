// mpc-bench from outside, without a peer: PyTorch is not needed by the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

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

TEST(MpcBench, SaysWhenThereIsNoTorch) {
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

TEST(MpcBench, ComparesWithPeersThatAnswer) {
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
    EXPECT_EQ(RowTitle(row), "lenet5 32 f32");
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

TEST(MpcBench, PeersTakeTurnsFromTheWeightsAndBatchesOfMpc) {
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

TEST(MpcBench, APeerOfImagesRunsInTheLayoutThatIsFasterForIt) {
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

TEST(MpcBench, WritesWhatAPeerBeginsFrom) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5", "--batch=2", "--start=" + folder.path()});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(folder.Content(), (std::vector<std::string>{"batches.safetensors", "weights.safetensors"}));
  EXPECT_THAT(ReadFile(folder.File("weights.safetensors")), HasSubstr("\"conv1.weight\""));
  EXPECT_THAT(ReadFile(folder.File("batches.safetensors")), HasSubstr("\"batch0.column1\""));
}

TEST(MpcBench, ComparesMpcWithItselfInF32AndWithoutLossScale) {
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

TEST(MpcBench, ProfilesTheStepByKernelAndByWhatItIsFor) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"bnnet:4", "mlp:4", "--amp-level=O2", "--dtype=bf16", "--loss-scale=dynamic", "--profile",
                          "--threads=1", "--steps=5", "--warmup=1", "--json=" + folder.File("profile.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("bnnet, batch 4, O2 bf16, loss scale dynamic, 1 thread, 5 steps"));
  EXPECT_THAT(result.output, ContainsRegex("\ncheck +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+%"));
  EXPECT_THAT(result.output, ContainsRegex("\ncompute: [a-z_0-9, ]+ +[0-9]+ +[0-9.]+"));
  EXPECT_THAT(result.output, ContainsRegex("loss scale, overflow check and skip: [0-9.]+ % of the step's kernels"));
  const nlohmann::json profiles = ReadJson(folder.File("profile.json"))["profiles"];
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[1]["model"], "mlp");
  const nlohmann::json& profile = profiles[0];
  EXPECT_EQ(profile["steps"], 5);
  for (const char* purpose : {"compute", "scale", "check", "update"}) {
    EXPECT_GT(profile["purposes"][purpose]["median"], 0) << purpose;
    EXPECT_GT(profile["purposes"][purpose]["share"], 0) << purpose;
  }
  std::size_t kernels = 0, by_purpose = 0;
  bool region = false;
  for (const nlohmann::json& kernel : profile["kernels"]) {
    kernels += kernel["kernels"].get<std::size_t>();
    region |= kernel["name"].get<std::string>().find(", ") != std::string::npos;
    EXPECT_EQ(kernel["name"] == "all_finite", kernel["for"] == "check");
  }
  EXPECT_TRUE(region) << "a fused region has the names of its operations";
  for (const auto& purpose : profile["purposes"].items()) by_purpose += purpose.value()["kernels"].get<std::size_t>();
  EXPECT_EQ(kernels, by_purpose);
  EXPECT_LE(profile["loss_scaling"]["median"], profile["step"]["median"]);
}

TEST(MpcBench, ProfilesCountMatrixWorkBesideTheProcessorsRate) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5:4", "--profile", "--threads=1", "--steps=3", "--warmup=0",
                                                "--json=" + folder.File("profile.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, ContainsRegex("\ncompute: conv2d_grad_weight +2 .*% +[0-9.]+\n"));
  EXPECT_THAT(result.output, ContainsRegex("matrix work: 0.01 GFLOP in [0-9.]+ ms, [0-9.]+ GFLOP/s; multiply-adds"));
  const nlohmann::json profile = ReadJson(folder.File("profile.json"))["profiles"][0];
  // Forward, gradients of weights, and of inputs but the images.
  const double conv1 = 2.0 * 28 * 28 * 6 * 25, conv2 = 2.0 * 10 * 10 * 16 * 6 * 25;
  const double dense = 2.0 * (400 * 120 + 120 * 84 + 84 * 10);
  EXPECT_EQ(profile["matrix_work"]["flops"], 4 * (2 * conv1 + 3 * conv2 + 3 * dense));
  EXPECT_GT(profile["matrix_work"]["limit_flops_a_second"], 1e9);
  double flops = 0;
  for (const nlohmann::json& kernel : profile["kernels"]) {
    flops += kernel.value("flops", 0.0);
    EXPECT_EQ(kernel.contains("flops"),
              kernel["name"].get<std::string>().find("conv2d") == 0 || kernel["name"] == "matmul")
        << kernel["name"];
  }
  EXPECT_EQ(flops, profile["matrix_work"]["flops"]);
}

TEST(MpcBench, AStepWithoutALossScaleHasNothingForIt) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"mlp:2", "--profile", "--threads=1", "--steps=3", "--warmup=0",
                                                "--json=" + folder.File("profile.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json profile = ReadJson(folder.File("profile.json"))["profiles"][0];
  EXPECT_EQ(profile["loss_scaling"]["kernels"], 0);
  EXPECT_EQ(profile["loss_scaling"]["share"], 0);
  EXPECT_FALSE(profile["purposes"].contains("check"));
}

TEST(MpcBench, RefusesBadCommandLines) {
  EXPECT_EQ(RunTool(MPC_BENCH, {}).exit_code, 2);
  const ToolResult flag = RunTool(MPC_BENCH, {"lenet5", "--step=3"});
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.error, HasSubstr("unknown flag '--step'; accepted: --batch"));
  const ToolResult peer = RunTool(MPC_BENCH, {"faint", "--peer=torch"});
  EXPECT_EQ(peer.exit_code, 2);
  EXPECT_THAT(peer.error, HasSubstr("knows bnnet, gpt2, gpt2-tiny, lenet5, mlp, resnet18"));
  EXPECT_THAT(peer.error, HasSubstr("only, not faint"));
  const ToolResult unknown = RunTool(MPC_BENCH, {"lenet5", "--peer=torch,jax"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.error, HasSubstr("'jax' is not one of torch, torch-compile, "));
  const ToolResult same = RunTool(MPC_BENCH, {"lenet5", "--peer=mpc-f32"});
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_THAT(same.error, HasSubstr("--peer=mpc-f32 and --amp-level=O0 would measure the same step twice"));
  const ToolResult unfused = RunTool(MPC_BENCH, {"lenet5", "--peer=mpc-unfused", "--fusion=false"});
  EXPECT_EQ(unfused.exit_code, 2);
  EXPECT_THAT(unfused.error, HasSubstr("--peer=mpc-unfused and --fusion=false would measure the same step twice"));
  const ToolResult profiled = RunTool(MPC_BENCH, {"lenet5", "--peer=torch", "--profile"});
  EXPECT_EQ(profiled.exit_code, 2);
  EXPECT_THAT(profiled.error, HasSubstr("--profile times instructions of mpc's own step, without --peer"));
  const ToolResult started = RunTool(MPC_BENCH, {"lenet5", "--start=unwritten", "--profile"});
  EXPECT_EQ(started.exit_code, 2);
  EXPECT_THAT(started.error, HasSubstr("--profile times instructions of mpc's own step, without --start"));
  const ToolResult both = RunTool(MPC_BENCH, {"--op=matmul", "--profile"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.error, HasSubstr("--profile is of networks, --op of operations"));
  const ToolResult captured = RunTool(MPC_BENCH, {"lenet5", "--peer=torch-graph"});
  EXPECT_EQ(captured.exit_code, 2);
  EXPECT_THAT(captured.error, HasSubstr("with --device=cuda, not of lenet5 with --device=cpu"));
  const ToolResult batches = RunTool(MPC_BENCH, {"lenet5", "--batch=8,none"});
  EXPECT_EQ(batches.exit_code, 2);
  EXPECT_THAT(batches.error, HasSubstr("'8,none' is no list of whole numbers"));
  const ToolResult batch = RunTool(MPC_BENCH, {"lenet5:0"});
  EXPECT_EQ(batch.exit_code, 2);
  EXPECT_THAT(batch.error, HasSubstr("the batch size of 'lenet5:0'"));
  const ToolResult size = RunTool(MPC_BENCH, {"lenet5", "mlp", "--width=8"});
  EXPECT_EQ(size.exit_code, 2);
  EXPECT_THAT(size.error, HasSubstr("width = 8: lenet5 reads no tokens; gpt2 and gpt2-tiny do"));
  const ToolResult heads = RunTool(MPC_BENCH, {"gpt2", "--width=100"});
  EXPECT_EQ(heads.exit_code, 2);
  EXPECT_THAT(heads.error, HasSubstr("width = 100"));
  const ToolResult scale = RunTool(MPC_BENCH, {"lenet5", "--loss-scale=big", "--amp-level=O2"});
  EXPECT_EQ(scale.exit_code, 2);
  EXPECT_THAT(scale.error, HasSubstr("big"));
  const ToolResult start = RunTool(MPC_BENCH, {"lenet5", "mlp", "--start=here"});
  EXPECT_EQ(start.exit_code, 2);
  EXPECT_THAT(start.error, HasSubstr("--start writes one row, the command line asks for 2"));
  const ToolResult nowhere = RunTool(MPC_BENCH, {"lenet5", "--svg=/nowhere/chart.svg"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.error, HasSubstr("there is no folder '/nowhere'"));
  const ToolResult device = RunTool(MPC_BENCH, {"lenet5", "--steps-per-launch=4"});
  EXPECT_EQ(device.exit_code, 2);
  EXPECT_THAT(device.error, HasSubstr("--steps-per-launch=4 and --device=cpu contradict"));
}

}  // namespace
}  // namespace mpc::tools
