// A Model that trains has its state where its flat updates want it, whatever it did before with the same bits.
#include "runtime/flat_updates.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

/// The state of a Model by name, with what follows parameters.
std::map<std::string, const void*> AddressesOf(const Model& model) {
  std::map<std::string, const void*> addresses;
  for (const Parameter& state : model.AllState()) addresses[state.name()] = state.entry()->data();
  for (const auto& entry : model.DerivedState()) addresses[entry->name()] = entry->data();
  return addresses;
}

/// How many buffers of flat updates the training step has, and how many of them lie together.
struct Buffers {
  int all = 0, together = 0;
};

Buffers BuffersOf(const Model& model) {
  Buffers buffers;
  const std::map<std::string, const void*> addresses = AddressesOf(model);
  for (const compiler::CompileResult* compiled : model.compiled()) {
    const runtime::Program& program = compiled->program;
    if (program.name != "train_step") continue;
    for (const runtime::FlatStateBuffer& buffer : runtime::FlatStateBuffers(program)) {
      const auto begin = [&](std::size_t i) {
        return static_cast<const std::byte*>(addresses.at(program.state[buffer.state[i]].name)) - buffer.offsets[i];
      };
      bool together = true;
      for (std::size_t i = 1; i < buffer.state.size(); ++i) together &= begin(i) == begin(0);
      ++buffers.all;
      buffers.together += together;
    }
  }
  return buffers;
}

class FlatState : public ::testing::TestWithParam<Level> {};

TEST_P(FlatState, LiesTogetherOnceAModelTrains) {
  Training<ConvNorm> training(GetParam());
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches({2, 6, 6}, 2)));
  const Buffers buffers = BuffersOf(*training.model);
  EXPECT_GE(buffers.all, 2) << "parameters and velocities";
  EXPECT_EQ(buffers.together, buffers.all);
  const std::map<std::string, const void*> addresses = AddressesOf(*training.model);
  MPC_ASSERT_OK(training.model->Predict(Values({8, 2, 6, 6})).status());
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches({2, 6, 6}, 2, /*rows=*/4)));
  for (const auto& [name, address] : AddressesOf(*training.model)) {
    const auto before = addresses.find(name);
    EXPECT_TRUE(before == addresses.end() || before->second == address) << name;
  }
}

TEST_P(FlatState, TrainsToTheSameBitsWhereAPredictionCameFirst) {
  Training<ConvNorm> plain(GetParam()), predicts_first(GetParam());
  MPC_ASSERT_OK(predicts_first.model->Predict(Values({8, 2, 6, 6})).status());
  for (const auto* training : {&plain, &predicts_first}) {
    MPC_ASSERT_OK(training->model->Train(1, GoodBatches({2, 6, 6}, 3)));
  }
  EXPECT_EQ(Differences(StateOf(*plain.model), StateOf(*predicts_first.model)), std::vector<std::string>{});
  const Buffers buffers = BuffersOf(*predicts_first.model);
  EXPECT_LT(buffers.together, buffers.all) << "parameters stay where the prediction found them";
  EXPECT_GT(buffers.together, 0) << "velocities";
}

INSTANTIATE_TEST_SUITE_P(Levels, FlatState, ::testing::Values(Level{"O0", {}}, Level{"O2", DType::kBF16}), LevelName);

}  // namespace
}  // namespace mpc::testing
