// Bad input of mpc-train: a clear error, a non-zero exit, nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/tools/refusal.h"
#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class BadCommandLine : public testing::TestWithParam<BadUsage> {};

TEST_P(BadCommandLine, IsRefusedBeforeAnythingBegins) {
  ExpectRefused(RunTool(MPC_TRAIN, GetParam().arguments), kBadUsage, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    MpcTrain, BadCommandLine,
    testing::Values(
        BadUsage{{}, {"which model? choose bert, bert-tiny, bnnet, ", "lenet5, mlp"}},
        BadUsage{{"lenet"}, {"unknown model 'lenet'", "lenet5"}}, BadUsage{{"lenet5", "mlp"}, {"one model", "'mlp'"}},
        BadUsage{{"lenet5", "--amp-level=02"}, {"unknown level '02'", "O0, O1, O2, O3 or auto", "letter O"}},
        BadUsage{{"lenet5", "--amp-level=O4"}, {"unknown level 'O4'", "O0, O1, O2, O3 or auto"}},
        BadUsage{{"lenet5", "--amp-level=O1", "--keep-batchnorm-fp32"}, {"O1 already runs norms in f32"}},
        BadUsage{{"lenet5", "--amp-level=O1", "--master-weights=false"}, {"O1 never changes stored parameters"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--patch-torch-functions"}, {"what O1 is"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--min-loss-scale=4", "--max-loss-scale=2"}, {"4", "exceeds", "2"}},
        BadUsage{{"lenet5", "--amp-level=O1", "--allow-add=exp", "--deny-add=exp"}, {"'exp'", "allow_add", "deny_add"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--cast-model-outputs=i32"}, {"'i32'", "f32, f16 or bf16"}},
        BadUsage{{"lenet5", "--amp-verbosity=loud"}, {"--amp-verbosity", "'loud'", "whole number"}},
        BadUsage{{"lenet5", "--amp-enabled=perhaps"}, {"--amp-enabled", "'perhaps'", "true or false"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--dtype=fp8"}, {"dtype", "'fp8'", "f16 or bf16"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--dtype=f64"}, {"f16 or bf16", "f64"}},
        BadUsage{{"lenet5", "--dtype=f16"}, {"O0 is full f32", "O1, O2, O3 or auto"}},
        BadUsage{{"lenet5", "--loss-scale=big"}, {"'big'", "dynamic", "none", "number"}},
        BadUsage{{"lenet5", "--loss-scale=0"}, {"'0'", "number >= 1"}},
        BadUsage{{"lenet5", "--data=cifar"}, {"--data", "'cifar'", "digits, mnist"}},
        BadUsage{{"lenet5", "--optimizer=ftrl"}, {"--optimizer", "'ftrl'", "momentum, sgd, adam, adamw", "lamb"}},
        BadUsage{{"lenet5", "--optimizer=adam", "--momentum=0.9"}, {"--momentum", "adam has none"}},
        BadUsage{{"lenet5", "--lr-schedule=step"}, {"--lr-schedule", "'step'", "cosine, constant, exponential"}},
        BadUsage{{"lenet5", "--lr-schedule=one-cycle", "--warmup-steps=5"},
                 {"--warmup-steps=5 and --lr-schedule=one-cycle contradict", "rises by itself"}},
        BadUsage{{"lenet5", "--lr-schedule=constant", "--warmup-steps=5"},
                 {"--warmup-steps=5 and --lr-schedule=constant contradict"}},
        BadUsage{{"lenet5", "--accumulation=0"}, {"--accumulation", "'0'", "1"}},
        BadUsage{{"lenet5", "--accumulation=2", "--epochs=0"}, {"--accumulation and --epochs=0 contradict"}},
        BadUsage{{"lenet5", "--clip-value=-1"}, {"--clip-value", "'-1'", "number of at least 0"}},
        BadUsage{{"lenet5", "--clip-norm=1e-50"}, {"--clip-norm=1e-50", "f32 holds 0 in its place"}},
        BadUsage{{"lenet5", "--clip-value=1e39"}, {"--clip-value=1e+39", "f32 does not hold it"}},
        BadUsage{{"lenet5", "--weight-decay=1e300"}, {"--weight-decay=1e+300", "f32 does not hold it"}},
        BadUsage{{"lenet5", "--optimizer=sgd", "--momentum=1e300"}, {"--momentum=1e+300", "f32 does not hold it"}},
        BadUsage{{"dcgan", "--accumulation=2"}, {"dcgan takes no --accumulation"}},
        BadUsage{{"lenet5", "--plot=run.png"}, {"--plot", "'run.png'", ".svg"}},
        BadUsage{{"lenet5", "--plot=run.svg", "--epochs=0"}, {"--plot and --epochs=0 contradict"}},
        BadUsage{{"lenet5", "--plot=run.svg", "--emit=b"}, {"takes no --plot"}},
        BadUsage{{"lenet5", "--accumulation=2", "--emit=b"}, {"takes no --accumulation"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--loss-scale=derived", "--emit=b"},
                 {"--emit trains nothing and takes no --loss-scale=derived", "give dynamic or a number"}},
        BadUsage{{"lenet5", "--warmup-steps=2", "--emit=b"}, {"takes no --warmup-steps but for --data=text"}},
        BadUsage{{"lenet5", "--lr-schedule=restarts", "--emit=b"}, {"--lr-schedule=restarts is mpc-train's own"}},
        BadUsage{{"lenet5", "--epoch=3"}, {"unknown flag '--epoch'; did you mean --epochs?", "--help"}},
        BadUsage{{"lenet5", "-e"}, {"unknown flag '-e'"}}, BadUsage{{"lenet5", "--epochs"}, {"--epochs needs a value"}},
        BadUsage{{"lenet5", "--epochs=many"}, {"--epochs", "'many'", "whole number of at least 0"}},
        BadUsage{{"lenet5", "--epochs=-1"}, {"--epochs", "'-1'"}},
        BadUsage{{"lenet5", "--amp-level="}, {"--amp-level", "choose O0, O1, O2, O3 or auto"}},
        BadUsage{{"lenet5", "--amp-verbosity=2"}, {"verbosity = 2", "0 or 1"}},
        BadUsage{{"lenet5", "--profile-precision=a.png"}, {"'a.png'", ".txt, .json or .svg"}},
        BadUsage{{"dcgan", "--num-losses=2"}, {"dcgan takes no --num-losses", "three"}},
        BadUsage{{"dcgan", "--lr-schedule=constant"}, {"dcgan takes no --lr-schedule"}},
        BadUsage{{"dcgan", "--drop-remainder"}, {"dcgan takes no --drop-remainder"}},
        BadUsage{{"dcgan", "--epochs=0"}, {"dcgan takes no --epochs=0"}},
        BadUsage{{"lenet5", "--keep=3"}, {"--keep needs --save=FOLDER/"}},
        BadUsage{{"lenet5", "--keep=3", "--save=net"}, {"--keep needs --save=FOLDER/"}},
        BadUsage{{"lenet5", "--epochs=0", "--save=run/"}, {"--save=run/ and --epochs=0 contradict"}},
        BadUsage{{"lenet5", "--epochs=0", "--trace=t"}, {"--trace and --epochs=0 contradict"}},
        BadUsage{{"lenet5", "--epochs=0", "--profile-precision"}, {"--profile-precision and --epochs=0 contradict"}},
        BadUsage{{"lenet5", "--batch-size=0"}, {"--batch-size", "'0'", "at least 1"}},
        BadUsage{{"lenet5", "--lr=nan"}, {"--lr", "'nan'", "number of at least 0"}},
        BadUsage{{"lenet5", "--keep-batchnorm-fp32=yes"}, {"keep_batchnorm_fp32", "'yes'", "true or false"}},
        BadUsage{{"lenet5", "--steps-per-launch=8"}, {"--steps-per-launch=8 and --device=cpu contradict", "cuda"}},
        BadUsage{{"lenet5", "--steps-per-launch=65"}, {"--steps-per-launch", "'65'", "from 1 to 64"}},
        BadUsage{{"lenet5", "--graph=off"}, {"--graph=off and --device=cpu contradict", "cuda"}},
        BadUsage{{"lenet5", "--graph=maybe"}, {"--graph", "'maybe'", "on or off"}},
        BadUsage{{"lenet5", "--device=cuda", "--allow-winograd"}, {"--allow-winograd and --device=cuda contradict"}},
        BadUsage{{"gpt2-tiny", "--head-chunks=0"}, {"--head-chunks", "1", "4096"}},
        BadUsage{{"bnnet", "--allow-conv-statistics"}, {"--allow-conv-statistics and --device=cpu contradict"}},
        BadUsage{{"lenet5", "--allow-tf32"}, {"--allow-tf32 and --device=cpu contradict"}},
        BadUsage{{"lenet5", "--device=cuda", "--graph=off", "--steps-per-launch=2"},
                 {"--steps-per-launch=2 and --graph=off contradict"}},
        BadUsage{{"lenet5", "--trace=t", "--trace-steps=5-3"}, {"--trace-steps", "'5-3'", "after the last"}},
        BadUsage{{"lenet5", "--trace=t", "--trace-steps=0-3"}, {"--trace-steps", "'0-3'", "count from 1"}},
        BadUsage{{"lenet5", "--trace=t", "--trace-steps=a-b"}, {"--trace-steps", "'a-b'", "FIRST-LAST"}},
        BadUsage{{"lenet5", "--trace=t", "--trace-steps=3-"}, {"--trace-steps", "'3-'", "FIRST-LAST"}},
        BadUsage{{"lenet5", "--trace-steps=1-3"}, {"--trace-steps needs --trace=FILE"}},
        BadUsage{{"gpt2", "--data=digits"}, {"--data=digits", "gpt2", "--data=synthetic"}},
        BadUsage{{"lenet5", "--steps=3"}, {"--steps and --data=digits contradict"}},
        BadUsage{{"lenet5", "--data=synthetic", "--shift=1"}, {"--shift and --data=synthetic contradict"}},
        BadUsage{{"lenet5", "--data=synthetic", "--image-size=64"}, {"--image-size=64: ", "lenet5", "resnet50"}},
        BadUsage{{"lenet5", "--classes=12"}, {"--classes=12: ", "lenet5 has its own", "resnet18", "take others"}},
        BadUsage{{"resnet18", "--classes=5"}, {"--classes=5", "10 classes"}},
        BadUsage{{"resnet18", "--classes=1"}, {"--classes", "'1'", "2"}},
        BadUsage{{"gpt2", "--data=text", "--classes=5"}, {"--classes and --data=text contradict"}},
        BadUsage{{"lenet5", "--data=pictures", "--data-dir=a"}, {"lenet5 does not take", "resnet18-imagenet"}},
        BadUsage{{"resnet18", "--data=pictures", "--data-dir=a"}, {"resnet18 does not take", "resnet18-cifar"}},
        BadUsage{{"resnet50", "--data=pictures"}, {"--data-dir=FOLDER", "train/CLASS", "test/CLASS"}},
        BadUsage{{"vit-tiny", "--data=pictures"}, {"--data-dir=FOLDER"}},
        BadUsage{{"resnet50", "--data=pictures", "--data-dir=a", "--shift=1"}, {"--shift and --data=pictures"}},
        BadUsage{{"resnet50", "--data=pictures", "--data-dir=a", "--emit=b"}, {"--emit", "--data=pictures"}},
        BadUsage{{"lenet5", "--init=a", "--load=b"}, {"--init and --load", "give one of them"}},
        BadUsage{{"lenet5", "--init=a", "--resume=b"}, {"--init and --resume", "give one of them"}},
        BadUsage{{"lenet5", "--init=a", "--emit=b"}, {"takes no --init", "mpc-run loads them"}},
        BadUsage{{"lenet5", "--freeze=conv1", "--epochs=0"}, {"--freeze and --epochs=0 contradict"}},
        BadUsage{{"bert-tiny", "--epochs=0"}, {"--epochs=0 and --data=synthetic leave nothing to do", "have no test"}},
        BadUsage{{"dcgan", "--init=a"}, {"dcgan takes no --init"}},
        BadUsage{{"resnet50", "--image-size=100"}, {"--image-size=100: ", "multiples of 32"}},
        BadUsage{{"lenet5", "--dropout=0.1"},
                 {"--dropout=0.1: lenet5 has none", "bert, bert-tiny, gpt2, gpt2-tiny, vit"}},
        BadUsage{{"lenet5", "--dropout=0"}, {"--dropout=0: lenet5 has none"}},
        BadUsage{{"dcgan", "--dropout=0.1"}, {"dcgan takes no --dropout"}},
        BadUsage{{"gpt2-tiny", "--dropout=1"}, {"--dropout=1: gpt2-tiny takes rates of at least 0 and below 1"}},
        BadUsage{{"gpt2-tiny", "--dropout=-0.1"}, {"--dropout", "'-0.1'", "number of at least 0"}},
        BadUsage{{"gpt2-tiny", "--epochs=0", "--dropout=0.1"}, {"--dropout and --epochs=0 contradict"}},
        BadUsage{{"gpt2", "--tokens=2000"}, {"--tokens=2000: ", "from 1 to 1024"}},
        BadUsage{{"lenet5", "--lock-precision=a", "--check-precision=a"},
                 {"--lock-precision and --check-precision exclude each other"}},
        BadUsage{{"lenet5", "--save=a.st", "--summary=./a.st"}, {"--save and --summary name one file, './a.st'"}},
        BadUsage{{"lenet5", "--load=a", "--epochs=0", "--summary=a"},
                 {"--load and --summary name one file, 'a'", "what is read would be lost"}},
        BadUsage{{"lenet5", "--record-hashes=a", "--trace=a"}, {"--record-hashes and --trace name one file, 'a'"}},
        BadUsage{{"lenet5", "--init=a", "--save=a"}, {"--init and --save name one file, 'a'"}},
        BadUsage{{"lenet5", "--min-loss-scale=2"}, {"--min-loss-scale=2: only a dynamic", "O0 it is none"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--dtype=bf16", "--max-loss-scale=8"},
                 {"--max-loss-scale=8: only a dynamic loss scale has limits", "--loss-scale=dynamic"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--loss-scale=128", "--max-loss-scale=8"}, {"at level O2 it is 128"}},
        BadUsage{{"dcgan", "--min-loss-scale=2"}, {"--min-loss-scale=2: only a dynamic"}},
        BadUsage{{"lenet5", "--amp-profile=a.json"}, {"--amp-profile and level O0 contradict each other"}},
        BadUsage{{"lenet5", "--device=tpu"}, {"\"tpu\"", "\"cpu\""}}));

TEST(MpcTrainFiles, AreFoundToBeOneThroughLinks) {
  const TemporaryFolder folder;
  WriteFile(folder.File("weights"), "kept");
  std::filesystem::create_symlink("weights", folder.File("link"));
  ExpectRefused(RunTool(MPC_TRAIN, {"lenet5", "--load=" + folder.File("weights"), "--plot=" + folder.File("x.svg"),
                                    "--summary=" + folder.File("link")}),
                kBadUsage, {"--load and --summary name one file"});
  EXPECT_EQ(ReadFile(folder.File("weights")), "kept");
}

TEST(MpcTrainFiles, MayBeReadAndThenSaved) {
  const TemporaryFolder folder;
  const std::string net = folder.File("net");
  ASSERT_EQ(RunTool(MPC_TRAIN, {"mlp", "--epochs=0", "--save=" + net}).exit_code, 0);
  const ToolResult again = RunTool(MPC_TRAIN, {"mlp", "--epochs=0", "--load=" + net, "--save=" + net,
                                               "--summary=/dev/null", "--report-html=/dev/null"});
  EXPECT_EQ(again.exit_code, 0) << again.error;
}

TEST(MpcTrainSizes, ThatDoNotFitAreErrorsWithNumbers) {
  const auto refused = [](const char* model, const char* data, const char* size, const char* number) {
    ExpectRefused(RunTool(MPC_TRAIN, {model, data, "--steps=1", size}), kFailure,
                  {"columns of a batch of tensor<", number, "this machine has ", "give a smaller batch size"});
  };
  refused("lenet5", "--data=synthetic", "--batch-size=1000000000000", ": 4100000000000000 bytes");
  refused("lenet5", "--data=synthetic", "--batch-size=9000000000000000000", ": more than 2^64 bytes");
  refused("gpt2-tiny", "--data=text", "--batch-size=1000000000000", " bytes");
}

TEST(MpcTrainSizes, BeyondALimitOfMemoryAreAnErrorByName) {
  // The batch alone takes more than the limit of the process, in KiB, and less than the machine has.
  const ToolResult result = RunTool("/bin/sh", {"-c",
                                                "ulimit -v 4000000; exec \"$0\" lenet5 --data=synthetic "
                                                "--threads=1 --steps=1 --batch-size=1000000",
                                                MPC_TRAIN});
  EXPECT_EQ(result.exit_code, kFailure) << result.error;
  EXPECT_THAT(result.error, testing::StartsWith("mpc-train: "));
}

TEST(MpcTrainOutput, ThatIsLostIsAnError) {
  for (const char* arguments : {"--help", "lenet5 --epochs=0 --threads=1 --report"}) {
    const ToolResult result =
        RunTool("/bin/sh", {"-c", "exec \"$0\" " + std::string(arguments) + " > /dev/full", MPC_TRAIN});
    EXPECT_EQ(result.exit_code, kFailure) << arguments;
    EXPECT_THAT(result.error, HasSubstr("mpc-train: the standard output could not be written"));
  }
}

TEST(MpcTrainCapsule, OfAStepThatIsNotReachedIsAnError) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments = {"lenet5", "--data=synthetic", "--steps=2", "--threads=1",
                                              "--capsule=" + folder.File("c")};
  std::vector<std::string> beyond = arguments;
  beyond.emplace_back("--capsule-at=3");
  const ToolResult result = RunTool(MPC_TRAIN, beyond);
  EXPECT_EQ(result.exit_code, kFailure);
  EXPECT_THAT(result.error, HasSubstr("no capsule was written: --capsule-at=3, but this run had steps 1 to 2"));
  std::vector<std::string> last = arguments;
  last.emplace_back("--capsule-at=2");
  EXPECT_EQ(RunTool(MPC_TRAIN, last).exit_code, 0);
  EXPECT_EQ(folder.Content(), std::vector<std::string>{"c"});
}

TEST(MpcTrainDevice, ADeviceThatIsNotHereIsAClearError) {
  const ToolResult result = RunTool(MPC_TRAIN, {"lenet5", "--device=cuda", "--epochs=0", "--choice-cache="});
  if (result.exit_code == 0) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_EQ(result.exit_code, kBadUsage);
  // The build has none, or its library says what is missing: a driver, a device, a newer one.
  EXPECT_THAT(result.error, HasSubstr("device \"cuda\""));
  EXPECT_EQ(result.output, "");
}

// Without --tune nothing would be written there, and kernels would be chosen as without the flag.
TEST(MpcTrainDevice, AChoiceCacheThatIsNotThereIsAnError) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments = {"lenet5",      "--data=synthetic", "--steps=1",
                                              "--threads=1", "--quiet",          "--choice-cache=" + folder.File("c")};
  for (const char* tool : {MPC_TRAIN, MPC_BENCH}) {
    std::vector<std::string> given = arguments;
    if (tool == std::string_view(MPC_BENCH)) given = {"lenet5", "--steps=1", "--runs=1", arguments.back()};
    const ToolResult result = RunTool(tool, given);
    EXPECT_EQ(result.exit_code, kBadUsage);
    EXPECT_THAT(result.error, HasSubstr("--choice-cache: cannot open " + folder.File("c")));
  }
  std::vector<std::string> tuned = arguments;
  tuned.emplace_back("--tune");
  EXPECT_EQ(RunTool(MPC_TRAIN, tuned).exit_code, 0);
  EXPECT_EQ(RunTool(MPC_TRAIN, arguments).exit_code, 0) << "now it is there";
}

/// What a run that must fail for a reason in a file leaves behind.
class BadFile : public testing::Test {
 protected:
  /// Runs with --save and --summary and expects the failure to have touched neither.
  void ExpectFailure(std::vector<std::string> arguments, const std::vector<std::string>& message) {
    WriteFile(results_.File("net"), "kept");
    arguments.insert(arguments.end(), {"--threads=1", "--epochs=1", "--save=" + results_.File("net"),
                                       "--summary=" + results_.File("summary.json")});
    const ToolResult result = RunTool(MPC_TRAIN, arguments);
    EXPECT_EQ(result.exit_code, kFailure);
    for (const std::string& part : message) EXPECT_THAT(result.error, HasSubstr(part));
    EXPECT_LE(std::count(result.error.begin(), result.error.end(), '\n'), 10) << result.error;
    EXPECT_EQ(ReadFile(results_.File("net")), "kept");
    EXPECT_EQ(results_.Content(), std::vector<std::string>{"net"});
  }

  /// Ten images of MNIST's shape, 8 for training and 2 for testing.
  void WriteMnist(std::uint8_t magic = 3, std::uint8_t label = 9, std::size_t cut = 0) {
    std::string images = {0, 0, 8, static_cast<char>(magic), 0, 0, 0, 10, 0, 0, 0, 28, 0, 0, 0, 28};
    for (int i = 0; i < 10 * 28 * 28; ++i) images.push_back(static_cast<char>(i * 37 % 256));
    std::string labels = {0, 0, 8, 1, 0, 0, 0, 10};
    for (int i = 0; i < 9; ++i) labels.push_back(static_cast<char>(i));
    labels.push_back(static_cast<char>(label));
    WriteFile(data_.File("t10k-images-idx3-ubyte"), images.substr(0, images.size() - cut));
    WriteFile(data_.File("t10k-labels-idx1-ubyte"), labels);
  }
  std::vector<std::string> OnMnist() const {
    return {"mlp", "--data=mnist", "--data-dir=" + data_.path(), "--batch-size=4"};
  }

  TemporaryFolder data_;
  TemporaryFolder results_;
};

TEST_F(BadFile, GoodDataPass) {
  WriteMnist();
  std::vector<std::string> arguments = OnMnist();
  arguments.push_back("--epochs=1");
  const ToolResult result = RunTool(MPC_TRAIN, arguments);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("of 2 rows of t10k, its last fifth: MNIST's train files are missing"));
  // With files of both parts the test set is MNIST's own.
  std::filesystem::copy(data_.File("t10k-images-idx3-ubyte"), data_.File("train-images-idx3-ubyte"));
  std::filesystem::copy(data_.File("t10k-labels-idx1-ubyte"), data_.File("train-labels-idx1-ubyte"));
  EXPECT_THAT(RunTool(MPC_TRAIN, arguments).output, HasSubstr("of 10), test loss"));
}

TEST_F(BadFile, MissingData) {
  ExpectFailure(OnMnist(), {"t10k-images-idx3-ubyte", data_.path(), "--data-dir=FOLDER"});
  ExpectFailure({"lenet5", "--data-dir=" + data_.path()}, {"digits.csv", data_.path()});
}

TEST_F(BadFile, TruncatedData) {
  WriteMnist(3, 9, 100);
  ExpectFailure(OnMnist(), {"t10k-images-idx3-ubyte"});
  WriteFile(data_.File("digits.csv.gz"), ReadFile(MPC_DIGITS).substr(0, 5000));
  ExpectFailure({"lenet5", "--data-dir=" + data_.path()}, {"digits.csv.gz"});
}

TEST_F(BadFile, WrongMagic) {
  WriteMnist(1);
  ExpectFailure(OnMnist(), {"magic", "t10k-images-idx3-ubyte"});
}

TEST_F(BadFile, LabelOutOfRange) {
  WriteMnist(3, 11);
  ExpectFailure(OnMnist(), {"label", "11"});
}

TEST_F(BadFile, BatchLargerThanTheDataSet) {
  WriteMnist();
  std::vector<std::string> arguments = OnMnist();
  arguments.push_back("--batch-size=9");
  ExpectFailure(arguments, {"batch size 9 is larger than the training set (8 rows)"});
}

TEST_F(BadFile, ATestAloneTakesAnyBatchSize) {
  WriteMnist();
  std::vector<std::string> arguments = OnMnist();
  arguments.insert(arguments.end(), {"--batch-size=9", "--epochs=0"});
  const ToolResult result = RunTool(MPC_TRAIN, arguments);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("of 2 rows of t10k"));
}

TEST_F(BadFile, DamagedCheckpoint) {
  const std::string path = data_.File("checkpoint");
  ExpectFailure({"mlp", "--load=" + path}, {path});
  WriteFile(path, "this is no checkpoint");
  ExpectFailure({"mlp", "--load=" + path}, {path});
  ASSERT_EQ(RunTool(MPC_TRAIN, {"mlp", "--epochs=1", "--threads=1", "--save=" + path}).exit_code, 0);
  const std::string saved = ReadFile(path);
  WriteFile(path, saved.substr(0, saved.size() - 1));
  ExpectFailure({"mlp", "--load=" + path}, {path});
  WriteFile(path, saved);
  ExpectFailure({"lenet5", "--load=" + path}, {"conv1.weight"});
}

TEST_F(BadFile, FrozenPathsThatAreNotThere) {
  ExpectFailure({"mlp", "--freeze=conv1"}, {"no parameter below 'conv1'"});
}

TEST_F(BadFile, ParametersThatAreAllFrozen) {
  const std::vector<std::string> message = {"--freeze=fc1,fc2,fc3 leaves no parameter of mlp to train"};
  ExpectFailure({"mlp", "--freeze=fc1,fc2,fc3"}, message);
  ExpectRefused(RunTool(MPC_TRAIN, {"mlp", "--freeze=fc1,fc2,fc3", "--emit=" + data_.File("x.mpcx")}), kFailure,
                message);
}

TEST_F(BadFile, ATestThatIsBeyondTheMemoryBudgetIsFoundBeforeTraining) {
  const ToolResult result =
      RunTool(MPC_TRAIN, {"lenet5", "--epochs=1", "--threads=1", "--batch-size=1", "--memory-budget=800KiB"});
  EXPECT_EQ(result.exit_code, kFailure);
  EXPECT_THAT(result.error, AllOf(HasSubstr("the test, before the first step: @eval_step: memory budget 800.0 KiB"),
                                  HasSubstr("cannot be met")));
  EXPECT_EQ(result.output, "");
}

TEST_F(BadFile, AWarmUpThatIsLongerThanTheTraining) {
  ExpectFailure({"mlp", "--warmup-steps=45"}, {"--warmup-steps=45 leaves none of the 45 steps"});
}

TEST_F(BadFile, Pickle) {
  const std::string path = data_.File("mlp.pth");
  WriteFile(path, "PK\x03\x04 of torch.save");
  ExpectFailure({"mlp", "--init=" + path}, {path, "is a pickle", "save_file("});
}

TEST_F(BadFile, PlacesThatCannotBeWrittenAreFoundBeforeTraining) {
  for (const char* flag : {"--save=", "--summary="}) {
    const ToolResult nowhere = RunTool(MPC_TRAIN, {"mlp", flag + data_.File("missing/file")});
    EXPECT_EQ(nowhere.exit_code, kFailure);
    EXPECT_THAT(nowhere.error, AllOf(HasSubstr("missing/file"), HasSubstr("no folder")));
    EXPECT_EQ(nowhere.output, "");
  }
  const ToolResult plot = RunTool(MPC_TRAIN, {"mlp", "--plot=" + data_.File("missing/run.svg")});
  EXPECT_EQ(plot.exit_code, kFailure);
  EXPECT_THAT(plot.error, AllOf(HasSubstr("missing/run.svg"), HasSubstr("no folder")));
  EXPECT_EQ(plot.output, "");
  const ToolResult folder = RunTool(MPC_TRAIN, {"mlp", "--summary=" + data_.path()});
  EXPECT_EQ(folder.exit_code, kFailure);
  EXPECT_THAT(folder.error, HasSubstr("is a folder"));
}

}  // namespace
}  // namespace mpc::tools
