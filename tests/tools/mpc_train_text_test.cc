// mpc-train on text: a language model of bytes, its validation, its sample.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/tools/refusal.h"
#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// The small network, on one thread: the machine may be busy.
ToolResult Train(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"gpt2-tiny", "--data=text", "--threads=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunTool(MPC_TRAIN, arguments);
}

/// Nats a byte of the last tenth of a file: what the best model that reads no context pays there. Whoever pays less
/// reads it.
double EntropyOfValidation(const std::string& path) {
  const std::string text = ReadFile(path);
  const std::string part = text.substr(text.size() * 9 / 10);
  std::array<double, 256> counts{};
  for (char byte : part) counts[static_cast<unsigned char>(byte)] += 1;
  double entropy = 0;
  for (double count : counts) {
    const double share = count / static_cast<double>(part.size());
    if (count > 0) entropy -= share * std::log(share);
  }
  return entropy;
}

class EveryPrecision : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(EveryPrecision, LearnsToReadContextFromTheSonnets) {
  const TemporaryFolder folder;
  std::vector<std::string> flags = {"--steps=200", "--summary=" + folder.File("summary.json")};
  flags.insert(flags.end(), GetParam().begin(), GetParam().end());
  const ToolResult result = Train(flags);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, ContainsRegex("step 40/200: loss [0-9.]+, validation loss [0-9.]+\n"));
  EXPECT_THAT(result.output, ContainsRegex("epoch 1/1: loss [0-9.]+, validation loss [0-9.]+, [0-9.]+ steps/s\n"));
  EXPECT_THAT(result.output, ContainsRegex("validation loss [0-9.]+ .[0-9.]+ bits a byte, [0-9]+ windows.\n"));
  EXPECT_THAT(result.output, HasSubstr("sample at temperature 0.8:\n"));

  const nlohmann::json summary = ReadJson(folder.File("summary.json"));
  ASSERT_EQ(summary["validations"].size(), 5u);
  EXPECT_EQ(summary["validations"][0]["step"], 40);
  EXPECT_EQ(summary["validations"][4]["step"], 200);
  EXPECT_EQ(summary["validations"][4]["loss"], summary["test_loss"]);
  EXPECT_LT(summary["validations"][4]["loss"], summary["validations"][0]["loss"]);
  EXPECT_LT(summary["test_loss"], EntropyOfValidation(MPC_SONNETS));
  EXPECT_TRUE(summary["test_accuracy"].is_null());
  // A byte that is no text is shown as its number, in several characters.
  EXPECT_GE(summary["sample"].get<std::string>().size(), 1u + 256u);
  EXPECT_EQ(summary["options"]["optimizer"], "torch-adamw");
  EXPECT_EQ(summary["options"]["clip_norm"], 1);
  EXPECT_EQ(summary["options"]["warmup_steps"], 20);
  EXPECT_EQ(summary["options"]["width"], 64);
}

INSTANTIATE_TEST_SUITE_P(Levels, EveryPrecision,
                         testing::Values(std::vector<std::string>{"--amp-level=O0"},
                                         std::vector<std::string>{"--amp-level=O1", "--dtype=bf16"},
                                         std::vector<std::string>{"--amp-level=O2", "--dtype=bf16"},
                                         std::vector<std::string>{"--amp-level=O2", "--dtype=f16",
                                                                  "--loss-scale=1024"}));

