#include "kernels/cpu/normal_draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/scalar/philox.h"

namespace mpc::cpu {
namespace {

/// Words that are far out or between: both ends, powers of two and their neighbours, quarters and eighths of a turn.
std::vector<std::uint32_t> NotableWords() {
  std::vector<std::uint32_t> words = {0, 0xffffffff, 0xb504f333, 0xb0000000, 0xaffffffe, 0xafffffff};
  for (int bit = 0; bit < 32; ++bit) {
    for (std::uint32_t near : {0u, 1u, 2u}) words.push_back((std::uint32_t{1} << bit) - 1 + near);
  }
  for (std::uint32_t eighth = 1; eighth < 8; ++eighth) {
    for (std::uint32_t near : {0u, 1u, 2u}) words.push_back((eighth << 29) - 1 + near);
  }
  return words;
}

double FarthestNormal(std::uint32_t radius, const std::array<std::uint32_t, kBlocksAbreast>& turns) {
  std::array<std::uint32_t, kBlocksAbreast> radii;
  radii.fill(radius);
  NormalsAbreast of_cosine, of_sine;
  ApproximateNormals(radii, turns, of_cosine, of_sine);
  double farthest = 0;
  for (std::size_t i = 0; i < kBlocksAbreast; ++i) {
    const std::array<double, 2> normals = NormalsFromBits(radius, turns[i]);
    farthest = std::max({farthest, std::abs(of_cosine[i] - normals[0]), std::abs(of_sine[i] - normals[1])});
  }
  return farthest;
}

TEST(ApproximateNormals, AreWithinTheirDistanceOfTheDefinition) {
  const std::vector<std::uint32_t> notable = NotableWords();
  double farthest = 0;
  for (std::uint32_t radius : notable) {
    for (std::size_t first = 0; first < notable.size(); first += kBlocksAbreast) {
      std::array<std::uint32_t, kBlocksAbreast> turns;
      for (std::size_t i = 0; i < kBlocksAbreast; ++i) turns[i] = notable[(first + i) % notable.size()];
      farthest = std::max(farthest, FarthestNormal(radius, turns));
    }
  }
  for (std::uint64_t block = 0; block < 20000; ++block) {
    const WordsAbreast words = PhiloxBlocks(11, 0, 5, block * kBlocksAbreast);
    farthest = std::max(farthest, FarthestNormal(words[0][0], words[1]));
  }
  EXPECT_LT(farthest, kNormalDistance / 4)
      << "the bound has room for processors with other rounding inside log and cos";
}

TEST(PhiloxBlocks, AreTheBlocksOneByOne) {
  const std::uint64_t first = 0xfffffffau;  // the counter's upper half changes on the way
  const WordsAbreast words = PhiloxBlocks(0x299f31d0a4093822u, 3, 7, first);
  for (std::size_t i = 0; i < kBlocksAbreast; ++i) {
    const std::array<std::uint32_t, 4> block = PhiloxBlock(0x299f31d0a4093822u, 3, 7, first + i);
    for (std::size_t word = 0; word < 4; ++word) EXPECT_EQ(words[word][i], block[word]);
  }
}

struct Parameters {
  float a, b;
};

class NormalDraws : public testing::TestWithParam<Parameters> {
 protected:
  using Fill = void (*)(const Draw&, std::uint64_t, std::int64_t, std::int64_t, float*);
  using One = float (*)(std::uint64_t, std::uint32_t, std::uint64_t, float, float);

  static void ExpectSameBits(Fill fill, One one, std::int64_t offset, std::int64_t size) {
    const auto [a, b] = GetParam();
    std::vector<float> values(static_cast<std::size_t>(size) + 1, 77.0f);
    fill({9, a, b}, 1234567890123u, offset, size, values.data());
    std::size_t different = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const float expected = one(1234567890123u, 9, static_cast<std::uint64_t>(offset + i), a, b);
      different +=
          std::bit_cast<std::uint32_t>(values[static_cast<std::size_t>(i)]) != std::bit_cast<std::uint32_t>(expected);
    }
    EXPECT_EQ(different, 0u) << "of " << size << " from " << offset;
    EXPECT_EQ(values.back(), 77.0f) << "nothing is written behind the last";
  }
};

TEST_P(NormalDraws, AreTheDefinitionsToTheBit) {
  ExpectSameBits(FillNormal, RandomNormal, 0, 1 << 20);
  for (std::int64_t size : {1, 3, 5, 63, 64, 65, 1000}) ExpectSameBits(FillNormal, RandomNormal, 4 * size, size);
  ExpectSameBits(FillNormal, RandomNormal, (std::int64_t{1} << 34) - 32, 128);
}

TEST_P(NormalDraws, TruncatedAreTheDefinitionsToTheBit) {
  ExpectSameBits(FillTruncatedNormal, RandomTruncatedNormal, 0, 1 << 18);
  for (std::int64_t size : {1, 15, 17, 100}) ExpectSameBits(FillTruncatedNormal, RandomTruncatedNormal, size, size);
}

INSTANTIATE_TEST_SUITE_P(Scales, NormalDraws,
                         testing::Values(Parameters{0, 1}, Parameters{0, 0.02f}, Parameters{0.5f, 2},
                                         Parameters{-3, 1e-6f}, Parameters{1, 0}, Parameters{0, 1e-38f},
                                         Parameters{0, 3e38f}));

TEST(NormalDraws, OfParametersThatAreNoNumbersAreNone) {
  float values[8];
  FillNormal({0, 0, std::numeric_limits<float>::quiet_NaN()}, 1, 0, 8, values);
  for (float value : values) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace mpc::cpu
