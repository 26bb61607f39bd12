// nn::DistributedGradReducer in training steps of one's own, and what steps do without it.
#include "frontend/nn/grad_reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/process_group.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using testing::ExpectEqualParameters;
using ::testing::HasSubstr;
using testing::MakeBatch;
using testing::ParametersOf;
using testing::RunInGroup;
using testing::Snapshot;
using testing::TwoLayers;
using Reducer = std::function<std::vector<Tensor>(std::vector<Tensor>)>;

/// MindSpore's step, with a reducer that is given.
class ReducingStep : public nn::TrainOneStepCell {
 public:
  MPC_CELL(ReducingStep)
  ReducingStep(nn::WithLossCell& network, nn::Optimizer& optimizer, Reducer reducer)
      : TrainOneStepCell(network, optimizer), reducer_(std::move(reducer)) {}
  Tensor Construct(Tensor data, Tensor label) {
    ops::ValueAndGradResult result = ops::ValueAndGrad(network, weights, {data, label});
    return ops::Depend(result.value, optimizer(reducer_(std::move(result.gradients))));
  }
  /// The base's.
  std::vector<Tensor> Own(std::vector<Tensor> gradients) const { return grad_reducer(std::move(gradients)); }

 private:
  Reducer reducer_;
};

struct Reduced {
  static TwoLayers Seeded() {
    SetSeed(7);
    return TwoLayers();
  }
  explicit Reduced(Reducer reducer) : step(with_loss, optimizer, std::move(reducer)) {}

  /// The Parameters after three updates, of which rank `rank` computes a part. All ranks have the same.
  Snapshot Trained(int rank, int size) {
    for (std::int64_t i = 0; i < 3; ++i) {
      const data::Row batch = MakeBatch({6}, 8, size * i + rank);
      const Tensor result = step(batch[0], batch[1]);
      EXPECT_TRUE(result.status().ok()) << result.status();
    }
    ExpectEqualParameters(network);
    return ParametersOf(network);
  }

  TwoLayers network = Seeded();
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  nn::Momentum optimizer{network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9}};
  nn::WithLossCell with_loss{network, loss};
  ReducingStep step;
};

Snapshot TrainedBy(int rank, int size, Reducer reducer) { return Reduced(std::move(reducer)).Trained(rank, size); }

const Reducer kNone = [](std::vector<Tensor> gradients) { return gradients; };

absl::Status SetParallel(ParallelMode mode) { return SetAutoParallelContext({.parallel_mode = mode}); }

TEST(DistributedGradReducer, AveragesGradientsOfStepsThatShareNothing) {
  for (const int size : {2, 4}) {
    EXPECT_TRUE(RunInGroup(size, [size](int rank) {
      MPC_ASSERT_OK(SetParallel(ParallelMode::kDataParallel));
      const Snapshot shared = TrainedBy(rank, size, kNone);
      MPC_ASSERT_OK(SetParallel(ParallelMode::kStandAlone));
      EXPECT_EQ(testing::Differences(TrainedBy(rank, size, nn::DistributedGradReducer()), shared),
                std::vector<std::string>{});
      // Sums are means of one more factor, a power of two, which the learning rate takes back.
      const auto factor = static_cast<double>(size);
      EXPECT_EQ(testing::Differences(TrainedBy(rank, size,
                                               [factor](const std::vector<Tensor>& gradients) {
                                                 return ops::Map([factor](const Tensor& t) { return t / factor; },
                                                                 nn::DistributedGradReducer(false)(gradients));
                                               }),
                                     shared),
                std::vector<std::string>{});
    }));
  }
}

TEST(DistributedGradReducer, ExchangesNothingTwice) {
  EXPECT_TRUE(RunInGroup(2, [](int rank) {
    MPC_ASSERT_OK(SetParallel(ParallelMode::kDataParallel));
    const Snapshot shared = TrainedBy(rank, 2, kNone);
    EXPECT_EQ(testing::Differences(TrainedBy(rank, 2, nn::DistributedGradReducer()), shared),
              std::vector<std::string>{});
    EXPECT_EQ(testing::Differences(TrainedBy(rank, 2,
                                             [](const std::vector<Tensor>& gradients) {
                                               return ops::Map([](const Tensor& t) { return t * 0.5; },
                                                               nn::DistributedGradReducer(false)(gradients));
                                             }),
                                   shared),
              std::vector<std::string>{});
  }));
}