TEST(MpcTrainText, LearnsToReadContextFromAFile) {
  const char* path = std::getenv("MPC_TEXT_FILE");
  if (path == nullptr) GTEST_SKIP() << "set MPC_TEXT_FILE to a text of a megabyte or more";
  const TemporaryFolder folder;
  const ToolResult result = Train({absl::StrCat("--text-file=", path), "--steps=200", "--quiet", "--validate-every=0",
                                   "--summary=" + folder.File("summary.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_LT(ReadJson(folder.File("summary.json"))["test_loss"], EntropyOfValidation(path));
}

// Five batches are two steps and a batch, which belongs to the first step of the next epoch.
TEST(MpcTrainText, ValidationCountsStepsOfSeveralBatches) {
  const ToolResult result = Train({"--steps=5", "--epochs=2", "--accumulation=2", "--validate-every=1",
                                   "--batch-size=4", "--sample=0", "--warmup-steps=0"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, ContainsRegex("step 1/2: loss .*\nstep 2/2: loss .*\nepoch 1/2: .*\n"
                                           "step 1/3: loss .*\nstep 2/3: loss .*\nepoch 2/2: "));
  const TemporaryFolder folder;
  ASSERT_EQ(Train({"--steps=20", "--accumulation=4", "--batch-size=4", "--sample=0", "--quiet",
                   "--summary=" + folder.File("summary.json")})
                .exit_code,
            0);
  EXPECT_EQ(ReadJson(folder.File("summary.json"))["validations"].size(), 5u) << "a fifth of an epoch";
}

// A path is bytes, and the summary is UTF-8.
TEST(MpcTrainText, AnyPathStandsInTheSummary) {
  const TemporaryFolder folder;
  const std::string path = folder.File("t\xff.txt");
  WriteFile(path, std::string(3000, 'a'));
  const ToolResult result =
      Train({"--text-file=" + path, "--steps=2", "--sample=0", "--quiet", "--summary=" + folder.File("summary.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(ReadJson(folder.File("summary.json"))["options"].dump(), HasSubstr("t\xef\xbf\xbd.txt"));
}

TEST(MpcTrainText, SizesOfTheNetworkAreFlags) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_TRAIN, {"gpt2", "--data=text", "--threads=1", "--layers=1", "--width=32", "--heads=2", "--tokens=16",
                          "--steps=2", "--batch-size=4", "--sample=3", "--quiet", "--save=" + folder.File("net"),
                          "--summary=" + folder.File("summary.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json options = ReadJson(folder.File("summary.json"))["options"];
  EXPECT_EQ(options["layers"], 1);
  EXPECT_EQ(options["heads"], 2);
  EXPECT_EQ(options["tokens"], 16);
  const std::string saved = ReadFile(folder.File("net"));
  EXPECT_THAT(saved, HasSubstr("blocks.0."));
  EXPECT_THAT(saved, Not(HasSubstr("blocks.1.")));
  EXPECT_THAT(saved, AllOf(HasSubstr("[256,32]"), HasSubstr("[16,32]"))) << "the tables of bytes and of positions";
}

TEST(MpcTrainText, DropoutActsInTrainingAloneAndDrawsBySeed) {
  const TemporaryFolder folder;
  const std::string summary = folder.File("summary.json");
  const auto weights = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--steps=2", "--sample=0", "--quiet", "--save=" + folder.File("net"),
                                      "--summary=" + summary};
    flags.insert(flags.end(), more.begin(), more.end());
    const ToolResult result = Train(flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return ReadFile(folder.File("net"));
  };
  const std::string none = weights({});
  const std::string some = weights({"--dropout=0.1"});
  EXPECT_EQ(weights({"--dropout=0"}), none);
  EXPECT_NE(some, none);
  EXPECT_EQ(weights({"--dropout=0.1"}), some);
  EXPECT_EQ(ReadJson(summary)["options"]["dropout"], 0.1);

  const nlohmann::json loss = ReadJson(summary)["test_loss"];
  ASSERT_EQ(Train({"--epochs=0", "--sample=0", "--load=" + folder.File("net"), "--summary=" + summary}).exit_code, 0);
  EXPECT_EQ(ReadJson(summary)["test_loss"], loss);
}

TEST(MpcTrainText, AResumedRunGivesTheBitsOfOneThatNeverStopped) {
  const TemporaryFolder folder;
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--steps=12", "--epochs=2", "--batch-size=4", "--sample=0", "--quiet"});
    return Train(more);
  };
  ASSERT_EQ(with({"--save=" + folder.File("whole")}).exit_code, 0);
  ASSERT_EQ(with({"--save=" + folder.File("parts") + "/", "--save-every=8", "--keep=0"}).exit_code, 0);
  // In the middle of each epoch.
  for (const char* step : {"8", "16"}) {
    const ToolResult resumed =
        with({absl::StrCat("--resume=", folder.File("parts"), "/checkpoint-", step, ".safetensors"),
              "--save=" + folder.File("resumed")});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.error;
    EXPECT_TRUE(ReadFile(folder.File("whole")) == ReadFile(folder.File("resumed"))) << step;
  }
}

class Sample : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        Train({"--steps=20", "--batch-size=4", "--sample=0", "--quiet", "--save=" + folder_.File("net")}).exit_code, 0);
  }
  std::string Write(std::vector<std::string> flags) {
    flags.insert(flags.end(),
                 {"--epochs=0", "--load=" + folder_.File("net"), "--summary=" + folder_.File("summary.json")});
    const ToolResult result = Train(flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return ReadJson(folder_.File("summary.json"))["sample"];
  }
  TemporaryFolder folder_;
};

TEST_F(Sample, IsAFunctionOfNetworkSeedTemperatureAndPrompt) {
  const std::string sample = Write({"--prompt=Shall I", "--sample=60"});
  EXPECT_THAT(sample, StartsWith("Shall I"));
  EXPECT_EQ(Write({"--prompt=Shall I", "--sample=60"}), sample);
  EXPECT_THAT(sample, StartsWith(Write({"--prompt=Shall I", "--sample=10"})));
  EXPECT_NE(Write({"--prompt=Shall I", "--sample=60", "--seed=2"}), sample);
  EXPECT_NE(Write({"--prompt=Shall I", "--sample=60", "--temperature=0.1"}), sample);
  // Two seeds agree where nothing is drawn.
  const std::string likeliest = Write({"--sample=60", "--temperature=0"});
  EXPECT_EQ(Write({"--sample=60", "--temperature=0", "--seed=2"}), likeliest);
}

TEST_F(Sample, GoesOnFromTheEndOfALongPrompt) {
  // The network reads 32 bytes: what stands before them changes nothing.
  const std::string end = "so long lives this, and this gives life to thee.";
  const std::string first = Write({"--sample=20", "--prompt=" + end});
  const std::string second = Write({"--sample=20", "--prompt=Or not: " + end});
  EXPECT_EQ(second.substr(second.size() - 20), first.substr(first.size() - 20));
}

TEST_F(Sample, ShowsBytesThatAreNoTextAsNumbers) {
  EXPECT_EQ(Write({"--prompt=\xC3\xA9 \xFF\x01", "--sample=1"}).substr(0, 11), "\xC3\xA9 \\xff\\x01");
}

TEST(MpcTrainText, BadFilesAreClearErrors) {
  const TemporaryFolder folder;
  WriteFile(folder.File("empty"), "");
  WriteFile(folder.File("short"), std::string(300, 'a'));
  const std::pair<std::string, std::string> files[] = {
      {folder.File("missing"), "cannot open " + folder.File("missing")},
      {folder.path(), "is a folder, not a file of text"},
      {folder.File("empty"), "is empty: no text"},
      {folder.File("short"), "has 300 bytes, 270 for training and 30 for validation; a window of 32"}};
  for (const auto& [path, message] : files) {
    const ToolResult result = Train({"--text-file=" + path});
    EXPECT_EQ(result.exit_code, kFailure);
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_EQ(result.output, "");
  }
}

class BadTextFlags : public testing::TestWithParam<BadUsage> {};

TEST_P(BadTextFlags, AreRefusedBeforeAnythingBegins) {
  ExpectRefused(RunTool(MPC_TRAIN, GetParam().arguments), kBadUsage, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    MpcTrain, BadTextFlags,
    testing::Values(
        BadUsage{{"bert-tiny", "--data=text"}, {"--data=text", "bert-tiny does not take", "gpt2 and gpt2-tiny"}},
        BadUsage{{"lenet5", "--data=text"}, {"--data=text", "lenet5 does not take", "gpt2 and gpt2-tiny"}},
        BadUsage{{"mlp", "--text-file=t"}, {"--data=text", "mlp does not take"}},
        BadUsage{{"gpt2", "--data=synthetic", "--text-file=t"}, {"--text-file and --data=synthetic contradict"}},
        BadUsage{{"gpt2", "--sample=9"}, {"--sample and --data=synthetic contradict"}},
        BadUsage{{"lenet5", "--prompt=t"}, {"--prompt and --data=digits contradict"}},
        BadUsage{{"lenet5", "--layers=2"}, {"--layers and --data=digits contradict"}},
        BadUsage{{"lenet5", "--data=synthetic", "--layers=2"}, {"--layers=2", "lenet5 reads no tokens"}},
        BadUsage{{"gpt2", "--data=text", "--shift=1"}, {"--shift and --data=text contradict"}},
        BadUsage{{"gpt2", "--data=text", "--data-dir=d"}, {"--data-dir and --data=text contradict"}},
        BadUsage{{"gpt2", "--data=text", "--drop-remainder"}, {"--drop-remainder and --data=text contradict"}},
        BadUsage{{"gpt2", "--data=text", "--image-size=32"}, {"--image-size and --data=text contradict"}},
        BadUsage{{"gpt2", "--data=text", "--width=130"}, {"--width=130", "4 heads", "multiple"}},
        BadUsage{{"gpt2", "--data=text", "--layers=0"}, {"--layers", "'0'", "from 1 to"}},
        BadUsage{{"gpt2", "--data=text", "--temperature=-1"}, {"--temperature", "'-1'", "at least 0"}},
        BadUsage{{"gpt2", "--data=text", "--steps=5", "--warmup-steps=5"}, {"--warmup-steps=5", "none of the 5 steps"}},
        BadUsage{{"gpt2", "--data=text", "--lr-schedule=constant", "--warmup-steps=5"},
                 {"--warmup-steps=5 and --lr-schedule=constant contradict"}},
        BadUsage{{"gpt2", "--data=text", "--sample=0", "--prompt=a"}, {"--prompt and --sample=0 contradict"}},
        BadUsage{{"gpt2", "--data=text", "--sample=0", "--temperature=1"}, {"--temperature and --sample=0 contradict"}},
        BadUsage{{"gpt2", "--data=text", "--clip-norm=nan"}, {"--clip-norm", "'nan'"}},
        BadUsage{{"gpt2", "--data=text", "--momentum=0.5"}, {"--momentum", "torch-adamw has none"}},
        BadUsage{{"dcgan", "--text-file=t"}, {"dcgan takes no --text-file"}},
        BadUsage{{"dcgan", "--width=8"}, {"dcgan takes no --width"}}));

}  // namespace
}  // namespace mpc::tools
