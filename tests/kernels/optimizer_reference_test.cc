// Optimizers against closed formulas (AMP-30).
#include <cmath>

#include "tests/kernels/reference_run.h"

namespace mpc::test {
namespace {

const TensorSpec kVector{DType::kF32, {1}};

reference::Tensor One(double value) { return F32({1}, {value}); }
reference::Tensor Rate(double value) { return F32({}, {value}); }

TEST(Optimizers, Momentum) {
  // p = 1, v = 2, g = 3, u = 0.5, lr = 0.25: v = 4, p = 0; nesterov p = 1 - 0.25 (3 + 2) = -0.25.
  const std::vector<reference::Tensor> operands = {One(1), One(2), One(3), Rate(0.25)};
  const auto plain = RunReference("momentum", {{"momentum", 0.5}}, operands, {kVector, kVector});
  EXPECT_EQ(plain[0].values[0], 0);
  EXPECT_EQ(plain[1].values[0], 4);
  const auto nesterov = RunReference("momentum", {{"momentum", 0.5}, {"nesterov", true}}, operands, {kVector, kVector});
  EXPECT_EQ(nesterov[0].values[0], -0.25);
  // g = 3 / 2 + 0.5 * 1 = 2, v = 3, p = 0.25.
  const auto scaled = RunReference("momentum", {{"momentum", 0.5}, {"loss_scale", 2.0}, {"weight_decay", 0.5}},
                                   operands, {kVector, kVector});
  EXPECT_EQ(scaled[0].values[0], 0.25);
  EXPECT_EQ(scaled[1].values[0], 3);
}

TEST(Optimizers, SgdStartsItsVelocityAtTheGradient) {
  const Attributes attributes = {{"momentum", 0.5}, {"dampening", 0.5}};
  const auto at_step = [&](double step) {
    return RunReference("sgd", attributes, {One(1), One(2), One(3), Rate(0.25), I32({}, {step})}, {kVector, kVector});
  };
  EXPECT_EQ(at_step(0)[1].values[0], 3);
  EXPECT_EQ(at_step(0)[0].values[0], 0.25);
  EXPECT_EQ(at_step(1)[1].values[0], 2.5);
  EXPECT_EQ(at_step(1)[0].values[0], 0.375);
}

TEST(Optimizers, SgdWithoutMomentumLeavesTheVelocity) {
  const auto results = RunReference("sgd", {{"weight_decay", 1.0}}, {One(1), One(2), One(3), Rate(0.25), I32({}, {5})},
                                    {kVector, kVector});
  EXPECT_EQ(results[0].values[0], 0);
  EXPECT_EQ(results[1].values[0], 2);
}

TEST(Optimizers, AdamFirstStepMovesByTheLearningRate) {
  // m / (1 - b1) = g and sqrt(v / (1 - b2)) = |g| at t = 1, up to epsilon's place outside the correction.
  const auto results = RunReference("adam", {}, {One(1), One(0), One(0), One(-3), Rate(0.125), I32({}, {0})},
                                    {kVector, kVector, kVector});
  const double beta2 = static_cast<double>(0.999f);
  const double root = std::sqrt(1 - beta2);
  const double epsilon = static_cast<double>(1e-8f);
  EXPECT_NEAR(results[0].values[0], 1 + 0.125 * root * 3 / (root * 3 + epsilon), 1e-13);
  EXPECT_NEAR(results[1].values[0], -3 * (1 - static_cast<double>(0.9f)), 1e-15);
  EXPECT_NEAR(results[2].values[0], 9 * (1 - beta2), 1e-15);
}

TEST(Optimizers, AdamWithRoundNumbers) {
  // b1 = b2 = 0.5, t = 2: m = 0.5 * 2 + 0.5 * 4 = 3, v = 0.5 * 2 + 0.5 * 16 = 9; lr_t = lr sqrt(0.75) / 0.75.
  const auto results =
      RunReference("adam", {{"beta1", 0.5}, {"beta2", 0.5}, {"epsilon", 1.0}},
                   {One(1), One(2), One(2), One(4), Rate(0.5), I32({}, {1})}, {kVector, kVector, kVector});
  EXPECT_NEAR(results[0].values[0], 1 - 0.5 * std::sqrt(0.75) / 0.75 * 3 / 4, 1e-15);
}

TEST(Optimizers, AdamWeightDecayIsDecoupledAndUncorrected) {
  const auto results =
      RunReference("adam_weight_decay", {{"beta1", 0.5}, {"beta2", 0.5}, {"epsilon", 1.0}, {"weight_decay", 0.5}},
                   {One(1), One(2), One(2), One(4), Rate(0.5)}, {kVector, kVector, kVector});
  EXPECT_EQ(results[0].values[0], 1 - 0.5 * (3.0 / 4 + 0.5));
  EXPECT_EQ(results[1].values[0], 3);
  EXPECT_EQ(results[2].values[0], 9);
}

TEST(Optimizers, AdamWDecaysFirstAndCorrectsBothMoments) {
  // t = 2, b1 = b2 = 0.5: m = 3, v = 9, corrections 0.75; p decays to 1 - 0.5 * 0.5.
  const auto results = RunReference(
      "adamw", {{"beta1", 0.5}, {"beta2", 0.5}, {"epsilon", 1.0}, {"weight_decay", 0.5}, {"loss_scale", 2.0}},
      {One(1), One(2), One(2), One(8), Rate(0.5), I32({}, {1})}, {kVector, kVector, kVector});
  EXPECT_NEAR(results[0].values[0], 0.75 - 0.5 / 0.75 * 3 / (3 / std::sqrt(0.75) + 1), 1e-15);
  EXPECT_EQ(results[1].values[0], 3);
  EXPECT_EQ(results[2].values[0], 9);
}

TEST(Optimizers, LambMovesByTheNormOfTheParameter) {
  // Two equal elements: the direction is u (1, 1), so that r u = |p| / sqrt(2) (1, 1) = (2, 2) for p = (2, 2).
  const TensorSpec pair{DType::kF32, {2}};
  const auto run = [&](double parameter, double decay) {
    return RunReference("lamb", {{"beta1", 0.5}, {"beta2", 0.5}, {"epsilon", 1.0}, {"weight_decay", decay}},
                        {F32({2}, {parameter, parameter}), F32({2}, {2, 2}), F32({2}, {2, 2}), F32({2}, {4, 4}),
                         Rate(0.5), I32({}, {1})},
                        {pair, pair, pair})[0]
        .values;
  };
  ExpectNear(run(2, 0.0), {1, 1});
  ExpectNear(run(2, 0.5), {1, 1});
  // The ratio stops at 10, and is 1 where there is no norm to compare: u = 3 / 0.75 / (sqrt(9 / 0.75) + 1).
  const double direction = 3 / 0.75 / (std::sqrt(9 / 0.75) + 1);
  ExpectNear(run(100, 0.0), {100 - 0.5 * 10 * direction, 100 - 0.5 * 10 * direction});
  ExpectNear(run(0, 0.0), {-0.5 * direction, -0.5 * direction});
}

TEST(Optimizers, TheShadowIsTheNewParameterRoundedAndTheOldOneWhereSkipped) {
  // p = 1 + 2^-11 - 2^-13 after the update; before it is a tie that rounds to even, 1.
  const double old = 1 + 0x1p-11;
  const TensorSpec shadow{DType::kF16, {1}};
  const auto run = [&](double apply) {
    return RunReference("momentum", {{"shadow", "f16"}},
                        {One(old + 0x1p-20), One(0), One(1), Rate(0x1p-13), Bool({}, {apply})},
                        {kVector, kVector, shadow});
  };
  EXPECT_EQ(run(1)[2].values[0], 1);
  EXPECT_EQ(run(0)[2].values[0], 1 + 0x1p-10);
  EXPECT_EQ(run(0)[0].values[0], old + 0x1p-20);
}

TEST(Optimizers, FalsePredicateKeepsState) {
  const reference::Tensor skip = Bool({}, {0});
  const double nan = std::nan("");
  const auto momentum = RunReference("momentum", {}, {One(1), One(2), One(nan), Rate(1), skip}, {kVector, kVector});
  EXPECT_EQ(momentum[0].values[0], 1);
  EXPECT_EQ(momentum[1].values[0], 2);
  const auto adam = RunReference("adam", {}, {One(1), One(2), One(3), One(nan), Rate(1), I32({}, {0}), skip},
                                 {kVector, kVector, kVector});
  EXPECT_EQ(adam[0].values[0], 1);
  EXPECT_EQ(adam[2].values[0], 3);
  EXPECT_EQ(RunReference("increment", {}, {I32({}, {4}), skip}, {{DType::kI32, {}}})[0].values[0], 4);
  EXPECT_EQ(RunReference("increment", {}, {I32({}, {4})}, {{DType::kI32, {}}})[0].values[0], 5);
}

TEST(Optimizers, LowParametersRoundOnceOnStore) {
  // 1 - 2^-12 is between the f16 neighbours 1 - 2^-11 and 1: a tie that goes to even.
  const auto results = RunReference("momentum", {}, {F16({1}, {1}), One(0), F16({1}, {0x1p-12}), Rate(1)},
                                    {{DType::kF16, {1}}, kVector});
  EXPECT_EQ(results[0].values[0], 1);
  EXPECT_EQ(results[1].values[0], 0x1p-12);
}

}  // namespace
}  // namespace mpc::test
