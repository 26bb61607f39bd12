// mpc-train from outside: the frontier of precision, and training with a precision that it chose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/tools/refusal.h"
#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class BadFrontierFlags : public testing::TestWithParam<BadUsage> {};

TEST_P(BadFrontierFlags, AreRefusedBeforeAnythingBegins) {
  ExpectRefused(RunTool(MPC_TRAIN, GetParam().arguments), kBadUsage, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    MpcTrain, BadFrontierFlags,
    testing::Values(
        BadUsage{{"lenet5", "--precision-frontier=0"}, {"--precision-frontier", "'0'", "at least 1"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--max-gradient-error=0"}, {"number above 0", "'0'"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--max-gradient-error=small"}, {"number above 0", "'small'"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--max-loss-error=-1"}, {"--max-loss-error", "above 0", "'-1'"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--max-loss-error=inf"}, {"number above 0", "'inf'"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--frontier-error=both"}, {"gradient or loss", "'both'"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--frontier-batches=0"},
                 {"--frontier-batches", "'0'", "at least 1"}},
        BadUsage{{"lenet5", "--frontier-batches=8"}, {"--frontier-batches needs --precision-frontier=K"}},
        BadUsage{{"lenet5", "--max-loss-error=1"}, {"--max-loss-error needs --precision-frontier=K"}},
        BadUsage{{"lenet5", "--frontier-error=loss"}, {"--frontier-error needs --precision-frontier=K"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--frontier-rates=fast"}, {"device or default", "'fast'"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--frontier-errors=no"}, {"estimated or measured", "'no'"}},
        BadUsage{{"lenet5", "--max-gradient-error=1"}, {"--max-gradient-error needs --precision-frontier=K"}},
        BadUsage{{"lenet5", "--frontier-rates=default"}, {"--frontier-rates needs --precision-frontier=K"}},
        BadUsage{{"lenet5", "--frontier-errors=measured"}, {"--frontier-errors needs --precision-frontier=K"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--save-precision=f"},
                 {"needs --max-gradient-error=E or --max-loss-error=E"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--precision=f"}, {"contradict", "--save-precision=FILE"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--amp-level=O2"}, {"for --amp-level=auto, not O2"}},
        BadUsage{{"lenet5", "--precision=f", "--amp-level=O1"}, {"--precision is for --amp-level=auto, not O1"}},
        BadUsage{{"lenet5", "--precision=f", "--resume=r"}, {"--precision and --resume contradict"}},
        BadUsage{{"lenet5", "--precision-frontier=3", "--epochs=0"},
                 {"--precision-frontier and --epochs=0 contradict"}},
        BadUsage{{"dcgan", "--precision-frontier=3"}, {"dcgan takes no --precision-frontier"}}));

TEST(MpcTrainFrontier, RefusesWhatOnlyTrainingReads) {
  for (const char* flag : {"--save=f", "--plot=f.svg", "--record-hashes=f", "--summary=f", "--trace=f", "--capsule=f",
                           "--profile-precision", "--timing", "--report", "--report-html=f", "--diagnose-overflow",
                           "--max-consecutive-skips=3", "--epochs=2", "--accumulation=2"}) {
    const std::string name = std::string(flag).substr(0, std::string(flag).find('='));
    ExpectRefused(RunTool(MPC_TRAIN, {"lenet5", "--precision-frontier=3", flag}), kBadUsage,
                  {"--precision-frontier trains nothing and takes no " + name});
  }
  ExpectRefused(RunTool(MPC_TRAIN, {"gpt2-tiny", "--data=text", "--precision-frontier=3", "--sample=9"}), kBadUsage,
                {"--precision-frontier trains nothing and takes no --sample"});
}

ToolResult Train(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--threads=1", "--amp-verbosity=0", "--dtype=bf16"});
  return RunTool(MPC_TRAIN, arguments);
}

TEST(MpcTrainFrontier, AChosenPrecisionIsWrittenAndTrainedWithByItsOwnNetworkAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.File("gpt2.precision");
  const ToolResult found = Train({"gpt2-tiny", "--data=synthetic", "--batch-size=2", "--frontier-rates=default",
                                  "--precision-frontier=2", "--frontier-batches=2", "--frontier-error=loss",
                                  "--max-gradient-error=1e-6", "--max-loss-error=1e-7", "--save-precision=" + path});
  ASSERT_EQ(found.exit_code, 0) << found.error;
  EXPECT_THAT(found.output, ContainsRegex("45 open slots, [0-9]+ corners, [12] of them run\n"));
  EXPECT_THAT(found.output, ContainsRegex("\n    0 .* 0.00e\\+00  chosen\n"));
  const std::string text = ReadFile(path);
  EXPECT_THAT(text, HasSubstr("mpc precision 1\nnetwork: Gpt2\nlow type: bf16\nchecksum: "));

  const std::vector<std::string> training = {"gpt2-tiny", "--data=synthetic", "--batch-size=2", "--steps=2"};
  const auto with = [&](const std::string& file, std::vector<std::string> arguments) {
    arguments.push_back("--precision=" + file);
    return Train(arguments);
  };
  const ToolResult trained = with(path, training);
  EXPECT_EQ(trained.exit_code, 0) << trained.error;
  ExpectRefused(with(path, {"mlp", "--epochs=1"}), kFailure, {path, "of the network Gpt2, this one is Mlp"});
  const std::string damaged = folder.File("damaged.precision");
  WriteFile(damaged, absl::StrReplaceAll(text, {{"f32 | gpt2/blocks/0#add.0", "bf16 | gpt2/blocks/0#add.0"}}));
  ExpectRefused(with(damaged, training), kFailure, {damaged, "checksum"});
  ExpectRefused(with(folder.File("absent"), training), kFailure, {"absent", "No such file"});
}

}  // namespace
}  // namespace mpc::tools
