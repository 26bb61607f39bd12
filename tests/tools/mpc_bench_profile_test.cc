// mpc-bench --profile from outside: the kernels of a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(MpcBenchProfile, TimesTheStepByKernelAndByWhatItIsFor) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_BENCH, {"bnnet:4", "mlp:4", "--amp-level=O2", "--dtype=bf16", "--loss-scale=dynamic", "--profile",
                          "--threads=1", "--steps=5", "--warmup=1", "--json=" + folder.File("profile.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("bnnet, batch 4, O2 bf16, loss scale dynamic, 1 thread, 5 steps"));
  EXPECT_THAT(result.output, ContainsRegex("\ncheck +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+%"));
  EXPECT_THAT(result.output, ContainsRegex("\nbackward: [a-z_0-9, ]+ +[0-9]+ +[0-9.]+"));
  EXPECT_THAT(result.output, ContainsRegex("loss scale, overflow check and skip: [0-9.]+ % of the step's kernels"));
  const nlohmann::json profiles = ReadJson(folder.File("profile.json"))["profiles"];
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[1]["model"], "mlp");
  const nlohmann::json& profile = profiles[0];
  EXPECT_EQ(profile["steps"], 5);
  for (const char* phase : {"forward", "backward", "scale", "check", "update"}) {
    EXPECT_GT(profile["phases"][phase]["median"], 0) << phase;
    EXPECT_GT(profile["phases"][phase]["share"], 0) << phase;
  }
  std::size_t kernels = 0, by_phase = 0;
  bool region = false;
  for (const nlohmann::json& kernel : profile["kernels"]) {
    kernels += kernel["kernels"].get<std::size_t>();
    region |= kernel["name"].get<std::string>().find(", ") != std::string::npos;
    EXPECT_EQ(kernel["name"] == "all_finite", kernel["for"] == "check");
  }
  EXPECT_TRUE(region) << "a fused region has the names of its operations";
  for (const auto& phase : profile["phases"].items()) by_phase += phase.value()["kernels"].get<std::size_t>();
  EXPECT_EQ(kernels, by_phase);
  EXPECT_LE(profile["loss_scaling"]["median"], profile["step"]["median"]);
}

TEST(MpcBenchProfile, CountsMatrixWorkBesideTheProcessorsRate) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"lenet5:4", "--profile", "--threads=1", "--steps=3", "--warmup=0",
                                                "--json=" + folder.File("profile.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, ContainsRegex("\nbackward: conv2d_grad_weight +2 .*% +[0-9.]+\n"));
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

TEST(MpcBenchProfile, OfAStepWithoutALossScaleHasNothingForIt) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"mlp:2", "--profile", "--threads=1", "--steps=3", "--warmup=0",
                                                "--json=" + folder.File("profile.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json profile = ReadJson(folder.File("profile.json"))["profiles"][0];
  EXPECT_EQ(profile["loss_scaling"]["kernels"], 0);
  EXPECT_EQ(profile["loss_scaling"]["share"], 0);
  EXPECT_FALSE(profile["phases"].contains("check"));
}

}  // namespace
}  // namespace mpc::tools
