// Plain calls of a network that the step differentiates later on: which of them share its forward pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/training/probe.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using TensorList = std::vector<Tensor>;

/// sum(weight * x): 22 for the first weight and x of these tests.
class WeightedSum : public nn::Cell {
 public:
  MPC_CELL(WeightedSum, weight, drop)
  Tensor Construct(Tensor x) { return reduce_sum(drop(weight * x)); }
  Parameter weight{Tensor::Full({2}, 2.0)};
  nn::Dropout drop{{.p = 0.5}};
};

/// A product of one element, which f16 rounds to 1.
class Product : public nn::Cell {
 public:
  MPC_CELL(Product, weight)
  Tensor Construct(Tensor x) { return reduce_sum(matmul(x, weight)); }
  Parameter weight{Tensor::Full({1, 1}, kWeight)};
  static constexpr float kWeight = 1.0001f;
};

/// Returns its loss, and on request its input and a constant.
class Normed : public nn::Cell {
 public:
  MPC_CELL(Normed, norm, weight)
  TensorList Construct(Tensor x) {
    TensorList outputs{reduce_mean(norm(x) * weight)};
    if (echoes) outputs.insert(outputs.end(), {x, Tensor::Full({2}, 7.0)});
    return outputs;
  }
  nn::BatchNorm1d norm{2};
  Parameter weight{Tensor::Full({2}, 2.0)};
  bool echoes = false;
};

class Steps : public nn::TrainingStep {
 public:
  MPC_CELL(Steps, sum, product, normed, other)
  TensorList Construct(Tensor x) { return body(*this, x); }
  std::function<TensorList(Steps&, Tensor)> body;
  WeightedSum sum;
  Product product;
  Normed normed;
  testing::Probe other{2, 3.0};
};

/// Runs one training step of `body`; dropout is off, unless it is turned on. Returns the first element of each output.
std::vector<float> FirstElements(std::function<TensorList(Steps&, Tensor)> body, Tensor x, Steps& steps) {
  steps.body = std::move(body);
  steps.SetTrain();
  steps.sum.SetTrain(false);
  std::vector<float> values;
  for (const Tensor& output : steps(x)) {
    MPC_EXPECT_OK(output.status());
    if (output.status().ok()) values.push_back(output.ToFloats().front());
  }
  return values;
}
std::vector<float> FirstElements(std::function<TensorList(Steps&, Tensor)> body,
                                 Tensor x = Tensor::From<float>({1.0f, 10.0f}, {2})) {
  Steps steps;
  return FirstElements(std::move(body), std::move(x), steps);
}

Tensor Differentiated(WeightedSum& network, const Tensor& x) {
  return ops::ValueAndGrad(network, {network.weight}, {x}).value;
}

TEST(SharedCalls, ACallBeforeAnAssignmentKeepsItsValue) {
  const std::vector<float> values = FirstElements([](Steps& steps, const Tensor& x) {
    const Tensor before = steps.sum(x);
    steps.sum.weight.Assign(steps.sum.weight.Read() + 1.0);
    return TensorList{before, Differentiated(steps.sum, x)};
  });
  EXPECT_THAT(values, ElementsAre(22, 33));
}

// Sharpness-aware minimisation: the loss at the weights, the gradient at others, the update from the first ones.
TEST(SharedCalls, ALossIsThatOfTheWeightsBeforeTheyWereMoved) {
  Steps steps;
  const std::vector<float> values = FirstElements(
      [](Steps& step, const Tensor& x) {
        const Tensor clean = step.sum(x);
        const Tensor weight = step.sum.weight;
        step.sum.weight.Assign(weight * 10.0);
        const ops::ValueAndGradResult moved = ops::ValueAndGrad(step.sum, {step.sum.weight}, {x});
        step.sum.weight.Assign(weight - moved.gradients[0]);
        return TensorList{clean, moved.value};
      },
      Tensor::From<float>({1.0f, 10.0f}, {2}), steps);
  EXPECT_THAT(values, ElementsAre(22, 220));
  EXPECT_THAT(steps.sum.weight.Value()->ToFloats(), ElementsAre(1, -8));
}

