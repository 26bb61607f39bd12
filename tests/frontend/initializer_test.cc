#include "frontend/graph/initializer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "frontend/graph/context.h"
#include "frontend/graph/parameter.h"

namespace mpc {
namespace {

using ::testing::Each;

std::vector<float> Draw(const Initializer& initializer, Shape shape = {100, 200}) {
  SetSeed(3);
  return Parameter(std::move(shape), initializer).Value()->ToFloats();
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments moments;
  const double count = static_cast<double>(values.size());
  for (float value : values) moments.mean += value / count;
  for (float value : values) {
    moments.deviation += (value - moments.mean) * (value - moments.mean) / count;
    moments.largest = std::max(moments.largest, std::abs(static_cast<double>(value)));
  }
  moments.deviation = std::sqrt(moments.deviation);
  return moments;
}

// The sample mean and deviation of 20,000 values, each within five of its own deviations.
void ExpectNormal(const std::vector<float>& values, double mean, double deviation) {
  const Moments moments = MomentsOf(values);
  const double count = static_cast<double>(values.size());
  EXPECT_NEAR(moments.mean, mean, 5 * deviation / std::sqrt(count));
  EXPECT_NEAR(moments.deviation, deviation, 5 * deviation / std::sqrt(2 * count));
}

void ExpectUniform(const std::vector<float>& values, double bound) {
  const Moments moments = MomentsOf(values);
  EXPECT_LE(moments.largest, bound * (1 + 1e-6));
  EXPECT_GE(moments.largest, bound * 0.999);
  EXPECT_NEAR(moments.mean, 0, 5 * bound / std::sqrt(3.0 * static_cast<double>(values.size())));
  EXPECT_NEAR(moments.deviation, bound / std::sqrt(3.0), 0.01 * bound);
}

TEST(Initializer, Constants) {
  EXPECT_THAT(Draw(Zeros()), Each(0.0f));
  EXPECT_THAT(Draw(Ones()), Each(1.0f));
  EXPECT_THAT(Draw(Constant(0.25)), Each(0.25f));
}

TEST(Initializer, Normal) {
  ExpectNormal(Draw(Normal()), 0, 0.01);
  ExpectNormal(Draw(Normal(0.02, 1.0)), 1.0, 0.02);
}

TEST(Initializer, Uniform) {
  ExpectUniform(Draw(Uniform()), 0.07);
  const std::vector<float> shifted = Draw(UniformRange(2.0, 3.0));
  EXPECT_GE(*std::min_element(shifted.begin(), shifted.end()), 2.0f);
  EXPECT_LE(*std::max_element(shifted.begin(), shifted.end()), 3.0f);
  EXPECT_NEAR(MomentsOf(shifted).mean, 2.5, 0.02);
}

TEST(Initializer, TruncatedNormalEndsAtTwoDeviations) {
  const Moments moments = MomentsOf(Draw(TruncatedNormal(0.5)));
  EXPECT_LE(moments.largest, 1.0 + 1e-6);
  EXPECT_GE(moments.largest, 0.99);
  // The deviation of a standard normal cut at +-2 is 0.8796.
  EXPECT_NEAR(moments.deviation, 0.8796 * 0.5, 0.01);
}

TEST(Initializer, BoundsFollowTheFans) {
  // fan_in 200, fan_out 100.
  ExpectUniform(Draw(HeUniform()), std::sqrt(6.0 / 200));
  ExpectUniform(Draw(HeUniform(std::sqrt(5.0))), 1 / std::sqrt(200.0));
  ExpectNormal(Draw(HeNormal()), 0, std::sqrt(2.0 / 200));
  ExpectUniform(Draw(XavierUniform()), std::sqrt(6.0 / 300));
  // A convolution's receptive field counts: fan_in 8 * 25.
  ExpectUniform(Draw(HeUniform(), {100, 8, 5, 5}), std::sqrt(6.0 / 200));
}

TEST(Initializer, EqualSeedsGiveEqualBits) {
  EXPECT_EQ(Draw(Normal()), Draw(Normal()));
  SetSeed(3);
  const Parameter first({50}, Normal());
  const Parameter second({50}, Normal());
  EXPECT_NE(first.Value()->ToFloats(), second.Value()->ToFloats()) << "each parameter has its own stream";
  SetSeed(3);
  const Parameter again({50}, Normal());
  const Parameter again_second({50}, Normal());
  // The order of asking does not matter: the seed and the stream are taken when the parameter is made.
  EXPECT_EQ(second.Value()->ToFloats(), again_second.Value()->ToFloats());
  EXPECT_EQ(first.Value()->ToFloats(), again.Value()->ToFloats());
  SetSeed(4);
  EXPECT_NE(first.Value()->ToFloats(), Parameter({50}, Normal()).Value()->ToFloats());
}

TEST(Initializer, SetSeedLaterDoesNotChangeParametersThatExist) {
  SetSeed(3);
  const Parameter first({50}, Normal());
  SetSeed(99);
  EXPECT_EQ(first.Value()->ToFloats(), Draw(Normal(), {50}));
}

}  // namespace
}  // namespace mpc
