#include "kernels/scalar/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>

namespace mpc {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known-answer vectors of the Random123 distribution (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, MatchesKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, CounterAndKeyTakeTheirPlaces) {
  EXPECT_EQ(PhiloxBlock(0x299f31d0a4093822u, 0x13198a2e, 0x03707344, 0x85a308d3243f6a88u),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformIsInHalfOpenUnitInterval) {
  EXPECT_EQ(UniformFromBits(0), 0.0f);
  EXPECT_EQ(UniformFromBits(0xffffffff), 1.0f - 0x1p-24f);
  EXPECT_TRUE(std::isfinite(NormalsFromBits(0, 0)[0]));
}

constexpr int kDraws = 100000;

// Bounds are five standard errors of the estimate.
template <typename Draw>
void ExpectMoments(Draw draw, double mean, double variance, double fourth_moment) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = draw(static_cast<std::uint64_t>(i)) - mean;
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(variance / kDraws));
  EXPECT_NEAR(squares / kDraws, variance, 5 * std::sqrt((fourth_moment - variance * variance) / kDraws));
}

TEST(Random, UniformHasItsMoments) {
  // Width w = 4: variance w^2 / 12, fourth moment w^4 / 80.
  ExpectMoments([](std::uint64_t i) { return RandomUniform(7, 3, i, -1, 3); }, 1, 16.0 / 12, 256.0 / 80);
}

TEST(Random, NormalHasItsMoments) {
  ExpectMoments([](std::uint64_t i) { return RandomNormal(7, 3, i, 0.5f, 2); }, 0.5, 4, 3 * 16);
}

TEST(Random, TruncatedNormalHasItsMomentsAndStaysInRange) {
  // Of a standard normal cut at 2: variance 1 - 2 * 2 phi(2) / (2 Phi(2) - 1).
  const double density = std::exp(-2.0) / std::sqrt(2 * 3.14159265358979323846);
  const double mass = std::erf(std::sqrt(2.0));
  const double variance = 1 - 4 * density / mass;
  const double fourth = 3 * variance - 16 * density / mass;  // integration by parts
  ExpectMoments([](std::uint64_t i) { return RandomTruncatedNormal(7, 3, i, 0, 1); }, 0, variance, fourth);
  for (std::uint64_t i = 0; i < kDraws; ++i) ASSERT_LE(std::abs(RandomTruncatedNormal(7, 3, i, 0, 1)), 2.0f);
}

TEST(Random, StreamsAndSeedsDiffer) {
  EXPECT_NE(RandomUniform(7, 3, 0, 0, 1), RandomUniform(7, 4, 0, 0, 1));
  EXPECT_NE(RandomUniform(7, 3, 0, 0, 1), RandomUniform(8, 3, 0, 0, 1));
  EXPECT_NE(RandomUniform(7, 3, 0, 0, 1), RandomUniform(7, 3, 1, 0, 1));
}

TEST(Dropout, KeepsTheAskedShare) {
  int kept = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) kept += DropoutKeeps(7, 1, 2, i, 0.3f) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(kept) / kDraws, 0.7, 5 * std::sqrt(0.21 / kDraws));
}

TEST(Dropout, ZeroProbabilityKeepsEverything) {
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(DropoutKeeps(7, 1, 2, i, 0));
  EXPECT_EQ(DropoutScale(0), 1.0f);
  EXPECT_EQ(DropoutScale(0.5f), 2.0f);
}

}  // namespace
}  // namespace mpc
