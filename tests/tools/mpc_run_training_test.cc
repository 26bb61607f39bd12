// mpc-run trains as mpc-train does: the same losses, the same state, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "frontend/state/safetensors.h"
#include "tests/tools/mpc_run_fixture.h"

namespace mpc::tools {
namespace {

/// Every entry of the run is in the checkpoint with the same bits.
void ExpectSameState(const std::string& of_run, const std::string& checkpoint) {
  const Safetensors run = LoadSafetensors(of_run).value();
  const Safetensors trained = LoadSafetensors(checkpoint).value();
  EXPECT_GT(run.tensors.size(), 8u);
  for (const auto& [name, tensor] : run.tensors) {
    const Tensor* other = trained.Find(name);
    ASSERT_NE(other, nullptr) << name;
    ASSERT_EQ(tensor.spec(), other->spec()) << name;
    EXPECT_EQ(std::memcmp(tensor.bytes().data(), other->bytes().data(), tensor.bytes().size()), 0) << name;
  }
}

TEST_F(MpcRun, TrainsBitForBitAsMpcTrain) {
  struct Case {
    const char* model;
    std::vector<std::string> flags;
  };
  const std::vector<Case> cases = {{"lenet5", {"--amp-level=O2", "--lr-schedule=constant"}},
                                   {"bnnet", {"--amp-level=O1", "--dtype=bf16", "--lr-schedule=constant", "--seed=7"}},
                                   {"mlp", {"--optimizer=adam", "--lr-schedule=constant", "--batch-size=100"}},
                                   {"bnnet", {"--fusion", "--amp-level=O2", "--lr-schedule=constant"}}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.model);
    std::vector<std::string> arguments = {each.model};
    arguments.insert(arguments.end(), each.flags.begin(), each.flags.end());
    const std::string package = Emit(arguments, absl::StrCat("package", &each - cases.data(), ".mpcx"));
    for (const std::string& flag : {std::string("--epochs=2"), std::string("--drop-remainder"),
                                    "--save=" + File("checkpoint"), "--summary=" + File("train.json")}) {
      arguments.push_back(flag);
    }
    const ToolResult trained = Train(arguments);
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
    const nlohmann::json of_training = ReadJson(File("train.json"));
    const auto steps = of_training["epochs"][0]["steps"].get<std::size_t>();

    const ToolResult run = RunPackage({package, absl::StrCat("--steps=", 2 * steps), "--predict",
                                       "--json=" + File("run.json"), "--dump-state=" + File("state")});
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const nlohmann::json of_run = ReadJson(File("run.json"));
    const auto losses = of_run["losses"].get<std::vector<double>>();
    ASSERT_EQ(losses.size(), 2 * steps);
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      const auto begin = losses.begin() + static_cast<std::ptrdiff_t>(epoch * steps);
      const double sum = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(steps), 0.0);
      EXPECT_EQ(sum / static_cast<double>(steps), of_training["train_loss"][epoch].get<double>()) << "epoch " << epoch;
    }
    ExpectSameState(File("state"), File("checkpoint"));
    EXPECT_EQ(of_run["test_accuracy"], of_training["test_accuracy"]);
    // Without a scaler mpc-run has nothing to count.
    const nlohmann::json& skipped = of_run["skipped_steps"];
    EXPECT_EQ(skipped.is_null() ? nlohmann::json(0) : skipped, of_training["skipped_steps"]);
  }
}

TEST_F(MpcRun, TrainsOnTextBitForBitAsMpcTrain) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + i * i % 23);
  WriteFile(File("text"), text);
  const std::vector<std::string> flags = {"gpt2-tiny",        "--tokens=16", "--batch-size=4",
                                          "--seed=3",         "--steps=12",  "--lr-schedule=constant",
                                          "--warmup-steps=0", "--data=text"};
  for (const std::string& file : {std::string(), "--text-file=" + File("text")}) {
    SCOPED_TRACE(file);
    std::vector<std::string> arguments = flags;
    if (!file.empty()) arguments.push_back(file);
    const std::string package = Emit(arguments, file.empty() ? "sonnets.mpcx" : "text.mpcx");
    arguments.insert(arguments.end(), {"--validate-every=0", "--sample=0", "--save=" + File("checkpoint"),
                                       "--summary=" + File("train.json")});
    const ToolResult trained = Train(arguments);
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
    // A file stands for --data=text.
    const ToolResult run = RunPackage({package, file.empty() ? "--data=text" : file, "--steps=12", "--predict",
                                       "--json=" + File("run.json"), "--dump-state=" + File("state")});
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const nlohmann::json of_run = ReadJson(File("run.json"));
    const auto losses = of_run["losses"].get<std::vector<double>>();
    EXPECT_EQ(std::accumulate(losses.begin(), losses.end(), 0.0) / 12,
              ReadJson(File("train.json"))["train_loss"][0].get<double>());
    ExpectSameState(File("state"), File("checkpoint"));
    EXPECT_EQ(of_run["data"], "text");
    if (file.empty()) continue;
    // Of 300 bytes of validation each is predicted once, but for the first, in windows of 16.
    EXPECT_EQ(of_run["test_rows"], 18);
    EXPECT_EQ(of_run["test_labels"], 18 * 16);
    EXPECT_THAT(run.output, testing::ContainsRegex("test accuracy [0-9.]+ % .[0-9]+ of 288."));
  }
}

TEST_F(MpcRun, TakesAnyNumberOfThreadsWhateverTheFileWasMadeFor) {
  for (const char* model : {"lenet5", "bnnet"}) {
    std::vector<std::string> packages;
    for (const int threads : {1, 2}) {
      packages.push_back(File(absl::StrCat(model, threads, ".mpcx")));
      const ToolResult made = RunTool(MPC_TRAIN, {model, absl::StrCat("--threads=", threads), "--data=synthetic",
                                                  "--batch-size=8", "--emit=" + packages.back()});
      ASSERT_EQ(made.exit_code, 0) << made.error;
    }
    for (const int threads : {1, 2, 3, 7}) {
      std::vector<std::string> states;
      for (const std::string& package : packages) {
        SCOPED_TRACE(absl::StrCat(package, " with ", threads, " threads"));
        const ToolResult run = RunPackage({package, absl::StrCat("--threads=", threads), "--data=synthetic",
                                           "--steps=2", "--predict", "--dump-state=" + File("state")});
        ASSERT_EQ(run.exit_code, 0) << run.error;
        states.push_back(ReadFile(File("state")));
      }
      EXPECT_EQ(states[0], states[1]) << "with equal counts, equal bits: " << model << ", " << threads;
    }
  }
}

}  // namespace
}  // namespace mpc::tools
