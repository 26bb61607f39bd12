// mpc-run from outside: what it trains, tests, prints and writes, beside mpc-train.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "frontend/state/safetensors.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/onednn_version.h"
#include "runtime/program_file.h"
#include "runtime/step_groups.h"
#include "tests/tools/mpc_run_fixture.h"

namespace mpc::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST_F(MpcRun, AnotherSeedIsAnotherTraining) {
  const std::vector<std::string> flags = {"lenet5", "--amp-level=O2"};
  const std::string one = Emit(flags, "one.mpcx");
  std::vector<std::string> with_seed = flags;
  with_seed.push_back("--seed=9");
  const std::string nine = Emit(with_seed, "nine.mpcx");
  const auto losses = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--steps=4", "--json=" + File("run.json")});
    EXPECT_EQ(RunPackage(all).exit_code, 0);
    return ReadJson(File("run.json"))["losses"];
  };
  EXPECT_EQ(losses({one, "--seed=9"}), losses({nine}));
  EXPECT_NE(losses({one}), losses({nine}));
}

TEST_F(MpcRun, StateGoesOutAndInAgain) {
  const std::string package = Emit({"lenet5", "--amp-level=O2"});
  ASSERT_EQ(RunPackage({package, "--dump-state=" + File("begin")}).exit_code, 0);
  const Safetensors begin = LoadSafetensors(File("begin")).value();
  for (const char* name : {"conv1.weight", "fc3.bias", "optimizer.fc1.weight.velocity", "scaler.scale"}) {
    EXPECT_NE(begin.Find(name), nullptr) << name;
  }
  // Weights alone, as another program gives them, begin the same training.
  Safetensors weights;
  for (const auto& [name, tensor] : begin.tensors) {
    if (name.find("optimizer") != 0 && name.find("scaler") != 0) weights.tensors.emplace_back(name, tensor);
  }
  weights.tensors.emplace_back("of.another.program", Tensor::Zeros({1}));
  ASSERT_TRUE(SaveSafetensors(File("weights"), weights).ok());
  ASSERT_EQ(RunPackage({package, "--steps=8", "--dump-state=" + File("drawn")}).exit_code, 0);
  const ToolResult loaded =
      RunPackage({package, "--steps=8", "--load-state=" + File("weights"), "--dump-state=" + File("loaded")});
  ASSERT_EQ(loaded.exit_code, 0) << loaded.error;
  EXPECT_THAT(loaded.error, HasSubstr("also holds what no Program uses: of.another.program"));
  EXPECT_EQ(ReadFile(File("drawn")), ReadFile(File("loaded")));
  // Other weights begin another one.
  ASSERT_EQ(RunPackage({package, "--seed=5", "--dump-state=" + File("other")}).exit_code, 0);
  ASSERT_EQ(
      RunPackage({package, "--steps=8", "--load-state=" + File("other"), "--dump-state=" + File("loaded")}).exit_code,
      0);
  EXPECT_NE(ReadFile(File("drawn")), ReadFile(File("loaded")));
}

TEST_F(MpcRun, AGivenSeedGoesBeforeThatOfLoadedState) {
  const std::string package = Emit({"gpt2-tiny", "--tokens=16", "--batch-size=2", "--dropout=0.2"});
  const auto seed_of = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), package);
    flags.push_back("--dump-state=" + File("dumped"));
    const ToolResult result = RunPackage(flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    const Safetensors state = LoadSafetensors(File("dumped")).value();
    const Tensor* seed = state.Find("rng.seed");
    return seed == nullptr ? -1 : static_cast<int>(seed->ToFloats()[0]);
  };
  ASSERT_EQ(seed_of({"--seed=3"}), 3);
  std::filesystem::copy_file(File("dumped"), File("three"));
  EXPECT_EQ(seed_of({"--load-state=" + File("three")}), 3);
  EXPECT_EQ(seed_of({"--load-state=" + File("three"), "--seed=7"}), 7);
}

