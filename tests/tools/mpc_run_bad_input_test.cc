// Bad input of mpc-run and of mpc-train --emit: a clear error, a non-zero exit, nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "mpc/mpc.h"
#include "runtime/program_file.h"
#include "tests/tools/refusal.h"
#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

using testing::HasSubstr;

class BadRun : public testing::TestWithParam<BadUsage> {};

TEST_P(BadRun, IsRefusedBeforeAnythingBegins) {
  ExpectRefused(RunTool(MPC_RUN, GetParam().arguments), kBadUsage, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    MpcRun, BadRun,
    testing::Values(BadUsage{{}, {"which file?", "mpc-train MODEL --emit=FILE.mpcx"}},
                    BadUsage{{"a.mpcx", "b.mpcx", "--steps=1"}, {"one file, not 2", "'b.mpcx'"}},
                    BadUsage{{"a.mpcx", "--steps=-1"}, {"--steps", "'-1'"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--warmup=5"}, {"--warmup=5", "--steps=5"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--data=cifar"}, {"'cifar'", "digits, mnist, synthetic"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--data=synthetic", "--text-file=t"},
                             {"--text-file", "--data=synthetic", "contradict"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--data=text", "--shift=1"}, {"--shift", "--data=text", "images"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--text-file=t", "--data-dir=d"},
                             {"--data-dir", "--data=text", "--text-file names a text"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--device=tpu"}, {"'tpu'", "cpu, cuda"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--graph=maybe"}, {"'maybe'", "on or off"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--steps-per-launch=65"}, {"'65'", "from 1 to 64"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--steps-per-launch=2", "--graph=off"},
                             {"--steps-per-launch=2", "--graph=off", "contradict"}},
                    BadUsage{{"a.mpcx", "--predict", "--times=t.json"}, {"--times", "--steps=N"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--steps-per-launch=2", "--times=t.json"},
                             {"--times", "--steps-per-launch=2", "one by one"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--data=synthetic", "--shift=1"},
                             {"--shift and --data=synthetic contradict", "images"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--data=synthetic", "--data-dir=d"},
                             {"--data-dir and --data=synthetic contradict", "images"}},
                    BadUsage{{"a.mpcx", "--predict", "--shift=1"}, {"--shift is of training steps", "--steps=N"}},
                    BadUsage{{"a.mpcx", "--predict", "--print-every=1"}, {"--print-every is of training steps"}},
                    BadUsage{{"a.mpcx", "--dump-state=s", "--tune"}, {"--tune", "--steps=N or --predict"}},
                    BadUsage{{"a.mpcx", "--describe", "--json=j"}, {"--json", "nothing here would read it"}},
                    BadUsage{{"a.mpcx", "--load-only", "--steps=5"}, {"--load-only and --steps=5 contradict"}},
                    BadUsage{{"a.mpcx", "--load-only", "--predict"}, {"--load-only and --predict contradict"}},
                    BadUsage{{"a.mpcx", "--load-only", "--dump-state=s"}, {"--load-only and --dump-state contradict"}},
                    BadUsage{{"a.mpcx", "--load-only", "--data=synthetic"}, {"--data is of training steps and tests"}},
                    BadUsage{{"a.mpcx", "--load-only", "--times=t"}, {"--times", "--steps=N"}},
                    BadUsage{{"a.mpcx", "--steps=5", "--json=-"}, {"--json is '-'", "/dev/stdout", "'./-'"}},
                    BadUsage{{"-", "--steps=5"}, {"FILE.mpcx is '-'", "/dev/stdin", "'./-'"}},
                    BadUsage{{"a.mpcx", "--step=5"}, {"unknown flag '--step'; did you mean --steps?"}},
                    BadUsage{{"a.mpcx", "--epochs=5"}, {"unknown flag '--epochs'"}}));

TEST(MpcRun, AMissingFileComesBeforeNothingToDo) {
  const TemporaryFolder folder;
  ExpectRefused(RunTool(MPC_RUN, {folder.File("missing.mpcx")}), kFailure, {"missing.mpcx", "No such file"});
  ASSERT_EQ(RunTool(MPC_TRAIN, {"mlp", "--emit=" + folder.File("net.mpcx")}).exit_code, 0);
  ExpectRefused(RunTool(MPC_RUN, {folder.File("net.mpcx")}), kBadUsage,
                {"nothing to do with " + folder.File("net.mpcx"), "--steps=N", "--predict", "--describe"});
}

TEST(MpcRun, OneFileIsNotReadAndWritten) {
  const TemporaryFolder folder;
  const std::string net = folder.File("net.mpcx");
  WriteFile(net, "kept");
  ExpectRefused(RunTool(MPC_RUN, {net, "--predict=" + net}), kBadUsage, {"FILE.mpcx and --predict name one file"});
  ExpectRefused(RunTool(MPC_RUN, {net, "--steps=1", "--json=" + folder.File("r"), "--times=" + folder.File("r")}),
                kBadUsage, {"--json and --times name one file"});
  // The state goes on in its file.
  EXPECT_EQ(RunTool(MPC_RUN, {net, "--steps=1", "--load-state=s", "--dump-state=s"}).exit_code, kFailure);
  EXPECT_EQ(ReadFile(net), "kept");
}

TEST(MpcRun, OutputThatIsLostIsAnError) {
  ExpectRefused(RunTool("/bin/sh", {"-c", "exec \"$0\" --help > /dev/full", MPC_RUN}), kFailure,
                {"mpc-run: the standard output could not be written"});
}

class BadEmit : public testing::TestWithParam<BadUsage> {};

TEST_P(BadEmit, IsRefusedBeforeAnythingBegins) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.push_back("--emit=" + folder.File("net.mpcx"));
  ExpectRefused(RunTool(MPC_TRAIN, arguments), kBadUsage, GetParam().message);
  EXPECT_TRUE(folder.Content().empty());
}

INSTANTIATE_TEST_SUITE_P(
    MpcTrain, BadEmit,
    testing::Values(BadUsage{{"lenet"}, {"unknown model 'lenet'", "gpt2", "lenet5", "resnet50-imagenet"}},
                    BadUsage{{"lenet5", "--load=weights"}, {"--emit trains nothing", "--load", "mpc-run loads them"}},
                    BadUsage{{"lenet5", "--save=net"}, {"--emit trains nothing", "--save"}},
                    BadUsage{{"lenet5", "--shift=1"}, {"--emit trains nothing", "--shift"}},
                    BadUsage{{"lenet5", "--epochs=3"}, {"--emit trains nothing", "--epochs", "--data=text"}},
                    BadUsage{{"lenet5", "--lr-schedule=cosine"}, {"keeps its learning rate", "--lr-schedule=cosine"}},
                    BadUsage{{"dcgan", "--epochs=3"}, {"--emit trains nothing", "--epochs"}},
                    BadUsage{{"lenet5", "--device=cuda", "--arch=sm_90", "--tune"}, {"--tune with --arch", "mpc-run"}},
                    BadUsage{{"lenet5", "--arch=sm_90"}, {"sm_90", "cpu", "cuda"}},
                    BadUsage{{"lenet5", "--device=tpu"}, {"\"tpu\"", "\"cpu\""}}));

TEST(MpcTrain, AnUnknownArchitectureIsRefused) {
  const TemporaryFolder folder;
  const ToolResult result =
      RunTool(MPC_TRAIN, {"lenet5", "--device=cuda", "--arch=sm_12", "--emit=" + folder.File("net.mpcx")});
  EXPECT_EQ(result.exit_code, kBadUsage);
  // A build without CUDA knows no architecture.
  EXPECT_THAT(result.error, testing::AnyOf(testing::AllOf(HasSubstr("\"sm_12\""), HasSubstr("\"sm_80\", \"sm_90\"")),
                                           HasSubstr("device \"cuda\"")));
  EXPECT_TRUE(folder.Content().empty());
}

TEST(MpcTrain, AnArchitectureIsForEmitAlone) {
  ExpectRefused(RunTool(MPC_TRAIN, {"lenet5", "--arch=sm_90"}), kBadUsage, {"--arch", "--emit"});
}

TEST(MpcTrain, EmitWritesOverAFileOnlyByForce) {
  const TemporaryFolder folder;
  const std::string path = folder.File("net.mpcx");
  ASSERT_EQ(RunTool(MPC_TRAIN, {"mlp", "--seed=1", "--emit=" + path}).exit_code, 0);
  const std::string first = ReadFile(path);
  ExpectRefused(RunTool(MPC_TRAIN, {"mlp", "--seed=2", "--emit=" + path}), kFailure, {path, "exists", "--force"});
  EXPECT_EQ(ReadFile(path), first);
  const ToolResult forced = RunTool(MPC_TRAIN, {"mlp", "--seed=2", "--force", "--emit=" + path});
  EXPECT_EQ(forced.exit_code, 0) << forced.error;
  EXPECT_NE(ReadFile(path), first);
  ExpectRefused(RunTool(MPC_TRAIN, {"mlp", "--force"}), kBadUsage, {"--force", "--emit"});
}

class BadPackage : public testing::Test {
 protected:
  void SetUp() override {
    const ToolResult result = RunTool(MPC_TRAIN, {"mlp", "--emit=" + Path()});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    good_ = ReadFile(Path());
  }
  std::string Path() const { return folder_.File("net.mpcx"); }
  /// A run of the package that must fail and write nothing.
  void ExpectFailure(std::vector<std::string> arguments, const std::vector<std::string>& message) {
    const std::size_t files = folder_.Content().size();
    arguments.insert(arguments.begin(), Path());
    arguments.insert(arguments.end(),
                     {"--steps=1", "--json=" + folder_.File("run.json"), "--dump-state=" + folder_.File("state")});
    ExpectRefused(RunTool(MPC_RUN, arguments), kFailure, message);
    EXPECT_EQ(folder_.Content().size(), files);
  }
  /// The package after `change`.
  template <typename Change>
  void Rewrite(Change change) {
    runtime::Package package = runtime::ReadProgramFile(Path()).value();
    change(package);
    ASSERT_TRUE(runtime::WriteProgramFile(Path(), package).ok());
  }

  TemporaryFolder folder_;
  std::string good_;
};

TEST_F(BadPackage, DamagedFiles) {
  WriteFile(Path(), good_.substr(0, good_.size() - 7));
  ExpectFailure({}, {Path(), "is truncated", std::to_string(good_.size() - 24), std::to_string(good_.size() - 31)});
  std::string flipped = good_;
  flipped[good_.size() / 2] ^= 4;
  WriteFile(Path(), flipped);
  ExpectFailure({}, {Path(), "is damaged", "checksum"});
  WriteFile(Path(),
            "\x7f"
            "ELF and so on, longer than a header");
  ExpectFailure({}, {Path(), "is not an .mpcx file", "\\177ELF"});
  std::string newer = good_;
  newer[4] = 9;
  WriteFile(Path(), newer);
  ExpectFailure({}, {Path(), "format version 9", "reads version 2"});
  std::filesystem::remove(Path());
  ExpectFailure({}, {Path(), "No such file"});
}

TEST_F(BadPackage, AnotherDevice) {
  ExpectFailure({"--device=cuda"}, {Path(), "compiled for device \"cpu\"", "not for \"cuda\""});
  for (const std::string flag : {"--graph=on", "--steps-per-launch=2", "--branches=2"}) {
    ExpectFailure({flag}, {flag.substr(0, flag.find('=')), "\"cuda\"", "compiled for \"cpu\""});
  }
}

TEST_F(BadPackage, TextForANetworkThatReadsNone) {
  ExpectFailure({"--data=text"}, {"--data=text", "windows of bytes, i32 [batch, tokens]", "\"train_step\"", Path(),
                                  "tensor<32x1x32x32xf32>"});
  ExpectFailure({"--text-file=" + Path() + ".txt"}, {"windows of bytes"});
}

TEST(MpcRun, TextForALanguageModelThatDoesNotFit) {
  const TemporaryFolder folder;
  const std::string path = folder.File("gpt.mpcx");
  ASSERT_EQ(RunTool(MPC_TRAIN, {"gpt2-tiny", "--tokens=16", "--batch-size=2", "--emit=" + path}).exit_code, 0);
  const auto expect = [&](const std::string& flag, const std::vector<std::string>& message) {
    ExpectRefused(RunTool(MPC_RUN, {path, flag, "--steps=1"}), kFailure, message);
  };
  expect("--text-file=" + folder.File("no.txt"), {"no.txt"});
  WriteFile(folder.File("short.txt"), std::string(100, 'a'));
  expect("--text-file=" + folder.File("short.txt"), {"short.txt has 100 bytes", "a window of 16"});
  expect("--data=digits", {"--data=digits gives", "takes tensor<2x16xi32>"});
}

/// One prediction for a whole row of text.
struct TextClassifier : nn::Cell {
  MPC_CELL(TextClassifier, embedding, fc)
  TextClassifier() : embedding(256, 4), fc(4, 256) {}
  Tensor Construct(Tensor x) { return fc(reduce_mean(embedding(x), {1})); }
  nn::Embedding embedding;
  nn::Dense fc;
};

TEST(MpcRun, TextForANetworkThatPredictsFewerLinesThanThereAreLabels) {
  const TemporaryFolder folder;
  TextClassifier network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  Model model(network, loss, optimizer);
  const absl::StatusOr<runtime::Package> package =
      model.MakePackage({{"tokens", {DType::kI32, {2, 16}}}, {"label", {DType::kI32, {2}}}});
  ASSERT_TRUE(package.ok()) << package.status();
  ASSERT_TRUE(runtime::WriteProgramFile(folder.File("net.mpcx"), *package).ok());
  ExpectRefused(RunTool(MPC_RUN, {folder.File("net.mpcx"), "--data=text", "--predict"}), kFailure,
                {"2 lines of 256 numbers", "32 labels", "a label needs a line"});
}

TEST_F(BadPackage, ADeviceThatIsNotHere) {
  Rewrite([](runtime::Package& package) {
    for (runtime::Program& program : package.programs) {
      program.device = "cuda";
      program.arch = "sm_12";
    }
  });
  ExpectFailure({}, {Path(), "cuda", "sm_12"});
  ExpectFailure({"--device=cpu"}, {Path(), "compiled for device \"cuda\" (sm_12)", "not for \"cpu\""});
}

runtime::Program& Predict(runtime::Package& package) {
  return *std::ranges::find_if(package.programs, [](const auto& program) { return program.name == "predict"; });
}

TEST_F(BadPackage, PredictionsThatAreNotByRows) {
  Rewrite([](runtime::Package& package) {
    runtime::Program& predict = Predict(package);
    predict.values.push_back({{DType::kF32, {}}, runtime::Storage::kTemporary, -1, 0});
    predict.outputs[0].value = static_cast<runtime::ValueId>(predict.values.size() - 1);
  });
  ExpectFailure({"--predict"}, {Path(), "\"predict\" gives tensor<f32> for 32 rows", "for each row"});
  Rewrite([](runtime::Package& package) { Predict(package).outputs.clear(); });
  ExpectFailure({"--predict"}, {Path(), "\"predict\" gives nothing", "for each row"});
}

TEST_F(BadPackage, MoreStateThanThereIsMemory) {
  Rewrite([](runtime::Package& package) {
    const TensorSpec huge{DType::kF32, {std::int64_t{1} << 45}};
    for (runtime::Program& program : package.programs) {
      program.state.push_back({"huge", Role::kParameter, huge, false});
    }
    package.initial_values.push_back({"huge", Role::kParameter, huge, {0, 0, 0, 0}});
  });
  ExpectFailure({}, {"bytes of state", "the system does not have them"});
}

TEST_F(BadPackage, MissingProcessorFeatures) {
  Rewrite([](runtime::Package& package) { package.programs[0].required_cpu_features.push_back("avx9"); });
  ExpectFailure({}, {Path(), "train_step", "avx9"});
}

TEST_F(BadPackage, MissingPrograms) {
  Rewrite([](runtime::Package& package) { package.programs.pop_back(); });
  ExpectFailure({"--predict"}, {Path(), "no program \"predict\"", "\"train_step\", \"eval_step\""});
}

TEST_F(BadPackage, UnknownKernels) {
  Rewrite([](runtime::Package& package) { package.programs[0].step().instructions[0].kernel = "unheard_of"; });
  ExpectFailure({}, {Path(), "unheard_of"});
}

TEST_F(BadPackage, DataThatDoNotFit) {
  ASSERT_EQ(RunTool(MPC_TRAIN, {"gpt2-tiny", "--batch-size=2", "--force", "--emit=" + Path()}).exit_code, 0);
  ExpectFailure({}, {"--data=digits gives tensor<2x1x32x32xf32>", "takes tensor<2x32xi32>", "--data=synthetic"});
}

TEST_F(BadPackage, BadState) {
  ExpectFailure({"--load-state=" + folder_.File("missing")}, {"missing"});
  WriteFile(folder_.File("state.in"), "no safetensors");
  ExpectFailure({"--load-state=" + folder_.File("state.in")}, {"state.in", "the header should have"});
  WriteFile(folder_.File("state.npy"), "\x93NUMPY, not safetensors");
  ExpectFailure({"--load-state=" + folder_.File("state.npy")}, {"state.npy", "not a safetensors file"});
}

TEST_F(BadPackage, ADeviceTakesWhatIsWrittenAndStays) {
  const ToolResult full = RunTool(MPC_RUN, {Path(), "--dump-state=/dev/full"});
  EXPECT_EQ(full.exit_code, kFailure);
  EXPECT_THAT(full.error, HasSubstr("cannot write \"/dev/full\": No space left on device"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_EQ(RunTool(MPC_RUN, {Path(), "--dump-state=/dev/null"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const ToolResult emitted = RunTool(MPC_TRAIN, {"mlp", "--emit=/dev/null"});
  EXPECT_EQ(emitted.exit_code, 0) << "nothing is written over: " << emitted.error;
  std::filesystem::create_symlink("far.json", folder_.File("link.json"));
  EXPECT_EQ(RunTool(MPC_RUN, {Path(), "--dump-state=/dev/null", "--json=" + folder_.File("link.json")}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.File("link.json")));
  EXPECT_TRUE(ReadJson(folder_.File("far.json")).is_object());
}

TEST_F(BadPackage, ChoicesThatAreNotThereAreNotLeftOut) {
  for (const std::string& place : {folder_.File("missing"), folder_.path()}) {
    ExpectRefused(RunTool(MPC_RUN, {Path(), "--steps=1", "--choice-cache=" + place}), kFailure,
                  {"--choice-cache: ", place});
  }
  ExpectRefused(RunTool(MPC_RUN, {Path(), "--steps=1", "--tune", "--choice-cache=" + folder_.path()}), kFailure,
                {"--choice-cache: ", "is a folder, not a file"});
}

TEST_F(BadPackage, PlacesThatCannotBeWrittenAreFoundFirst) {
  const std::string nowhere = folder_.File("none/file");
  for (const std::string& flag : {"--json=" + nowhere, "--dump-state=" + nowhere, "--predict=" + nowhere}) {
    ExpectRefused(RunTool(MPC_RUN, {Path(), "--steps=1", flag}), kFailure, {"none/file", "no folder"});
  }
  ExpectRefused(RunTool(MPC_TRAIN, {"mlp", "--emit=" + nowhere}), kFailure, {"none/file", "no folder"});
}

}  // namespace
}  // namespace mpc::tools
