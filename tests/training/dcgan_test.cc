// AMP-21 on the DCGAN's step: two models, two optimizers, three losses with a scaler each.
#include "models/dcgan.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

constexpr std::int64_t kRows = 8;

struct DcganTraining {
  explicit DcganTraining(const char* level) {
    initialized = amp::Initialize(
        {generator, discriminator}, {optimizer_g, optimizer_d},
        {.level = level, .loss_scale = "dynamic", .max_loss_scale = 256, .num_losses = 3, .verbosity = 0});
    step.SetTrain();
  }
  absl::Status Run(const Tensor& images, const Tensor& noise) { return step(images, noise).first.status(); }

  static models::DcganOptions Options() { return {.image_size = 8, .latent_size = 6, .width = 4}; }
  models::DcganGenerator generator{Options()};
  models::DcganDiscriminator discriminator{Options()};
  nn::Adam optimizer_g{generator.TrainableParams(), {.learning_rate = 2e-3, .beta1 = 0.5}};
  nn::Adam optimizer_d{discriminator.TrainableParams(), {.learning_rate = 2e-3, .beta1 = 0.5}};
  models::DcganStep step{generator, discriminator, optimizer_g, optimizer_d};
  absl::Status initialized;
};

Tensor Images(std::int64_t step) { return tanh(Values({kRows, 1, 8, 8}, 10 + step, 2.0f)); }
Tensor Noise(std::int64_t step) { return Values({kRows, 6}, 50 + step, 2.0f); }

Tensor WithInfinity(const Tensor& tensor) {
  std::vector<float> values = tensor.ToFloats();
  values[5] = kInfinity;
  return Tensor::From(values, tensor.shape());
}

std::vector<double> Scales() {
  const auto state = amp::StateDict();
  std::vector<double> scales;
  for (const auto& [name, scaler] : *state) scales.push_back(scaler.at("loss_scale"));
  return scales;
}

bool IsStatistic(const std::string& name) { return name.find("moving_") != std::string::npos; }

class DcganOverflowAtLevel : public ::testing::TestWithParam<const char*> {};

TEST(DcganStep, ItsStateIsNamedBeforeItIsTraced) {
  DcganTraining training("O0");
  const Model model(training.step);
  std::set<std::string> names;
  for (const Parameter& entry : model.AllState()) {
    EXPECT_TRUE(names.insert(entry.name()).second) << entry.name() << " twice";
  }
  EXPECT_EQ(names.count("optimizer.generator.fc.weight.moment1"), 1u);
  EXPECT_EQ(names.count("optimizer2.discriminator.fc.weight.moment1"), 1u);
}

TEST_P(DcganOverflowAtLevel, AMP_21_RealImagesSkipTheDiscriminatorOnly) {
  SetSeed(3);
  DcganTraining training(GetParam());
  MPC_ASSERT_OK(training.initialized);
  MPC_ASSERT_OK(training.Run(Images(0), Noise(0)));
  ASSERT_EQ(*training.optimizer_d.step(), 1);
  ASSERT_EQ(*training.optimizer_g.step(), 1);
  const Snapshot discriminator = ParametersOf(training.discriminator);
  const Snapshot generator = ParametersOf(training.generator);
  MPC_ASSERT_OK(training.Run(WithInfinity(Images(1)), Noise(1)));
  EXPECT_EQ(*training.optimizer_d.step(), 1);
  EXPECT_EQ(*training.optimizer_g.step(), 2);
  const std::vector<std::string> moved = Differences(discriminator, ParametersOf(training.discriminator));
  EXPECT_FALSE(moved.empty());
  for (const std::string& name : moved) {
    // Generated images pass through the discriminator too, and those losses are finite.
    EXPECT_TRUE(IsStatistic(name)) << name;
  }
  for (const auto& [name, parameter] : training.discriminator.ParametersAndNames()) {
    for (float value : parameter.Value()->ToFloats()) ASSERT_TRUE(std::isfinite(value)) << name;
  }
  EXPECT_NE(ParametersOf(training.generator), generator);
  EXPECT_THAT(Scales(), ::testing::ElementsAre(128, 256, 256));
}

TEST_P(DcganOverflowAtLevel, AMP_21_NoiseSkipsBoth) {
  SetSeed(3);
  DcganTraining training(GetParam());
  MPC_ASSERT_OK(training.initialized);
  MPC_ASSERT_OK(training.Run(Images(0), Noise(0)));
  const Snapshot discriminator = ParametersOf(training.discriminator);
  const Snapshot generator = ParametersOf(training.generator);
  MPC_ASSERT_OK(training.Run(Images(1), WithInfinity(Noise(1))));
  EXPECT_EQ(*training.optimizer_d.step(), 1);
  EXPECT_EQ(*training.optimizer_g.step(), 1);
  // Of the discriminator's statistics those of real images move: that loss is finite.
  const std::vector<std::string> moved = Differences(discriminator, ParametersOf(training.discriminator));
  EXPECT_FALSE(moved.empty());
  for (const std::string& name : moved) {
    EXPECT_TRUE(IsStatistic(name)) << name;
  }
  EXPECT_EQ(Differences(generator, ParametersOf(training.generator)), std::vector<std::string>{});
  EXPECT_THAT(Scales(), ::testing::ElementsAre(256, 128, 128));
}

INSTANTIATE_TEST_SUITE_P(Levels, DcganOverflowAtLevel, ::testing::Values("O0", "O1", "O2", "O3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mpc::testing
