// mpc-train --trace: what ran when, and that looking changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::HasSubstr;

// Times are written in whole nanoseconds, as decimal fractions of microseconds.
constexpr double kRounding = 1e-3;

std::vector<std::string> Arguments(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {model,         "--data=synthetic", "--steps=5",
                                        "--threads=1", "--batch-size=4",   "--amp-level=O2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The complete events of a row, those that begin first and last longest in front.
std::vector<nlohmann::json> EventsOfRow(const nlohmann::json& trace, int row) {
  std::vector<nlohmann::json> events;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["tid"] == row) events.push_back(event);
  }
  std::stable_sort(events.begin(), events.end(), [](const nlohmann::json& a, const nlohmann::json& b) {
    return a["ts"] < b["ts"] || (a["ts"] == b["ts"] && a["dur"] > b["dur"]);
  });
  return events;
}

/// Expects every event to lie inside the one around it, or behind the one before it.
void ExpectNested(const std::vector<nlohmann::json>& events) {
  std::vector<const nlohmann::json*> open;
  const auto end_of = [](const nlohmann::json& event) {
    return event["ts"].get<double>() + event["dur"].get<double>();
  };
  for (const nlohmann::json& event : events) {
    EXPECT_GE(event["ts"], 0);
    EXPECT_GE(event["dur"], 0);
    while (!open.empty() && end_of(*open.back()) <= event["ts"].get<double>() + kRounding) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(end_of(event), end_of(*open.back()) + kRounding) << event << " in " << *open.back();
    }
    open.push_back(&event);
  }
}

TEST(MpcTrainTrace, HoldsEveryInstructionOfTheChosenStepsOnce) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_TRAIN, Arguments("lenet5", {"--trace=" + folder.File("trace.json"), "--trace-steps=2-3"}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json trace = ReadJson(folder.File("trace.json"));
  ASSERT_TRUE(trace["traceEvents"].is_array());

  std::map<int, std::string> rows;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
  }
  ASSERT_EQ(rows, (std::map<int, std::string>{{1, "instructions"}, {2, "host"}}));
  const std::vector<nlohmann::json> instructions = EventsOfRow(trace, 1);
  const std::vector<nlohmann::json> host = EventsOfRow(trace, 2);
  ExpectNested(instructions);
  ExpectNested(host);

  std::map<int, std::multiset<int>> seen;  // instructions by step
  std::map<int, std::string> kernels;
  std::set<std::string> parts;
  bool has_convolution = false;
  for (const nlohmann::json& event : instructions) {
    const nlohmann::json& arguments = event["args"];
    if (!arguments.contains("kernel")) continue;
    seen[arguments["step"]].insert(arguments["instruction"].get<int>());
    kernels[arguments["instruction"].get<int>()] = arguments["kernel"].get<std::string>();
    parts.insert(event["cat"].get<std::string>());
    if (arguments["kernel"] == "conv2d" && arguments["cell"] == "lenet5/conv1") {
      has_convolution = true;
      EXPECT_EQ(event["cat"], "forward");
      EXPECT_EQ(arguments["inputs"][0], "tensor<4x32x32x1xf16>");
      // f16 images and filters in, f16 images out.
      // Without AVX2 the filters are packed: the 6 stand in 16 places.
      const int filters = __builtin_cpu_supports("avx2") != 0 ? 6 : 16;
      EXPECT_EQ(arguments["bytes_read"], 2 * (4 * 32 * 32 + filters * 5 * 5));
      EXPECT_EQ(arguments["bytes_written"], 2 * (4 * 6 * 28 * 28));
    }
    if (arguments["kernel"] == "momentum") {
      EXPECT_EQ(event["cat"], "update");
    }
    if (arguments["kernel"] == "conv2d_grad_weight") {
      EXPECT_EQ(event["cat"], "backward");
    }
  }
  EXPECT_TRUE(has_convolution);
  EXPECT_EQ(parts, (std::set<std::string>{"forward", "backward", "update"}));
  ASSERT_EQ(seen.size(), 2u);
  ASSERT_TRUE(seen.count(2) == 1 && seen.count(3) == 1);
  EXPECT_EQ(seen[2], seen[3]);
  // Updates that share a call have one time, that of the first.
  int expected = 0;
  for (const int position : seen[2]) {
    EXPECT_GE(position, expected) << "twice";
    if (position > expected) {
      EXPECT_EQ(kernels[expected - 1], "momentum") << position;
    }
    expected = position + 1;
  }

  std::vector<std::string> names;
  for (const nlohmann::json& event : host) names.push_back(event["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"step 2", "data wait", "upload", "step", "records", "step 3", "data wait",
                                             "upload", "step", "records"}));
}

TEST(MpcTrainTrace, LeavesTheBitsOfARunWithoutOne) {
  const TemporaryFolder folder;
  for (const std::string model : {"lenet5", "gpt2-tiny"}) {
    SCOPED_TRACE(model);
    const std::string plain = folder.File(model + "-plain"), traced = folder.File(model + "-traced");
    ASSERT_EQ(RunTool(MPC_TRAIN, Arguments(model, {"--save=" + plain})).exit_code, 0);
    ASSERT_EQ(RunTool(MPC_TRAIN, Arguments(model, {"--save=" + traced, "--trace=" + folder.File("trace.json"),
                                                   "--trace-steps=1-4"}))
                  .exit_code,
              0);
    EXPECT_NE(ReadFile(plain), "");
    EXPECT_EQ(ReadFile(plain), ReadFile(traced));
  }
}

TEST(MpcTrainTrace, OfStepsThatNeverCameIsAnError) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_TRAIN, Arguments("lenet5", {"--trace=" + folder.File("trace.json"), "--trace-steps=6-8"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("--trace-steps=6-8, but the run had 5 steps"));
  EXPECT_TRUE(folder.Content().empty());
}

TEST(MpcTrainTrace, OfAStepWithSeveralOptimizersTellsItsParts) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_TRAIN, {"dcgan", "--epochs=1", "--batch-size=512",
                                                "--trace=" + folder.File("trace.json"), "--trace-steps=2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  std::vector<std::string> parts;
  for (const nlohmann::json& event : EventsOfRow(ReadJson(folder.File("trace.json")), 1)) {
    if (event["cat"] == "part") parts.push_back(event["name"]);
  }
  // The discriminator judges again after it has learnt.
  EXPECT_GE(std::count(parts.begin(), parts.end(), "update"), 2);
  EXPECT_GE(std::count(parts.begin(), parts.end(), "forward"), 2);
  EXPECT_EQ(parts.front(), "forward");
  EXPECT_EQ(parts.back(), "update");
}

TEST(MpcTrainSynthetic, NetworksThatTakeNoDigitsTrainOnTheirShapes) {
  const TemporaryFolder folder;
  const ToolResult result = RunTool(MPC_TRAIN, {"gpt2-tiny", "--steps=3", "--batch-size=2", "--tokens=16",
                                                "--summary=" + folder.File("summary.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("epoch 1/1: loss "));
  EXPECT_THAT(result.output, HasSubstr("3 steps in "));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("test accuracy")));
  const nlohmann::json summary = ReadJson(folder.File("summary.json"));
  EXPECT_EQ(summary["options"]["data"], "synthetic");
  EXPECT_EQ(summary["steps"], 3);
  EXPECT_TRUE(summary["test_accuracy"].is_null());
}

}  // namespace
}  // namespace mpc::tools