TEST_F(MpcRun, PredictsEveryTestRow) {
  const std::string package = Emit({"lenet5", "--batch-size=50"});
  const ToolResult result = RunPackage({package, "--predict=" + File("predictions")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  // 360 rows are no multiple of 50.
  EXPECT_THAT(result.output, ContainsRegex("test accuracy [0-9.]+ % .[0-9]+ of 360."));
  const Tensor* predictions = nullptr;
  const Safetensors content = LoadSafetensors(File("predictions")).value();
  predictions = content.Find("predictions");
  ASSERT_NE(predictions, nullptr);
  EXPECT_EQ(predictions->shape(), (Shape{360, 10}));
}

TEST_F(MpcRun, SyntheticDataFitEveryProgram) {
  for (const char* model : {"gpt2-tiny", "bert-tiny", "dcgan", "resnet18"}) {
    const std::string package = Emit({model, "--amp-level=O2", "--batch-size=2"}, std::string(model) + ".mpcx");
    const ToolResult result = RunPackage({package, "--data=synthetic", "--steps=3", "--warmup=1", "--print-every=1"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("step 3: loss "));
    EXPECT_THAT(result.output, ContainsRegex("2 timed: [0-9.]+ steps/s"));
  }
}

TEST_F(MpcRun, WritesWhatItMeasured) {
  const std::string package = Emit({"mlp", "--amp-level=O2"});
  const ToolResult result =
      RunPackage({package, "--data=synthetic", "--steps=10", "--warmup=2", "--json=" + File("run.json")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json json = ReadJson(File("run.json"));
  EXPECT_EQ(json["steps"], 10);
  EXPECT_EQ(json["timed_steps"], 8);
  EXPECT_EQ(json["losses"].size(), 10u);
  EXPECT_EQ(json["batch"], 32);
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["metadata"]["network"], "mlp");
  EXPECT_EQ(json["metadata"]["amp_level"], "O2");
  EXPECT_LE(json["step_seconds"]["p5"], json["step_seconds"]["median"]);
  EXPECT_LE(json["step_seconds"]["median"], json["step_seconds"]["p95"]);
  EXPECT_GT(json["steps_per_second"], 0);
  EXPECT_EQ(json["nodes_per_step"], 0) << "the CPU has no graphs";
  const nlohmann::json& memory = json["memory_bytes"];
  EXPECT_EQ(memory["total"], memory["arena"].get<int>() + memory["state"].get<int>() + memory["other"].get<int>());
}

TEST_F(MpcRun, TimesEachInstructionWithoutChangingTheTraining) {
  const std::string package = Emit({"lenet5", "--amp-level=O2"});
  ASSERT_EQ(RunPackage({package, "--steps=6", "--dump-state=" + File("plain")}).exit_code, 0);
  const ToolResult timed = RunPackage(
      {package, "--steps=6", "--warmup=3", "--times=" + File("times.json"), "--dump-state=" + File("timed")});
  ASSERT_EQ(timed.exit_code, 0) << timed.error;
  EXPECT_EQ(ReadFile(File("plain")), ReadFile(File("timed")));
  const nlohmann::json times = ReadJson(File("times.json"));
  const auto programs = runtime::ReadProgramFile(package);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const runtime::Program* step = programs->Find("train_step");
  ASSERT_NE(step, nullptr);
  // The updates of LeNet-5's parameters are one kernel, and so one time.
  ASSERT_EQ(times["instructions"].size(), runtime::GroupInstructions(*step, cpu::MayGroup).size());
  ASSERT_GT(step->step().instructions.size(), 40u);
  double sum = 0;
  for (const nlohmann::json& entry : times["instructions"]) {
    EXPECT_FALSE(entry["kernel"].get<std::string>().empty());
    EXPECT_LE(entry["median_us"], entry["p95_us"]);
    sum += entry["median_us"].get<double>();
  }
  EXPECT_DOUBLE_EQ(times["sum_us"], sum);
}

TEST_F(MpcRun, MeasuresKernelsOnceAndTakesThemFromTheCacheAfterwards) {
  const std::string package = Emit({"lenet5", "--lr-schedule=constant"});
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {package, "--steps=3", "--threads=1", "--json=" + File("run.json")});
    const ToolResult result = RunPackage(flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return ReadJson(File("run.json"));
  };
  EXPECT_TRUE(run({})["choices"].empty()) << "rules choose, and nothing is to be kept";
  const nlohmann::json tuned = run({"--tune", "--choice-cache=" + File("choices")});
  EXPECT_GE(tuned["choices"].size(), 3u);
  const nlohmann::json again = run({"--choice-cache=" + File("choices")});
  EXPECT_EQ(again["choices"], tuned["choices"]);
  EXPECT_EQ(again["losses"], tuned["losses"]);
}

TEST_F(MpcRun, ChoosesWinogradWhereItIsAllowed) {
  const std::string package = Emit({"resnet18-cifar", "--batch-size=2"});
  const auto choices = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {package, "--steps=1", "--data=synthetic", "--json=" + File("run.json")};
    flags.insert(flags.end(), more.begin(), more.end());
    const ToolResult result = RunPackage(flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return ReadJson(File("run.json"))["choices"].dump();
  };
  EXPECT_EQ(choices({}), "{}") << "rules choose, and nothing is to be kept";
  // oneDNN 2 alone has it, with AVX-512.
  const bool offered = __builtin_cpu_supports("avx512f") != 0 && cpu::OnednnVersion()[0] == '2';
  EXPECT_THAT(choices({"--allow-winograd"}), HasSubstr(offered ? "f32 winograd" : "f32 nhwc"));
}

TEST_F(MpcRun, DescribesAFileWithoutRunningIt) {
  const ToolResult result = RunPackage({Emit({"lenet5", "--amp-level=O2"}), "--describe"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const char* part :
       {"format version 2", "network: lenet5", "program train_step for cpu", "program eval_step", "program predict",
        "inputs: image tensor<32x1x32x32xf32>, label tensor<32xi32>", "peak ", "state (31)",
        "conv1.weight: parameter tensor<6x1x5x5xf32>, written; begins as drawn, seed 1"}) {
    EXPECT_THAT(result.output, HasSubstr(part));
  }
}

TEST_F(MpcRun, LoadsTheTrainingStepAndEnds) {
  const std::string package = Emit({"lenet5", "--amp-level=O2"});
  const std::vector<std::string> tuned = {package, "--tune", "--choice-cache=" + File("choices")};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tuned.begin(), tuned.end());
    return more;
  };
  const ToolResult loaded = RunPackage(with({"--load-only", "--json=" + File("load.json")}));
  ASSERT_EQ(loaded.exit_code, 0) << loaded.error;
  EXPECT_THAT(loaded.output, ContainsRegex("train_step for cpu: [0-9]+ instructions\n"));
  EXPECT_THAT(loaded.output, ContainsRegex("loaded in [0-9.]+ s; peak [0-9.]+ MiB"));
  EXPECT_THAT(loaded.output, Not(HasSubstr("steps/s")));
  const auto load = ReadJson(File("load.json"));
  EXPECT_GT(load["load_seconds"], 0.0);
  EXPECT_FALSE(load.contains("losses"));
  // What is in force is what a step of the same file runs with.
  ASSERT_EQ(RunPackage(with({"--steps=1", "--json=" + File("step.json")})).exit_code, 0);
  const auto step = ReadJson(File("step.json"));
  EXPECT_FALSE(load["choices"].empty());
  for (const char* key : {"choices", "memory_bytes", "graph", "steps_per_launch", "nodes_per_step"}) {
    EXPECT_EQ(load[key], step[key]) << key;
  }
  for (const auto& [key, value] : load["choices"].items()) {
    EXPECT_THAT(loaded.output, HasSubstr("choice " + key + ": " + value.get<std::string>() + "\n"));
  }
}

TEST_F(MpcRun, CompilesForAGpuThatIsNotHere) {
  const std::string path = folder_.File("gpu.mpcx");
  const ToolResult emitted =
      Train({"lenet5", "--amp-level=O2", "--device=cuda", "--arch=sm_90", "--batch-size=64", "--emit=" + path});
  if (emitted.exit_code != 0) {
    // A build without CUDA says so and leaves nothing.
    ASSERT_THAT(emitted.error, HasSubstr("this build has no CUDA backend"));
    EXPECT_TRUE(folder_.Content().empty());
    GTEST_SKIP() << emitted.error;
  }
  const ToolResult described = RunPackage({path, "--describe"});
  ASSERT_EQ(described.exit_code, 0) << described.error;
  EXPECT_THAT(described.output, HasSubstr("program train_step for cuda sm_90"));
  EXPECT_THAT(described.output, HasSubstr("image tensor<64x1x32x32xf32>"));
}

TEST_F(MpcRun, LinksNoCompiler) {
  const ToolResult result = RunTool("/usr/bin/env", {"ldd", MPC_RUN});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("libdnnl"));
  EXPECT_THAT(result.output, Not(HasSubstr("MLIR")));
  EXPECT_THAT(result.output, Not(HasSubstr("LLVM")));
}

TEST_F(MpcRun, HelpNamesEveryFlagAndEndsWell) {
  const ToolResult result = RunPackage({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* flag : {"--steps",    "--warmup",      "--data",       "--data-dir",         "--text-file",
                           "--shift",    "--device",      "--graph",      "--steps-per-launch", "--seed",
                           "--threads",  "--print-every", "--load-state", "--dump-state",       "--predict",
                           "--json",     "--times",       "--tune",       "--choice-cache",     "--allow-winograd",
                           "--describe", "--load-only"}) {
    EXPECT_THAT(result.output, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace mpc::tools
