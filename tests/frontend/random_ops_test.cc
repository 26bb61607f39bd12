// Random numbers inside a training step.
#include "frontend/graph/random_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::Values;

constexpr std::int64_t kDraws = 4096;

/// Draws twice from one distribution and once from the other.
class Draws : public nn::TrainingStep {
 public:
  MPC_CELL(Draws)
  std::vector<Tensor> Construct(const Tensor& x) {
    const Tensor first = ops::StandardNormal({kDraws});
    const Tensor second = ops::StandardNormal({kDraws});
    return {first + x, second, ops::UniformReal({kDraws / 4, 4})};
  }
};

std::vector<std::vector<float>> Drawn(Draws& step) {
  std::vector<std::vector<float>> values;
  for (const Tensor& each : step(Tensor::Scalar(0.0f))) {
    EXPECT_TRUE(each.status().ok()) << each.status();
    values.push_back(each.ToFloats());
  }
  return values;
}

double Mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double MeanProduct(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / static_cast<double>(a.size());
}

TEST(RandomOps, EachStepAndEachCallHasItsOwnNumbers) {
  SetSeed(3);
  Draws step;
  const auto first = Drawn(step), second = Drawn(step);
  ASSERT_EQ(first.size(), 3u);
  // Five deviations of the mean of 4,096 products of independent draws: 5 / 64.
  constexpr double kFar = 5.0 / 64;
  for (const auto& values : {first[0], first[1], second[0], second[1]}) {
    EXPECT_NEAR(Mean(values), 0, kFar);
    EXPECT_NEAR(MeanProduct(values, values), 1, 2 * kFar);
  }
  EXPECT_NEAR(MeanProduct(first[0], first[1]), 0, kFar);
  EXPECT_NEAR(MeanProduct(first[0], second[0]), 0, kFar);
  EXPECT_NEAR(MeanProduct(first[0], second[1]), 0, kFar);
  EXPECT_NEAR(Mean(first[2]), 0.5, kFar);
  EXPECT_THAT(first[2], ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(1))));
}

TEST(RandomOps, EqualSeedsGiveEqualBits) {
  const auto of_seed = [](std::uint64_t seed) {
    SetSeed(seed);
    Draws step;
    std::vector<std::vector<float>> all = Drawn(step);
    for (const auto& each : Drawn(step)) all.push_back(each);
    return all;
  };
  const auto once = of_seed(3);
  EXPECT_EQ(of_seed(3), once);
  EXPECT_NE(of_seed(4)[0], once[0]);
}

/// Adds noise while it trains.
class Noisy : public nn::Cell {
 public:
  MPC_CELL(Noisy, fc, drop)
  Tensor Construct(const Tensor& x) {
    const Tensor y = fc(x);
    if (!training()) return y;
    const Tensor noise = ops::StandardNormal(y.shape());
    return drop(y + noise * 0.5 + ops::UniformReal({y.dim(1)}));
  }
  nn::Dense fc{3, 2};
  nn::Dropout drop{{.p = 0.25}};
};

data::Dataset Batches() {
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 32; ++i) rows.push_back({Values({3}, i), Values({2}, 100 + i)});
  return data::GeneratorDataset(rows, {"x", "label"}).Batch(8);
}

/// A Model of Noisy. Its parts live as long as it does.
struct Training {
  explicit Training(const ModelOptions& options) {
    SetSeed(7);
    net = std::make_unique<Noisy>();
    opt = std::make_unique<nn::Momentum>(net->TrainableParams(), nn::MomentumOptions{.learning_rate = 0.05});
    model = std::make_unique<Model>(*net, loss, *opt, options);
  }
  std::vector<float> Weights() const { return net->fc.weight.Value()->ToFloats(); }

  std::unique_ptr<Noisy> net;
  nn::MSELoss loss;
  std::unique_ptr<nn::Momentum> opt;
  std::unique_ptr<Model> model;
};

TEST(RandomOps, AResumedRunDrawsWhatItWouldHaveDrawn) {
  const TemporaryFolder folder;
  const std::string path = folder / "half";
  for (const char* level : {"O0", "O2"}) {
    Training whole({.amp_level = level});
    MPC_ASSERT_OK(whole.model->Train(2, Batches()));
    MPC_ASSERT_OK(whole.model->SaveCheckpoint(path));
    MPC_ASSERT_OK(whole.model->Train(2, Batches()));
    Training resumed({.amp_level = level});
    const auto report = resumed.model->LoadCheckpoint(path);
    ASSERT_TRUE(report.ok()) << report.status();
    MPC_ASSERT_OK(resumed.model->Train(4, Batches()));
    EXPECT_EQ(resumed.Weights(), whole.Weights()) << level;
    const auto evaluated = resumed.model->Eval(Batches());
    EXPECT_TRUE(evaluated.ok()) << evaluated.status();
  }
}

/// The mean of w times what is drawn. Its derivative is the mean of the draws.
class DrawnLoss : public nn::Cell {
 public:
  MPC_CELL(DrawnLoss, w)
  Tensor Construct(const Tensor& x) { return reduce_mean(ops::UniformReal(x.shape()) * w); }
  Parameter w{{1}, Ones()};
};

/// Its network's result, beside labels of zero.
class ResultAsLoss : public nn::LossBase {
 public:
  MPC_CELL(ResultAsLoss)
  Tensor Construct(const Tensor& result, const Tensor& label) { return result + reduce_mean(label); }
};

/// The sum of the weight's changes by two batches, as one update of `micro_batches` or as several updates.
float Change(std::int64_t micro_batches) {
  SetSeed(11);
  DrawnLoss net;
  const auto rate = static_cast<double>(micro_batches);
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = rate, .momentum = 0});
  ResultAsLoss loss;
  Model model(net, loss, opt, {.amp_level = "O0", .accumulation_steps = micro_batches});
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 8; ++i) rows.push_back({Values({16}, i), Tensor::Zeros({1})});
  MPC_EXPECT_OK(model.Train(1, data::GeneratorDataset(rows, {"x", "label"}).Batch(4)));
  return net.w.Value()->ToFloats()[0] - 1;
}

TEST(RandomOps, MicroBatchesDrawWhatStepsDraw) {
  EXPECT_NEAR(Change(2), Change(1), 1e-6);
  EXPECT_NEAR(Change(1), -1, 0.3) << "two means of U[0, 1)";
}

TEST(RandomOps, OutsideTrainingIsRefusedByName) {
  EXPECT_THAT(ErrorOf(ops::StandardNormal({2})), HasSubstr("StandardNormal draws in a step that trains alone"));
  DrawnLoss cell;
  EXPECT_THAT(ErrorOf(cell(Values({4}))), HasSubstr("UniformReal draws in a step that trains alone"));
}

}  // namespace
}  // namespace mpc
