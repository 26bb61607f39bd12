// nn::SyncBatchNorm: batch normalisation of the rows of all processes, against BatchNorm of the whole batch.
#include "frontend/nn/sync_batch_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/process_group.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ConvNorm;
using testing::ErrorOf;
using testing::ExpectEqualInAllRanks;
using testing::ExpectEqualParameters;
using ::testing::HasSubstr;
using testing::RunInGroup;
using testing::Values;

constexpr std::int64_t kChannels = 3;

/// Of the loss sum(norm(x) * weights): y, and the derivatives by x, gamma and beta. A step in kStandAlone leaves
/// gradients what they are in the process.
struct NormStep : nn::TrainingStep {
  MPC_CELL(NormStep, zero, norm)
  NormStep(const Shape& shape, bool synchronized)
      : zero(shape, Zeros()), norm(kChannels, {.gamma_init = Constant(1.25), .beta_init = Constant(-0.5)}) {
    if (synchronized) nn::ConvertToSyncBatchNorm(norm);
    norm.SetTrain(true);
  }
  std::vector<Tensor> Construct(const std::vector<Tensor>& inputs) {
    const Tensor y = norm(zero + inputs[0]);
    std::vector<Tensor> results = ops::Backward(reduce_sum(y * inputs[1]), {zero, norm.gamma, norm.beta});
    results.insert(results.begin(), y);
    return results;
  }
  Parameter zero;
  nn::BatchNorm2d norm;
};

/// What is known of the channels of a batch [N, C, H, W], in f64.
struct ChannelFacts {
  double mean = 0, variance = 0, largest = 0, deviation = 0;
};

ChannelFacts FactsOf(const Tensor& x, std::int64_t channel) {
  const std::vector<float> values = x.ToFloats();
  const std::int64_t plane = x.dim(2) * x.dim(3);
  std::vector<double> of_channel;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (i / plane % kChannels == channel) of_channel.push_back(values[static_cast<std::size_t>(i)]);
  }
  ChannelFacts facts;
  for (const double value : of_channel) facts.mean += value / static_cast<double>(of_channel.size());
  for (const double value : of_channel) {
    facts.variance += (value - facts.mean) * (value - facts.mean) / static_cast<double>(of_channel.size());
    facts.largest = std::max(facts.largest, std::abs(value));
    facts.deviation = std::max(facts.deviation, std::abs(value - facts.mean));
  }
  return facts;
}

/// How far two computations in f32 may be apart, of n elements a channel that are at most `largest`. u is 2^-24. A sum
/// of n terms in any order has an error of at most n u times the sum of their magnitudes.
struct NormBounds {
  NormBounds(const ChannelFacts& facts, std::int64_t n, double gamma, double largest_cotangent) {
    const double u = 0x1p-24, sums = static_cast<double>(n) + 4, scale = 1 / std::sqrt(facts.variance + 1e-5);
    mean = sums * u * facts.largest;
    // The mean of squares of deviations, each with the error of the mean; its square is of second order.
    variance = (sums + 4) * u * facts.variance + 2 * mean * mean;
    const double relative = 0.5 * variance * scale * scale + 4 * u;  // of 1 / sqrt(variance + epsilon)
    const double normal = facts.deviation * scale;                   // the largest |x_hat|
    const double of_normal = mean * scale + normal * (relative + 2 * u);
    y = gamma * of_normal + 2 * u * (gamma * normal + 1);
    // dx = gamma / deviation * (d - mean(d) - x_hat * mean(d * x_hat)), and mean(|x_hat|) is at most 1.
    const double d = largest_cotangent, of_mean = (sums + 2) * u * d + d * of_normal;
    dx = gamma * scale * (d * (2 + normal) * (relative + 6 * u) + of_mean * (1 + normal) + d * of_normal);
    dbeta = static_cast<double>(n) * sums * u * d;
    dgamma = dbeta + static_cast<double>(n) * d * of_normal;
    // Both computations have these errors.
    for (double* bound : {&mean, &variance, &y, &dx, &dbeta, &dgamma}) *bound *= 2;
  }
  double mean = 0, variance = 0, y = 0, dx = 0, dbeta = 0, dgamma = 0;
};

