// mpc-bench --op from outside: small graphs of operations beside the machine's limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/refusal.h"
#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

struct Family {
  std::string graphs;
  std::string shape;
};

class MpcBenchOps : public testing::TestWithParam<Family> {};

TEST_P(MpcBenchOps, AreMeasuredInF32AndInALowType) {
  for (const std::string dtype : {"f32", "bf16"}) {
    SCOPED_TRACE(dtype);
    const ToolResult result = RunTool(MPC_BENCH, {"--op=" + GetParam().graphs, "--shape=" + GetParam().shape,
                                                  "--dtype=" + dtype, "--threads=1", "--seconds=0", "--buffers=1"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr(dtype + ", 1 thread, fused regions; "));
    EXPECT_THAT(result.output, ContainsRegex("\ncopy: [0-9.]+ GB/s"));
    EXPECT_THAT(result.output, HasSubstr(" " + GetParam().shape + " "));
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryGraph, MpcBenchOps,
    testing::Values(
        Family{"matmul,matmul_grad_weight,dense_relu,dense_gelu,dense_gelu_forward,dense_gelu_apart", "8x16x24"},
        Family{"conv2d,conv2d_gelu_forward,conv2d_gelu_apart,conv2d_grad_input,conv2d_grad_weight", "2x6x6x4x8x3"},
        Family{"attention,attention_grad", "2x2x8x4"},
        Family{"relu,exp,tanh,gelu,add,add_relu,gelu_bias,gelu_grad,relu_grad,sum_n,dropout,cast,transpose", "9x17"},
        Family{"softmax,layer_norm,layer_norm_grad,add_layer_norm,softmax_cross_entropy,bias_grad", "9x17"},
        Family{"batch_norm,batch_norm_grad,batch_norm_relu,batch_norm_relu_grad", "2x3x3x5"},
        Family{"all_finite,global_norm,momentum,unscale_momentum,unscale_momentum_apart,adamw", "100x3"}));

TEST(MpcBenchOp, WritesRatesAndFractionsOfTheLimitAsJson) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_BENCH, {"--op=add_relu,matmul,momentum", "--threads=1", "--seconds=0",
                                                "--buffers=2", "--json=" + folder.File("ops.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json json = ReadJson(folder.File("ops.json"));
  EXPECT_GT(json["limits"]["copy_bytes_per_second"]["median"], 0);
  EXPECT_GT(json["limits"]["matmul_flops_per_second"]["median"], 0);
  EXPECT_GT(json["limits"]["last_level_cache_bytes"], 0);
  ASSERT_EQ(json["rows"].size(), 3u);
  for (const nlohmann::json& row : json["rows"]) {
    EXPECT_GT(row["seconds"]["median"], 0);
    EXPECT_GT(row["fraction"]["median"], 0);
    EXPECT_EQ(row["sets"], 2);
  }
  const nlohmann::json& added = json["rows"][0];
  EXPECT_EQ(added["limit"], "copy");
  EXPECT_TRUE(added["flops_per_second"].is_null());
  // Two operands and a result.
  const double bytes = 3.0 * 4 * 4096 * 4096;
  EXPECT_DOUBLE_EQ(added["bytes_per_second"].get<double>() * added["seconds"]["median"].get<double>(), bytes);
  const nlohmann::json& product = json["rows"][1];
  EXPECT_EQ(product["limit"], "compute");
  EXPECT_DOUBLE_EQ(product["flops_per_second"].get<double>() * product["seconds"]["median"].get<double>(),
                   2.0 * 1024 * 1024 * 1024);
  // Parameter and velocity are read and written, the gradient is read.
  const nlohmann::json& update = json["rows"][2];
  EXPECT_DOUBLE_EQ(update["bytes_per_second"].get<double>() * update["seconds"]["median"].get<double>(),
                   5.0 * 4 * (1 << 24));
}

TEST(MpcBenchOp, MeasuresEachKernelThatTuningChoosesAmong) {
  const TemporaryFolder folder;
  const auto rows_of = [&](const std::string& op, const std::string& shape) {
    const ToolResult result = RunTool(MPC_BENCH, {"--op=" + op, "--shape=" + shape, "--choices", "--threads=1",
                                                  "--seconds=0", "--buffers=1", "--json=" + folder.File("ops.json")});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    std::vector<std::string> rows;
    const nlohmann::json json = ReadJson(folder.File("ops.json"));
    for (const nlohmann::json& row : json["rows"]) {
      const std::string op_of_row = row["op"];
      rows.push_back(row["choice"].is_null() ? op_of_row : op_of_row + ": " + row["choice"].get<std::string>());
      EXPECT_THAT(result.output, HasSubstr("\n" + rows.back() + " "));
    }
    return rows;
  };
  EXPECT_THAT(rows_of("matmul", "32x64x48"), testing::IsSupersetOf({"matmul: f32 plain", "matmul: f32 blocked"}));
  // The weight is packed for each.
  EXPECT_THAT(rows_of("conv2d", "2x6x6x32x16x3"), testing::IsSupersetOf({"conv2d: f32 nhwc", "conv2d: f32 blocked"}));
  EXPECT_THAT(rows_of("relu", "32x64"), testing::ElementsAre("relu"));
  ExpectRefused(RunTool(MPC_BENCH, {"lenet5", "--choices"}), kBadUsage, {"--choices", "--op=NAME"});
}

}  // namespace
}  // namespace mpc::tools
