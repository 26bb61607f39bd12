// Steps of two networks that ask one of them for its Parameters, or set its mode, while they are traced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "frontend/state/safetensors.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using testing::TwoLayers;
using testing::Values;

data::Dataset OneColumn(std::vector<data::Row> batches) { return data::GeneratorDataset(std::move(batches), {"x"}); }

/// What a step asks its second network for.
enum class Asks { kNothing, kTrainable, kPenalty, kOneByName, kAverage, kFrozen, kSummary };

/// A generator that is frozen, and a discriminator that is trained.
class TwoNetworks : public nn::TrainingStep {
 public:
  MPC_CELL(TwoNetworks, gen, disc)
  TwoNetworks(TwoLayers& gen, TwoLayers& disc, nn::Optimizer& optimizer, Asks asks)
      : gen(gen), disc(disc), optimizer(optimizer), asks_(asks) {}

  Tensor Construct(Tensor x) {
    if (asks_ == Asks::kFrozen) MPC_EXPECT_OK(gen.SetRequiresGrad("", false));
    if (asks_ == Asks::kSummary) summary = disc.Summary();
    Tensor loss = reduce_mean(square(disc(x))) + reduce_mean(square(gen(x)));
    if (asks_ == Asks::kPenalty) {
      for (const auto& [name, parameter] : disc.ParametersAndNames()) {
        paths.push_back(name);
        loss = loss + reduce_sum(square(parameter)) * 0.01;
      }
    }
    if (asks_ == Asks::kOneByName) loss = loss + reduce_sum(square(*disc.GetParameter("fc1.weight"))) * 0.01;
    optimizer(ops::Backward(loss, asks_ == Asks::kTrainable ? disc.TrainableParams() : optimizer.parameters()));
    if (asks_ == Asks::kAverage) {
      const std::vector<std::pair<std::string, Parameter>> from = disc.ParametersAndNames();
      std::vector<std::pair<std::string, Parameter>> to = gen.ParametersAndNames();
      for (std::size_t i = 0; i < from.size(); ++i) {
        to[i].second.Assign(Tensor(to[i].second) * 0.5 + Tensor(from[i].second) * 0.5);
      }
    }
    return loss;
  }
  nn::CellFunction predicted_network() const override { return disc; }
  std::vector<nn::Optimizer*> optimizers() const override { return {&optimizer}; }

  TwoLayers& gen;
  TwoLayers& disc;
  nn::Optimizer& optimizer;
  std::vector<std::string> paths;
  std::string summary;

 private:
  Asks asks_;
};

struct TwoNetworkTraining {
  explicit TwoNetworkTraining(Asks asks)
      : optimizer(disc.TrainableParams(), {.learning_rate = 0.1, .momentum = 0.9}), step(gen, disc, optimizer, asks) {
    MPC_EXPECT_OK(gen.SetRequiresGrad("", false));
  }
  TwoLayers gen, disc;
  nn::SGD optimizer;
  TwoNetworks step;
};

class SubCellParameters : public ::testing::TestWithParam<Asks> {};

INSTANTIATE_TEST_SUITE_P(All, SubCellParameters,
                         ::testing::Values(Asks::kNothing, Asks::kTrainable, Asks::kPenalty, Asks::kOneByName,
                                           Asks::kAverage, Asks::kFrozen, Asks::kSummary));

TEST_P(SubCellParameters, ADirectCallTrains) {
  TwoNetworkTraining training(GetParam());
  training.step.SetTrain();
  for (int call = 0; call < 2; ++call) EXPECT_EQ(ErrorOf(training.step(Values({8, 6}))), "");
}

TEST_P(SubCellParameters, ThePackageHasTheNamesOfTheCheckpoint) {
  const testing::TemporaryFolder folder;
  TwoNetworkTraining training(GetParam());
  Model model(training.step);
  MPC_ASSERT_OK(model.Train(1, OneColumn({{Values({8, 6})}})));
  const absl::StatusOr<runtime::Package> package = model.MakePackage({{"x", TensorSpec{DType::kF32, {8, 6}}}});
  MPC_ASSERT_OK(package.status());
  const std::string path = folder / "step.safetensors";
  MPC_ASSERT_OK(model.SaveCheckpoint(path));
  const absl::StatusOr<Safetensors> file = LoadSafetensors(path);
  MPC_ASSERT_OK(file.status());
  std::set<std::string> saved, bound;
  for (const auto& [name, tensor] : file->tensors) saved.insert(name);
  for (const runtime::StateBinding& binding : package->programs.front().state) bound.insert(binding.name);
  EXPECT_TRUE(bound.contains("disc.fc1.weight")) << "paths of the step";
  for (const std::string& name : bound) EXPECT_TRUE(saved.contains(name)) << name;
  MPC_EXPECT_OK(model.LoadCheckpoint(path).status());
  MPC_EXPECT_OK(model.Train(1, OneColumn({{Values({4, 6})}})));
}