/// Rows [begin, begin + count) of a batch.
Tensor RowsOf(const Tensor& x, std::int64_t begin, std::int64_t count) {
  Shape shape = x.shape();
  shape[0] = count;
  const std::size_t row = x.bytes().size() / static_cast<std::size_t>(x.dim(0));
  return Tensor::FromBytes({x.dtype(), shape}, x.bytes().data() + static_cast<std::size_t>(begin) * row,
                           static_cast<std::size_t>(count) * row);
}

void ExpectNear(const Tensor& actual, const Tensor& expected, const std::vector<NormBounds>& bounds,
                double NormBounds::*bound, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<float> a = actual.ToFloats(), b = expected.ToFloats();
  const std::int64_t plane = actual.rank() == 4 ? actual.dim(2) * actual.dim(3) : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto channel = static_cast<std::size_t>(static_cast<std::int64_t>(i) / plane % kChannels);
    EXPECT_NEAR(a[i], b[i], bounds[channel].*bound) << what << ", element " << i;
  }
}

/// Rank r has `rows[r]` rows. Every process computes the norm of the whole batch as well, alone.
void ExpectTheNormOfTheWholeBatch(int rank, const std::vector<std::int64_t>& rows) {
  const auto own_rows = rows.begin() + rank;
  const std::int64_t begin = std::accumulate(rows.begin(), own_rows, std::int64_t{0});
  const Shape whole_shape = {std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), kChannels, 4, 5};
  // Means unlike zero, and ranks unlike each other.
  const Tensor whole =
      Values(whole_shape, 1) * 2.0 + iota(whole_shape, 0, DType::kF32) * 0.25 + iota(whole_shape, 1, DType::kF32) * 3.0;
  const Tensor cotangents = Values(whole_shape, 2);
  const Tensor own = RowsOf(whole, begin, *own_rows);

  NormStep synchronized(own.shape(), true), alone(whole_shape, false);
  const std::vector<Tensor> actual = synchronized(own, RowsOf(cotangents, begin, *own_rows));
  const std::vector<Tensor> expected = alone(whole, cotangents);
  MPC_ASSERT_OK(actual[0].status());
  MPC_ASSERT_OK(expected[0].status());

  std::vector<NormBounds> bounds;
  for (std::int64_t channel = 0; channel < kChannels; ++channel) {
    bounds.emplace_back(FactsOf(whole, channel), whole.size() / kChannels, 1.25, 1.0);
  }
  const auto part = [&](const Tensor& of_whole) { return RowsOf(of_whole, begin, *own_rows); };
  ExpectNear(actual[0], part(expected[0]), bounds, &NormBounds::y, "y");
  ExpectNear(actual[1], part(expected[1]), bounds, &NormBounds::dx, "dx");
  ExpectNear(ops::AllReduce(actual[2]), expected[2], bounds, &NormBounds::dgamma, "dgamma");
  ExpectNear(ops::AllReduce(actual[3]), expected[3], bounds, &NormBounds::dbeta, "dbeta");
  // Running statistics move by a tenth of the batch's; the variance is unbiased, n / (n - 1) <= 2.
  const Tensor mean = *synchronized.norm.moving_mean.Value(), variance = *synchronized.norm.moving_variance.Value();
  ExpectNear(mean, *alone.norm.moving_mean.Value(), bounds, &NormBounds::mean, "running mean");
  ExpectNear(variance, *alone.norm.moving_variance.Value(), bounds, &NormBounds::variance, "running variance");
  ExpectEqualInAllRanks(mean, "running mean");
  ExpectEqualInAllRanks(variance, "running variance");
}

