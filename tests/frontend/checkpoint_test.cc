#include "frontend/state/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/state/safetensors.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ConvNorm;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TwoLayers;
using testing::Values;

/// A network with a table of integers beside its weight.
class Indexed : public nn::Cell {
 public:
  MPC_CELL(Indexed, weight, table)
  explicit Indexed(std::int32_t first) : table(Tensor::From({first, 7}, {2}), {.requires_grad = false}) {}
  Tensor Construct(Tensor x) { return x * weight; }
  Parameter weight{{2}, Ones()};
  Parameter table;
};

TEST(Checkpoint, IntegersComeBack) {
  testing::TemporaryFolder folder;
  const std::string path = folder / "net.safetensors";
  Indexed saved(3), loaded(0);
  MPC_ASSERT_OK(SaveCheckpoint(saved, path));
  MPC_ASSERT_OK(LoadParamIntoNet(loaded, path).status());
  EXPECT_EQ(loaded.table.Value()->ToFloats(), (std::vector<float>{3, 7}));
}

TEST(Checkpoint, RoundTripIsBitEqual) {
  testing::TemporaryFolder folder;
  const std::string path = folder / "net.safetensors";
  testing::Training<ConvNorm> training({"O2", DType::kF16}, FixedLossScaleManager({.loss_scale = 64}));
  MPC_ASSERT_OK(training.model->Train(1, testing::GoodBatches({2, 6, 6}, 3)));
  MPC_ASSERT_OK(SaveCheckpoint(*training.network, path));

  SetSeed(99);
  ConvNorm loaded;
  absl::StatusOr<LoadReport> report = LoadParamIntoNet(loaded, path);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->loaded.size(), 7u) << "running statistics too";
  EXPECT_THAT(report->missing, IsEmpty());
  EXPECT_EQ(testing::ParametersOf(loaded), testing::ParametersOf(*training.network));

  Model predictor(loaded, {.amp_level = "O2"});
  const Tensor image = Values({2, 2, 6, 6});
  EXPECT_EQ(predictor.Predict(image)->ToFloats(), training.model->Predict(image)->ToFloats());
}

TEST(Checkpoint, StrictListsEveryProblemAndLoadsNothing) {
  testing::TemporaryFolder folder;
  TwoLayers net;
  Safetensors content;
  content.tensors = {{"fc1.weight", Values({8, 6}, 9)},
                     {"fc1.bias", Values({7})},
                     {"fc2.weight", Tensor::Zeros({3, 8}, DType::kI32)},
                     {"fc3.bias", Values({3})}};
  const std::string path = folder / "other.safetensors";
  MPC_ASSERT_OK(SaveSafetensors(path, content));
  const testing::Snapshot before = testing::ParametersOf(net);
  const absl::Status status = LoadParamIntoNet(net, path).status();
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("'fc1.bias' is tensor<7xf32> in the file, tensor<8xf32> in the network"),
                               HasSubstr("'fc2.weight' is tensor<3x8xi32>"), HasSubstr("'fc2.bias' is missing"),
                               HasSubstr("'fc3.bias' is no parameter of TwoLayers"), HasSubstr("nothing was loaded")));
  EXPECT_EQ(testing::ParametersOf(net), before);
}

TEST(Checkpoint, PartialLoadsWhatFitsAndReportsTheRest) {
  testing::TemporaryFolder folder;
  TwoLayers net;
  Safetensors content;
  content.tensors = {{"fc1.bias", Values({8}, 9)}, {"head.bias", Values({3})}};
  const std::string path = folder / "part.safetensors";
  MPC_ASSERT_OK(SaveSafetensors(path, content));
  EXPECT_FALSE(LoadParamIntoNet(net, path).ok());
  absl::StatusOr<LoadReport> report = LoadParamIntoNet(net, path, {.strict = false});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->loaded, ElementsAre("fc1.bias"));
  EXPECT_THAT(report->missing, ElementsAre("fc1.weight", "fc2.weight", "fc2.bias"));
  EXPECT_THAT(report->unexpected, ElementsAre("head.bias"));
  EXPECT_EQ(net.fc1.bias.Value()->ToFloats(), Values({8}, 9).ToFloats());
  // A misshapen entry is an error in both ways.
  content.tensors[0].second = Values({9});
  MPC_ASSERT_OK(SaveSafetensors(path, content));
  EXPECT_FALSE(LoadParamIntoNet(net, path, {.strict = false}).ok());
}

TEST(Checkpoint, LowEntriesAreWidened) {
  testing::TemporaryFolder folder;
  TwoLayers net;
  Safetensors content;
  for (const auto& [name, parameter] : net.ParametersAndNames()) {
    content.tensors.emplace_back(name, parameter.Value()->To(DType::kF16));
  }
  const std::string path = folder / "half.safetensors";
  MPC_ASSERT_OK(SaveSafetensors(path, content));
  ASSERT_TRUE(LoadParamIntoNet(net, path).ok());
  EXPECT_EQ(net.fc1.weight.Value()->ToFloats(), content.Find("fc1.weight")->ToFloats());
}

TEST(Checkpoint, DamagedFilesLeaveTheNetworkAlone) {
  testing::TemporaryFolder folder;
  TwoLayers net;
  const std::string path = folder / "net.safetensors";
  MPC_ASSERT_OK(SaveCheckpoint(net, path));
  const std::string good = testing::ReadAll(path);
  const testing::Snapshot before = testing::ParametersOf(net);
  std::string header_lost = good;
  header_lost[10] = '\0';
  const std::map<std::string, std::string> damaged = {{"truncated", good.substr(0, good.size() - 5)},
                                                      {"longer", good + "x"},
                                                      {"empty", ""},
                                                      {"header", header_lost},
                                                      {"text", "not a checkpoint at all"}};
  for (const auto& [name, content] : damaged) {
    const absl::Status status = LoadParamIntoNet(net, folder.Write(name, content)).status();
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_EQ(testing::ParametersOf(net), before) << name;
  }
  EXPECT_FALSE(LoadParamIntoNet(net, folder / "absent").ok());
  EXPECT_FALSE(SaveCheckpoint(net, folder / "no/such/folder").ok());
}

}  // namespace
}  // namespace mpc
