// mpc-train from outside: what it says about overflows and about the exponents that a network needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"
#include "tools/support/exit_code.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

ToolResult Train(std::vector<std::string> arguments) {
  arguments.push_back("--threads=1");
  return RunTool(MPC_TRAIN, arguments);
}

/// Seven of eight gradient elements of this network are zero in f16 without a loss scale.
std::vector<std::string> Faint(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"faint", "--amp-level=O2", "--lr=300000", "--epochs=1"});
  return flags;
}

TEST(MpcTrainInspection, DiagnoseOverflowNamesTheFirstValueThatIsNotFinite) {
  const std::vector<std::string> flags = {"mlp", "--amp-level=O2", "--loss-scale=dynamic", "--epochs=1"};
  const ToolResult plain = Train(flags);
  std::vector<std::string> diagnosing = flags;
  diagnosing.push_back("--diagnose-overflow");
  const ToolResult diagnosed = Train(diagnosing);
  ASSERT_EQ(diagnosed.exit_code, 0) << diagnosed.error;
  EXPECT_THAT(
      diagnosed.error,
      ContainsRegex("loss scale 16777216 -> 8388608; step skipped\nfirst value that is not finite at loss scale "
                    "16777216: backward pass: [a-z_]+ for '[a-z0-9/]+' .f16., [0-9]+ of [0-9]+ elements\n"
                    "largest finite magnitude before it: [0-9.]+"));
  EXPECT_THAT(plain.error, Not(HasSubstr("first value that is not finite")));
}

TEST(MpcTrainInspection, AsManySkippedStepsInARowAsAreAllowedEndTheRun) {
  for (const char* skips : {"1", "3"}) {
    const ToolResult result = Train({"mlp", "--amp-level=O2", "--loss-scale=16777216", "--epochs=1",
                                     std::string("--max-consecutive-skips=") + skips});
    EXPECT_EQ(result.exit_code, kFailure);
    EXPECT_THAT(result.error,
                HasSubstr("step " + std::string(skips) + ": " + skips + " steps in a row were not finite"));
  }
}