TEST(SyncBatchNorm, IsBatchNormOfTheRowsOfAllProcesses) {
  for (const std::size_t size : {2, 4}) {
    const std::vector<std::int64_t> rows(size, 2);
    EXPECT_TRUE(RunInGroup(static_cast<int>(size), [&rows](int rank) { ExpectTheNormOfTheWholeBatch(rank, rows); }))
        << size;
  }
}

TEST(SyncBatchNorm, WeighsStatisticsByTheRowsOfEachProcess) {
  for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{8, 2}, {1, 4, 2, 3}}) {
    EXPECT_TRUE(RunInGroup(static_cast<int>(rows.size()), [&rows](int rank) {
      ExpectTheNormOfTheWholeBatch(rank, rows);
    })) << rows.size();
  }
}

/// The running variance is unbiased by the rows of all. Of 0, 0, 0 and 8 it is 16.
TEST(SyncBatchNorm, MovesTheRunningVarianceByAllRows) {
  EXPECT_TRUE(RunInGroup(2, [](int rank) {
    nn::SyncBatchNorm norm(1, {.momentum = 0});
    norm.SetTrain(true);
    const Tensor x = rank == 0 ? Tensor::From({8.0f}, {1, 1}) : Tensor::From({0.0f, 0.0f, 0.0f}, {3, 1});
    MPC_EXPECT_OK(norm(x).status());
    EXPECT_EQ(norm.moving_mean.Value()->ToFloats(), std::vector<float>{2});
    // 12 * (4 / 3), in which each operation rounds once.
    EXPECT_NEAR(norm.moving_variance.Value()->ToFloats()[0], 16, 3 * 0x1p-20);
    ExpectEqualInAllRanks(*norm.moving_variance.Value(), "running variance");
  }));
}

TEST(SyncBatchNorm, IsBatchNormInOneProcessAndOutsideTraining) {
  EXPECT_TRUE(RunInGroup(2, [](int rank) {
    nn::SyncBatchNorm synchronized(kChannels);
    nn::BatchNorm2d images(kChannels);
    nn::BatchNorm1d rows(kChannels);
    // A mode of each rank's own: only training asks the others.
    const Tensor x = Values({2 + rank, kChannels, 2, 2}), r = Values({4, kChannels});
    EXPECT_EQ(synchronized(x).ToFloats(), images(x).ToFloats());
    EXPECT_EQ(synchronized(r).ToFloats(), rows(r).ToFloats());
    distributed::Finalize();
    for (nn::Cell* cell : std::vector<nn::Cell*>{&synchronized, &images}) cell->SetTrain(true);
    EXPECT_EQ(synchronized(x).ToFloats(), images(x).ToFloats());
    EXPECT_EQ(synchronized.moving_variance.Value()->ToFloats(), images.moving_variance.Value()->ToFloats());
  }));
}

TEST(SyncBatchNorm, TakesOneRowOfEachProcess) {
  EXPECT_TRUE(RunInGroup(2, [](int rank) {
    nn::SyncBatchNorm norm(1, {.eps = 0});
    norm.SetTrain(true);
    // 2 and 6: mean 4, deviation 2.
    EXPECT_EQ(norm(Tensor::From({rank == 0 ? 2.0f : 6.0f}, {1, 1})).ToFloats(),
              std::vector<float>{rank == 0 ? -1.0f : 1.0f});
    distributed::Finalize();
    EXPECT_THAT(ErrorOf(norm(Tensor::From({2.0f}, {1, 1}))), HasSubstr("needs more than one value a channel"));
    EXPECT_THAT(ErrorOf(norm(Values({2, 1, 2}))),
                HasSubstr("SyncBatchNorm expects a rank-2 or rank-4 tensor with 1 channels on axis 1"));
  }));
}