TEST(SubCellParameters, PathsAreThoseFromTheCellThatIsAsked) {
  TwoNetworkTraining training(Asks::kPenalty);
  training.step.SetTrain();
  EXPECT_EQ(ErrorOf(training.step(Values({8, 6}))), "");
  EXPECT_THAT(training.step.paths, ::testing::ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_EQ(training.disc.fc1.weight.name(), "disc.fc1.weight") << "a trace keeps its names";
  EXPECT_EQ(training.disc.ParametersAndNames().front().second.name(), "fc1.weight") << "outside of a trace";
}

TEST(SubCellParameters, APenaltyOverASubCellIsDifferentiated) {
  TwoNetworkTraining plain(Asks::kNothing), penalised(Asks::kPenalty);
  for (TwoNetworkTraining* training : {&plain, &penalised}) {
    for (Parameter& parameter : training->disc.TrainableParams()) {
      MPC_ASSERT_OK(parameter.SetData(Tensor::Full(parameter.shape(), 0.5)));
    }
    training->step.SetTrain();
    EXPECT_EQ(ErrorOf(training->step(Values({8, 6}))), "");
  }
  const auto weight = [](TwoNetworkTraining& training) { return training.disc.fc1.weight.Value()->ToFloats(); };
  const std::vector<float> without = weight(plain), with = weight(penalised);
  // The gradient of 0.01 w^2 is 0.02 * 0.5, the rate is 0.1.
  for (std::size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i] - 0.001, 1e-6);
}

/// A student learns from a teacher whose norm is to stay in inference.
class Distillation : public nn::TrainingStep {
 public:
  MPC_CELL(Distillation, student, teacher)
  Distillation(testing::ConvNorm& student, testing::ConvNorm& teacher, nn::Optimizer& optimizer, bool sets_mode)
      : student(student), teacher(teacher), optimizer(optimizer), sets_mode_(sets_mode) {}
  Tensor Construct(Tensor x) {
    if (sets_mode_) teacher.SetTrain(false);
    ++traces;
    Tensor loss = mse(student(x), stop_gradient(teacher(x)));
    optimizer(ops::Backward(loss, optimizer.parameters()));
    return loss;
  }
  nn::CellFunction predicted_network() const override { return student; }

  testing::ConvNorm& student;
  testing::ConvNorm& teacher;
  nn::Optimizer& optimizer;
  int traces = 0;

 private:
  bool sets_mode_;
};

TEST(FrozenTeacher, StaysInInferenceWhereConstructSetsItsMode) {
  for (const bool sets_mode : {false, true}) {
    testing::ConvNorm student, teacher;
    MPC_ASSERT_OK(teacher.SetRequiresGrad("", false));
    nn::SGD optimizer(student.TrainableParams(), {.learning_rate = 0.1});
    Distillation step(student, teacher, optimizer, sets_mode);
    teacher.SetTrain(false);
    Model model(step);
    const std::vector<float> before = teacher.norm.moving_mean.Value()->ToFloats();
    for (int run = 0; run < 3; ++run) MPC_ASSERT_OK(model.Train(1, OneColumn({{Values({4, 2, 6, 6})}})));
    const bool moved = teacher.norm.moving_mean.Value()->ToFloats() != before;
    EXPECT_EQ(moved, !sets_mode) << "Train puts the whole step into training mode";
    EXPECT_EQ(step.traces, 1) << "later runs know what tracing does to the mode";
    ASSERT_EQ(model.compiled().size(), 1u);
    EXPECT_GT(model.peak_bytes(), 0u);
  }
}

TEST(FrozenTeacher, DirectCallsKnowWhatTracingDoesToTheMode) {
  testing::ConvNorm student, teacher;
  MPC_ASSERT_OK(teacher.SetRequiresGrad("", false));
  nn::SGD optimizer(student.TrainableParams(), {.learning_rate = 0.1});
  Distillation step(student, teacher, optimizer, /*sets_mode=*/true);
  const std::vector<float> before = teacher.norm.moving_mean.Value()->ToFloats();
  for (int call = 0; call < 3; ++call) {
    step.SetTrain();
    EXPECT_EQ(ErrorOf(step(Values({4, 2, 6, 6}))), "");
  }
  EXPECT_EQ(step.traces, 1);
  EXPECT_EQ(teacher.norm.moving_mean.Value()->ToFloats(), before);
}

/// Puts a part of the teacher back into training mode after each step.
class SetsAMode : public Callback {
 public:
  explicit SetsAMode(testing::ConvNorm& teacher) : teacher_(teacher) {}
  void OnStepEnd(RunContext& context) override { teacher_.drop.SetTrain(true); }

 private:
  testing::ConvNorm& teacher_;
};

TEST(FrozenTeacher, AProgramThatIsCompiledAgainReplacesTheOldOne) {
  testing::ConvNorm student, teacher;
  MPC_ASSERT_OK(teacher.SetRequiresGrad("", false));
  nn::SGD optimizer(student.TrainableParams(), {.learning_rate = 0.1});
  Distillation step(student, teacher, optimizer, /*sets_mode=*/true);
  Model model(step);
  SetsAMode callback(teacher);
  const data::Row batch{Values({4, 2, 6, 6})};
  MPC_ASSERT_OK(model.Train(1, OneColumn({batch, batch, batch}), {callback}));
  EXPECT_EQ(step.traces, 2) << "the modes of the second step are new, those of the third are not";
  ASSERT_EQ(model.compiled().size(), 1u) << "both are one Program once they are traced";
  EXPECT_GT(model.peak_bytes(), 0u);
}

}  // namespace
}  // namespace mpc
