// Weights that PyTorch saved with Python's safetensors, and the way back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint.h"
#include "frontend/state/safetensors.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ConvNorm;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string GoldenPath() { return absl::StrCat(MPC_CHECKPOINT_GOLDENS, "/pytorch_conv_norm.safetensors"); }

/// What tools/parity/make_checkpoint_golden.py gives the tensor at `stream`.
std::vector<float> GoldenValues(std::int64_t stream, std::int64_t size) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>((i * 37 + stream * 11) % 64 - 32) / 32);
  return values;
}

/// The Parameters in the golden's order of tensors.
constexpr const char* kNames[] = {"conv.weight",          "norm.gamma", "norm.beta", "norm.moving_mean",
                                  "norm.moving_variance", "fc.weight",  "fc.bias"};

TEST(PyTorchNames, AFileOfPythonLoads) {
  ConvNorm net;
  const absl::StatusOr<LoadReport> report = LoadParamIntoNet(net, GoldenPath(), {.names = NameMap::PyTorch()});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->loaded.size(), 7u);
  EXPECT_THAT(report->unexpected, IsEmpty()) << "num_batches_tracked is ignored";
  for (std::int64_t stream = 0; stream < 7; ++stream) {
    const absl::StatusOr<Parameter> parameter = net.GetParameter(kNames[stream]);
    ASSERT_TRUE(parameter.ok()) << parameter.status();
    EXPECT_EQ(parameter->Value()->ToFloats(), GoldenValues(stream, NumElements(parameter->shape()))) << kNames[stream];
  }
}

TEST(PyTorchNames, WithoutTheMapEveryOtherNameIsListed) {
  ConvNorm net;
  const testing::Snapshot before = testing::ParametersOf(net);
  const absl::Status status = LoadParamIntoNet(net, GoldenPath()).status();
  for (const char* part : {"'norm.gamma' is missing", "'norm.moving_variance' is missing",
                           "'norm.running_mean' is no parameter", "'norm.num_batches_tracked' is no parameter"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_EQ(testing::ParametersOf(net), before);
}

TEST(PyTorchNames, SavingGoesTheOtherWay) {
  const testing::TemporaryFolder folder;
  ConvNorm net;
  ASSERT_TRUE(LoadParamIntoNet(net, GoldenPath(), {.names = NameMap::PyTorch()}).ok());
  MPC_ASSERT_OK(SaveCheckpoint(net, folder / "x", {.names = NameMap::PyTorch()}));
  const absl::StatusOr<Safetensors> saved = LoadSafetensors(folder / "x");
  const absl::StatusOr<Safetensors> golden = LoadSafetensors(GoldenPath());
  ASSERT_TRUE(saved.ok() && golden.ok());
  EXPECT_EQ(saved->metadata.at("format"), "pt");
  EXPECT_EQ(saved->tensors.size() + 1, golden->tensors.size());
  for (const auto& [name, tensor] : saved->tensors) {
    const Tensor* found = golden->Find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->bytes(), tensor.bytes()) << name;
  }
}

TEST(PyTorchNames, PythonsLibraryReadsOurFilesAndWritesTheSameBytes) {
  const char* chosen = std::getenv("MPC_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import safetensors.numpy' >/dev/null 2>&1").c_str()) != 0) {
    GTEST_SKIP() << python << " has no safetensors; MPC_PYTHON names another interpreter";
  }
  const testing::TemporaryFolder folder;
  testing::Training<ConvNorm> training({"O2", DType::kF16});
  MPC_ASSERT_OK(training.model->Train(1, testing::GoodBatches({2, 6, 6}, 2)));
  MPC_ASSERT_OK(training.model->SaveCheckpoint(folder / "training"));
  MPC_ASSERT_OK(SaveCheckpoint(*training.network, folder / "weights", {.names = NameMap::PyTorch()}));
  const std::string script = folder.Write("check.py",
                                          "import sys\n"
                                          "from safetensors import safe_open\n"
                                          "from safetensors.numpy import save_file\n"
                                          "with safe_open(sys.argv[1], 'numpy') as file:\n"
                                          "    tensors = {name: file.get_tensor(name) for name in file.keys()}\n"
                                          "    save_file(tensors, sys.argv[2], metadata=file.metadata())\n");
  for (const char* name : {"training", "weights"}) {
    const std::string command = absl::StrCat(python, " ", script, " ", folder / name, " ", folder / "again");
    ASSERT_EQ(std::system(command.c_str()), 0);
    const absl::StatusOr<Safetensors> own = LoadSafetensors(folder / name);
    const absl::StatusOr<Safetensors> again = LoadSafetensors(folder / "again");
    ASSERT_TRUE(own.ok() && again.ok()) << name;
    EXPECT_EQ(own->metadata, again->metadata);
    ASSERT_EQ(own->tensors.size(), again->tensors.size());
    for (std::size_t i = 0; i < own->tensors.size(); ++i) {
      EXPECT_EQ(own->tensors[i].first, again->tensors[i].first) << "the order in the file too";
      EXPECT_EQ(own->tensors[i].second.bytes(), again->tensors[i].second.bytes()) << own->tensors[i].first;
    }
    // The order of metadata is Python's choice, a new one in every run.
    EXPECT_EQ(testing::ReadAll(folder / name).size(), testing::ReadAll(folder / "again").size());
  }
}

}  // namespace
}  // namespace mpc