TEST(SharedCalls, ACallInInferenceModeIsNotTheOneThatTrains) {
  const std::vector<float> values = FirstElements([](Steps& steps, const Tensor& x) {
    const Tensor inference = steps.sum(x);
    steps.sum.drop.SetTrain();
    return TensorList{inference, Differentiated(steps.sum, x)};
  });
  EXPECT_EQ(values.at(0), 22);
  EXPECT_NE(values.at(1), 22) << "dropout gives 0, 4, 40 or 44";
}

TEST(SharedCalls, ACallInF32IsNotTheOneInF16) {
  const auto run = [](const std::function<Tensor(Steps&, Tensor)>& differentiated) {
    return FirstElements(
        [&](Steps& steps, const Tensor& x) {
          return TensorList{steps.product(x), differentiated(steps, x)};
        },
        Tensor::Full({1, 1}, 1.0));
  };
  const auto differentiate = [](Steps& steps, const Tensor& x) {
    return ops::ValueAndGrad(steps.product, {steps.product.weight}, {x}).value;
  };
  EXPECT_THAT(run(differentiate), ElementsAre(Product::kWeight, Product::kWeight));
  EXPECT_THAT(run([&](Steps& steps, const Tensor& x) {
                steps.product.ToFloat(DType::kF16);
                return differentiate(steps, x);
              }),
              ElementsAre(Product::kWeight, 1));
  EXPECT_THAT(run([&](Steps& steps, const Tensor& x) {
                const amp::AutoCast guard({.level = "O2"});
                return differentiate(steps, x);
              }),
              ElementsAre(Product::kWeight, 1));
}

/// The running mean after one step that calls `normed` and then `between`, and differentiates it.
std::vector<float> RunningMean(bool calls, bool echoes, const std::function<void(Steps&)>& between = {}) {
  Steps steps;
  steps.normed.echoes = echoes;
  const std::vector<float> values = FirstElements(
      [&](Steps& step, const Tensor& x) {
        const TensorList plain = calls ? step.normed(x) : TensorList{Tensor::Full({}, 0.0)};
        if (between) between(step);
        const Tensor value = ops::ValueAndGrad(step.normed, {step.normed.weight}, {x}).value;
        return TensorList{plain[0], value, plain.back()};
      },
      Tensor::From<float>({1.0f, 10.0f, 3.0f, 20.0f}, {2, 2}), steps);
  if (calls) {
    EXPECT_EQ(values.at(0), values.at(1));
  }
  if (echoes) {
    EXPECT_EQ(values.at(2), 7);
  }
  return steps.normed.norm.moving_mean.Value()->ToFloats();
}

TEST(SharedCalls, StatisticsMoveOnceWhereACallReturnsItsInputAndAConstant) {
  const std::vector<float> once = RunningMean(/*calls=*/false, /*echoes=*/false);
  EXPECT_EQ(RunningMean(/*calls=*/true, /*echoes=*/false), once);
  EXPECT_EQ(RunningMean(/*calls=*/true, /*echoes=*/true), once);
}

TEST(SharedCalls, WhatTheNetworkDoesNotReadMayChange) {
  const std::vector<float> once = RunningMean(/*calls=*/false, /*echoes=*/false);
  EXPECT_EQ(RunningMean(/*calls=*/true, /*echoes=*/true,
                        [](Steps& steps) {
                          steps.other.weight.Assign(steps.other.weight.Read() * 2.0);
                          steps.sum.SetTrain();
                        }),
            once);
}

// A read of the statistics makes the call's update, which the differentiated pass can no longer take over.
TEST(SharedCalls, StatisticsThatWereReadHaveMoved) {
  const std::vector<float> once = RunningMean(/*calls=*/false, /*echoes=*/false);
  std::vector<float> twice =
      RunningMean(/*calls=*/true, /*echoes=*/false, [](Steps& steps) { Tensor moved = steps.normed.norm.moving_mean; });
  EXPECT_NE(twice, once);
}

}  // namespace
}  // namespace mpc
