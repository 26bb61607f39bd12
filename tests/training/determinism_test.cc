// Equal seeds and thread counts give equal bits.
#include "models/bnnet.h"
#include "models/lenet5.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

class DeterminismAtLevel : public ::testing::TestWithParam<Level> {};

template <typename Network>
Snapshot TrainTwentySteps(const Level& level) {
  Training<Network> training(level, FixedLossScaleManager({.loss_scale = 64}));
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 20; ++i) batches.push_back(MakeBatch({1, 32, 32}, 4, i, 10));
  MPC_EXPECT_OK(training.model->Train(1, Batches(batches).Shuffle(3)));
  return StateOf(*training.model);
}

TEST_P(DeterminismAtLevel, TwoRunsOfLeNet5AreBitEqual) {
  const Snapshot first = TrainTwentySteps<models::LeNet5>(GetParam());
  EXPECT_EQ(Differences(first, TrainTwentySteps<models::LeNet5>(GetParam())), std::vector<std::string>{});
}

TEST_P(DeterminismAtLevel, TwoRunsOfTheBatchNormNetAreBitEqual) {
  const Snapshot first = TrainTwentySteps<models::BnNet>(GetParam());
  EXPECT_EQ(Differences(first, TrainTwentySteps<models::BnNet>(GetParam())), std::vector<std::string>{});
}

TEST_P(DeterminismAtLevel, TwoRunsWithDropoutAreBitEqual) {
  const auto train = [] {
    Training<ConvNorm> training(GetParam(), FixedLossScaleManager({.loss_scale = 64}));
    MPC_EXPECT_OK(training.model->Train(4, GoodBatches({2, 6, 6}, 5)));
    return StateOf(*training.model);
  };
  const Snapshot first = train();
  EXPECT_EQ(Differences(first, train()), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Levels, DeterminismAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

TEST(Determinism, OneThreadCountGivesEqualBits) {
  for (int threads : {1, 2}) {
    MPC_ASSERT_OK(SetContext({.num_threads = threads}));
    const Level level{"O2", DType::kBF16};
    const Snapshot first = TrainTwentySteps<models::LeNet5>(level);
    EXPECT_EQ(Differences(first, TrainTwentySteps<models::LeNet5>(level)), std::vector<std::string>{}) << threads;
  }
}

TEST(Determinism, AnotherSeedGivesOtherWeights) {
  SetSeed(1);
  TwoLayers first;
  SetSeed(2);
  TwoLayers second;
  EXPECT_NE(first.fc1.weight.Value()->ToFloats(), second.fc1.weight.Value()->ToFloats());
}

}  // namespace
}  // namespace mpc::testing