TEST(ConvertToSyncBatchNorm, KeepsNamesAndCountsNorms) {
  EXPECT_TRUE(RunInGroup(2, [](int rank) {
    ConvNorm network;
    network.SetTrain(true);
    const Tensor x = Values({2, 2, 6, 6}, rank);
    const auto names = [&network] {
      std::vector<std::string> result;
      for (const auto& [name, parameter] : network.ParametersAndNames()) result.push_back(name);
      return result;
    };
    const std::vector<std::string> before = names();
    // Alone, statistics follow the rows of the process. The Cell is traced again when it is converted.
    MPC_EXPECT_OK(network(x).status());
    const Tensor own = *network.norm.moving_mean.Value();
    EXPECT_EQ(nn::ConvertToSyncBatchNorm(network), 1U);
    EXPECT_EQ(names(), before);
    EXPECT_TRUE(network.norm.synchronized());
    MPC_EXPECT_OK(network.norm.moving_mean.SetData(Tensor::Zeros(own.shape())));
    MPC_EXPECT_OK(network(x).status());
    const Tensor shared = *network.norm.moving_mean.Value();
    EXPECT_NE(shared.ToFloats(), own.ToFloats());
    ExpectEqualInAllRanks(shared, "running mean");
    nn::Dense plain(2, 2);
    EXPECT_EQ(nn::ConvertToSyncBatchNorm(plain), 0U);
  }));
}

/// A Model's step gathers running statistics itself, but for those that are equal already.
TEST(SyncBatchNorm, MovesRunningStatisticsOnceInAModel) {
  using testing::Level;
  for (const Level& level :
       {Level{"O0", {}}, Level{"O1", DType::kF16}, Level{"O2", DType::kF16}, Level{"O3", DType::kBF16}}) {
    EXPECT_TRUE(RunInGroup(4, [&level](int) {
      MPC_ASSERT_OK(SetAutoParallelContext({.parallel_mode = ParallelMode::kDataParallel}));
      ConvNorm network, whole;
      MPC_ASSERT_OK(whole.conv.weight.SetData(*network.conv.weight.Value()));
      nn::ConvertToSyncBatchNorm(network);
      nn::SoftmaxCrossEntropyWithLogits loss;
      nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
      Model model(network, loss, optimizer,
                  {.amp_level = level.level,
                   .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 1024}),
                   .amp_dtype = level.dtype});
      // Each rank takes one batch of the only update.
      MPC_ASSERT_OK(model.Train(1, testing::GoodBatches({2, 6, 6}, 4)));
      ASSERT_EQ(model.skipped_steps(), 0);
      ExpectEqualParameters(network);

      std::vector<Tensor> images;
      for (std::int64_t i = 0; i < 4; ++i) images.push_back(testing::MakeBatch({2, 6, 6}, 8, i)[0]);
      whole.SetTrain(true);
      MPC_ASSERT_OK(whole(concat(images)).status());
      const std::vector<float> moved = network.norm.moving_mean.Value()->ToFloats();
      const std::vector<float> expected = whole.norm.moving_mean.Value()->ToFloats();
      float largest = 0;
      for (const float mean : expected) largest = std::max(largest, std::abs(mean));
      // Four moves would make the means 3.4 times as much, and none would leave zeros. Half of the largest is far more
      // than what bf16 rounds.
      for (std::size_t i = 0; i < moved.size(); ++i) EXPECT_NEAR(moved[i], expected[i], 0.5f * largest) << i;
    })) << level.level;
  }
}

TEST(SyncBatchNorm, RefusesAStepThatAccumulates) {
  EXPECT_TRUE(test::RunProcesses(1, [](int) {
    ConvNorm network;
    nn::ConvertToSyncBatchNorm(network);
    nn::SoftmaxCrossEntropyWithLogits loss;
    nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
    Model model(network, loss, optimizer, {.accumulation_steps = 2});
    EXPECT_THAT(
        ErrorOf(model.Train(1, testing::GoodBatches({2, 6, 6}, 4))),
        HasSubstr("convnorm/norm: a synchronized BatchNorm2d normalises by the rows of all 1 processes at once, "
                  "and each accumulates 2 micro-batches of an update"));
    return 0;
  }));
}

}  // namespace
}  // namespace mpc
