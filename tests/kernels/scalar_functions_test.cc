// The functions of kernels/scalar against f64: the accuracy that their files state, on f32 bit patterns spread over
// all, and what they are where they end.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/scalar/activation.h"

namespace mpc::scalar {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Function {
  std::string name;
  std::function<float(float)> computed;
  std::function<double(double)> exact;
  float from, to;
  double ulps;
};

double Tail(double a) { return 0.5 * std::erfc(a / std::sqrt(2.0)); }

std::vector<Function> Functions() {
  return {
      {"exp", Exp<float>, [](double x) { return std::exp(x); }, -kInfinity, kInfinity, 0.9},
      {"a share near the largest", ShareExp<float>, [](double x) { return std::exp(x); }, -30, 1, 2.8},
      {"any normal share", ShareExp<float>, [](double x) { return std::exp(x); }, -87.3f, 88.3f, 5.4},
      {"any share of the largest", BoundedShareExp<float>, [](double x) { return std::exp(x); }, -87.3f, 0, 5.4},
      {"power of 2", ShareExp2<float>, [](double x) { return std::exp2(x); }, -126, 0, 2},
      {"log", Log<float>, [](double x) { return std::log(x); }, 0, kInfinity, 0.85},
      {"tanh", Tanh<float>, [](double x) { return std::tanh(x); }, -kInfinity, kInfinity, 1.4},
      {"sigmoid", Sigmoid<float>,
       [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }, -kInfinity, kInfinity,
       2.05},
      {"log1p", Log1p<float>, [](double x) { return std::log1p(x); }, -1, kInfinity, 1.5},
      {"bell of the normal distribution", [](float a) { return NormalTail<float>::Create(a).bell; },
       [](double a) { return std::exp(-0.5 * a * a); }, 0, NormalTail<float>::kEnd, 1.1},
      {"tail of the normal distribution",
       [](float a) { return NormalTail<float>::Create(a).bell * NormalTail<float>::Create(a).ratio; }, Tail, 0,
       NormalTail<float>::kEnd, 7},
      {"erf", Erf<float>, [](double x) { return std::erf(x); }, -kInfinity, kInfinity, 1.5},
      {"gelu", GeluOp::Apply<float>, [](double x) { return x * Tail(-x); }, -12, 1e30f, 8},
  };
}

double UlpOf(double value) {
  const double magnitude = std::fabs(value);
  return magnitude < 0x1p-126 ? 0x1p-149 : std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

TEST(ScalarFunctions, AreAsAccurateAsStated) {
  // A prime, so that every exponent meets other fractions.
  constexpr std::uint64_t kStep = 1009;
  for (const Function& f : Functions()) {
    double worst = 0;
    float at = 0;
    for (std::uint64_t bits = 0; bits < 1ull << 32; bits += kStep) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      if (!(x >= f.from && x <= f.to)) continue;
      const double exact = f.exact(x);
      const float computed = f.computed(x);
      if (std::isinf(static_cast<float>(exact)) || std::isinf(computed)) {
        EXPECT_EQ(computed, static_cast<float>(exact)) << f.name << " of " << x;
        continue;
      }
      const double error = std::fabs(computed - exact) / UlpOf(exact);
      if (error > worst) {
        worst = error;
        at = x;
      }
    }
    EXPECT_LE(worst, f.ulps) << f.name << " of " << at;
  }
}

TEST(ScalarFunctions, NanPassesAndInfinitiesAreLimitsOrNan) {
  for (const Function& f : Functions()) EXPECT_TRUE(std::isnan(f.computed(kNan))) << f.name;
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_EQ(ShareExp(kInfinity), kInfinity);
  EXPECT_EQ(Tanh(-kInfinity), -1);
  EXPECT_EQ(Sigmoid(kInfinity), 1);
  EXPECT_EQ(Sigmoid(-kInfinity), 0);
  for (const auto& gelu : {GeluOp::Apply<float>, GeluTanhOp::Apply<float>}) {
    EXPECT_EQ(gelu(kInfinity), kInfinity);
    // Overflow stays visible.
    EXPECT_TRUE(std::isnan(gelu(-kInfinity)));
    EXPECT_EQ(gelu(-3e38f), 0);
    EXPECT_TRUE(std::isnan(gelu(kNan)));
  }
  for (const auto& slope : {GeluGradOp::Apply<float>, GeluTanhGradOp::Apply<float>}) {
    EXPECT_EQ(slope(2, 3e38f), 2);
    EXPECT_EQ(slope(2, -3e38f), 0);
    EXPECT_TRUE(std::isnan(slope(2, kNan)));
    EXPECT_TRUE(std::isnan(slope(kNan, 1)));
    EXPECT_EQ(slope(kInfinity, 1), kInfinity);
  }
}

TEST(ScalarFunctions, SharesAreOneAtZeroAndZeroBelowNormalNumbers) {
  EXPECT_EQ(ShareExp(0.0f), 1);
  EXPECT_EQ(ShareExp2(0.0f), 1);
  for (const float x : {-87.8f, -100.0f, -3e38f, -kInfinity}) EXPECT_EQ(ShareExp(x), 0) << x;
  for (const float v : {-126.6f, -127.0f, -127.4f}) EXPECT_EQ(ShareExp2(v), 0) << v;
  // Where gelu's tanh form is small enough to be 0.
  for (const float x : {-10.02f, -10.04f, -11.0f, -1e30f}) {
    EXPECT_LE(std::fabs(GeluTanhOp::Apply(x)), 1e-36f) << x;
    EXPECT_LE(std::fabs(GeluTanhGradOp::Apply(1.0f, x)), 1e-35f) << x;
  }
}

TEST(ScalarFunctions, TimesPowerOfTwoRoundsOnce) {
  for (int n = -252; n <= 254; ++n) {
    for (const float value : {1.0f, 0.70710677f, 1.4142135f, 1.0000001f, 0.99999994f, 1.1754944e-3f}) {
      EXPECT_EQ(TimesPowerOfTwo(value, kRoundingShift + static_cast<float>(n)), std::ldexp(value, n))
          << value << " " << n;
    }
    EXPECT_TRUE(std::isnan(TimesPowerOfTwo(kNan, kRoundingShift + static_cast<float>(n))));
  }
  EXPECT_TRUE(std::isnan(TimesPowerOfTwo(kNan, kNan)));
}

}  // namespace
}  // namespace mpc::scalar