/// MindSpore's documentation calls it: a Model has the bits of one whose step does not.
TEST(TrainOneStepCell, ReducesGradientsInDataParallelAlone) {
  EXPECT_TRUE(RunInGroup(2, [](int rank) {
    MPC_ASSERT_OK(SetParallel(ParallelMode::kDataParallel));
    std::vector<Snapshot> trained;
    for (const bool calls : {false, true}) {
      Reduced* self = nullptr;
      Reduced reduced(
          [&self, calls](std::vector<Tensor> gradients) { return calls ? self->step.Own(gradients) : gradients; });
      self = &reduced;
      Model model(reduced.step);
      MPC_ASSERT_OK(model.Train(1, testing::GoodBatches({6}, 6)));
      ExpectEqualParameters(reduced.network);
      trained.push_back(ParametersOf(reduced.network));
    }
    EXPECT_EQ(testing::Differences(trained[0], trained[1]), std::vector<std::string>{});

    MPC_ASSERT_OK(SetParallel(ParallelMode::kStandAlone));
    Reduced* self = nullptr;
    Reduced alone([&self](std::vector<Tensor> gradients) { return self->step.Own(gradients); });
    self = &alone;
    const data::Row batch = MakeBatch({6}, 8, rank);
    MPC_ASSERT_OK(alone.step(batch[0], batch[1]).status());
    const Tensor weight = *alone.network.fc1.weight.Value();
    EXPECT_NE(ops::AllReduce(weight, ops::ReduceOp::kMax).ToFloats(),
              (ops::AllReduce(weight * -1.0, ops::ReduceOp::kMax) * -1.0).ToFloats())
        << "each process has updated by its own rows";
  }));
}

class WrappedStep : public nn::TrainOneStepWithLossScaleCell {
 public:
  MPC_CELL(WrappedStep)
  using TrainOneStepWithLossScaleCell::TrainOneStepWithLossScaleCell;
  Tensor Construct(Tensor data, Tensor label) {
    ops::ValueAndGradResult result = ops::ValueAndGrad(network, weights, {data, label});
    return ops::Depend(result.value, optimizer(nn::DistributedGradReducer()(result.gradients)));
  }
};

/// A loss scaler that wraps the step would decide in each process by itself.
TEST(DistributedGradReducer, RefusesAWrapThatDecidesAlone) {
  EXPECT_TRUE(RunInGroup(2, [](int) {
    TwoLayers network;
    nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
    nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
    nn::WithLossCell with_loss(network, loss);
    const DynamicLossScaleManager manager;
    WrappedStep step(with_loss, optimizer, manager);
    const data::Row batch = MakeBatch({6}, 8, 0);
    EXPECT_THAT(
        ErrorOf(step(batch[0], batch[1])),
        HasSubstr("DistributedGradReducer exchanges gradients of 2 processes, behind the check of the loss scale "
                  "that wraps the step"));
    MPC_ASSERT_OK(SetParallel(ParallelMode::kDataParallel));
    MPC_EXPECT_OK(step(batch[0], batch[1]).status());
  }));
}

struct ScalingStep : nn::TrainingStep {
  MPC_CELL(ScalingStep, network)
  ScalingStep(TwoLayers& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}
  Tensor Construct(Tensor data, Tensor label) {
    Tensor loss = softmax_cross_entropy(network(data), label);
    const Tensor scaled = scaler.Scale(loss);
    scaler.Minimize(optimizer, nn::DistributedGradReducer()(ops::Backward(scaled, optimizer.parameters())));
    return loss;
  }
  TwoLayers& network;
  nn::Optimizer& optimizer;
  amp::AmpScaler scaler;
};

/// A scaler of the step's own checks what the reducer returns: an infinity of one rank skips the update of all.
TEST(DistributedGradReducer, LetsAScalerOfTheStepDecideForAll) {
  EXPECT_TRUE(RunInGroup(2, [](int rank) {
    TwoLayers network;
    nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
    ScalingStep step(network, optimizer);
    const Snapshot before = ParametersOf(network);
    data::Row batch = MakeBatch({6}, 8, rank);
    if (rank == 1) batch = testing::WithBadValue(batch, testing::kInfinity);
    MPC_EXPECT_OK(step(batch[0], batch[1]).status());
    EXPECT_EQ(testing::Differences(ParametersOf(network), before), std::vector<std::string>{});
    batch = MakeBatch({6}, 8, rank);
    MPC_EXPECT_OK(step(batch[0], batch[1]).status());
    ExpectEqualParameters(network);
    EXPECT_NE(testing::Differences(ParametersOf(network), before), std::vector<std::string>{});
  }));
}

}  // namespace
}  // namespace mpc