TEST(MpcTrainInspection, TheSummaryWritesTheLossScaleInFull) {
  const ToolResult result = Train(Faint({"--loss-scale=4194304"}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("0 skipped, loss scale 4194304\n"));
}

TEST(MpcTrainInspection, ProfilePrecisionSaysWhatF16LosesAndWhichScaleHelps) {
  const TemporaryFolder folder;
  const ToolResult result = Train(Faint({"--loss-scale=1", "--profile-precision=" + folder.File("faint.json")}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("precision profile for f16: loss scale 1, best 16777216\n"));
  EXPECT_THAT(result.output, ContainsRegex("\nmlp/fc1 +gradients +[0-9]+ +[0-9.e-]+ +[0-9.]+ [|] +9[0-9].[0-9]+ "));
  const nlohmann::json profile = ReadJson(folder.File("faint.json"));
  ASSERT_TRUE(profile.is_object());
  EXPECT_EQ(profile["low"], "f16");
  EXPECT_EQ(profile["current_scale"], 1);
  bool found = false;
  for (const nlohmann::json& row : profile["rows"]) {
    if (row["cell"] != "mlp/fc1" || row["direction"] != "gradients") continue;
    found = true;
    EXPECT_GT(row["current"]["lost"], 0.5);
    EXPECT_LT(row["best"]["lost"], 0.01);
  }
  EXPECT_TRUE(found);
}

TEST(MpcTrainInspection, ProfilePrecisionWritesTablesAndPicturesByTheirEnding) {
  const TemporaryFolder folder;
  ASSERT_EQ(Train(Faint({"--profile-precision=" + folder.File("table.txt")})).exit_code, 0);
  EXPECT_THAT(ReadFile(folder.File("table.txt")), HasSubstr("precision profile for f16"));
  ASSERT_EQ(Train(Faint({"--profile-precision=" + folder.File("picture.svg")})).exit_code, 0);
  EXPECT_THAT(ReadFile(folder.File("picture.svg")), HasSubstr("<svg"));
  const ToolResult bad = Train(Faint({"--profile-precision=" + folder.File("table.pdf")}));
  EXPECT_NE(bad.exit_code, 0);
  EXPECT_THAT(bad.error, HasSubstr("table.pdf"));
}

TEST(MpcTrainInspection, ProfilingDoesNotChangeTraining) {
  const TemporaryFolder folder;
  ASSERT_EQ(Train(Faint({"--save=" + folder.File("plain")})).exit_code, 0);
  ASSERT_EQ(Train(Faint({"--save=" + folder.File("profiled"), "--profile-precision"})).exit_code, 0);
  EXPECT_GT(ReadFile(folder.File("plain")).size(), 1000u);
  EXPECT_TRUE(ReadFile(folder.File("plain")) == ReadFile(folder.File("profiled")));
}

// At the best scale this network loses nothing, so that no Cell would be kept: the profile is made to say one is lossy.
TEST(MpcTrainInspection, AmpProfileKeepsLossyCellsInF32) {
  const TemporaryFolder folder;
  const std::string path = folder.File("profile.json");
  ASSERT_EQ(Train(Faint({"--profile-precision=" + path})).exit_code, 0);
  EXPECT_THAT(Train(Faint({"--amp-profile=" + path, "--report"})).output, Not(HasSubstr("list entry")));
  nlohmann::json profile = ReadJson(path);
  for (nlohmann::json& row : profile["rows"]) {
    if (row["cell"] == "mlp/fc2") row["best"]["lost"] = 0.02;
  }
  WriteFile(path, profile.dump());
  const ToolResult kept = Train(Faint({"--amp-profile=" + path, "--report"}));
  ASSERT_EQ(kept.exit_code, 0) << kept.error;
  EXPECT_THAT(kept.output, ContainsRegex("matmul +mlp/fc1 +f16 "));
  EXPECT_THAT(kept.output, ContainsRegex("matmul +mlp/fc2 +f32 +f32 +f32 +list entry 'mlp/fc2' .deny."));

  const ToolResult other =
      Train({"faint", "--data=synthetic", "--amp-level=O2", "--dtype=bf16", "--amp-profile=" + path});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.error, HasSubstr("--amp-profile: " + path + " is a profile of f16, and the low type here is bf16"));

  WriteFile(path, "{}");
  const ToolResult bad = Train(Faint({"--amp-profile=" + path}));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.error, HasSubstr("is no precision profile: it has no \"rows\""));
}

TEST(MpcTrainInspection, CheckPrecisionEndsARunOfAnotherPrecisionBeforeItTrains) {
  const TemporaryFolder folder;
  const std::string lock = folder.File("precision.lock");
  const ToolResult written = Train({"lenet5", "--amp-level=O2", "--epochs=0", "--lock-precision=" + lock});
  ASSERT_EQ(written.exit_code, 0) << written.error;
  EXPECT_THAT(ReadFile(lock), HasSubstr("\nnetwork: LeNet5\nstep: train_step\n"));
  const std::string check = "--check-precision=" + lock;
  EXPECT_EQ(Train({"lenet5", "--amp-level=O2", "--epochs=0", "--batch-size=100", check}).exit_code, 0);
  const ToolResult changed = Train({"lenet5", "--amp-level=O2", "--epochs=1", "--deny-add=lenet5/fc1", check});
  EXPECT_EQ(changed.exit_code, kFailure);
  EXPECT_THAT(changed.error, HasSubstr("the precision of LeNet5 at O2 is not that of '" + lock + "'"));
  EXPECT_THAT(changed.error, ContainsRegex("lenet5/fc1 +matmul +f16 -> f16 +f32 -> f32 .*list entry 'lenet5/fc1'"));
  EXPECT_THAT(changed.output, Not(HasSubstr("epoch")));
  const ToolResult other = Train({"mlp", "--amp-level=O2", "--epochs=0", check});
  EXPECT_EQ(other.exit_code, kFailure);
  EXPECT_THAT(other.error, HasSubstr("it is the lock of another network: of LeNet5, and it is compared with Mlp"));
  EXPECT_EQ(Train({"dcgan", check}).exit_code, kBadUsage);
}

}  // namespace
}  // namespace mpc::tools
