#include "runtime/state_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace mpc::runtime {
namespace {

std::vector<std::uint8_t> DrawBytes(std::mt19937& generator, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator());
  return bytes;
}

TEST(StateHash, DoesNotDependOnParts) {
  std::mt19937 generator(1);
  for (int draw = 0; draw < 200; ++draw) {
    const std::vector<std::uint8_t> bytes = DrawBytes(generator, generator() % 2000);
    const std::uint64_t key = HashKey("weight");
    std::uint64_t sum = 0;
    for (std::size_t from = 0; from < bytes.size();) {
      const std::size_t part = std::min<std::size_t>(bytes.size() - from, 8 * (1 + generator() % 40));
      sum += HashBytes(key, bytes.data() + from, part, from);
      from += part;
    }
    EXPECT_EQ(sum, HashBytes(key, bytes.data(), bytes.size())) << bytes.size() << " bytes";
  }
}

TEST(StateHash, FindsEveryBit) {
  std::mt19937 generator(2);
  std::vector<std::uint8_t> bytes = DrawBytes(generator, 203);
  const std::uint64_t whole = HashBytes(5, bytes.data(), bytes.size());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= 1U << (bit % 8);
    EXPECT_NE(HashBytes(5, bytes.data(), bytes.size()), whole) << "bit " << bit;
    bytes[bit / 8] ^= 1U << (bit % 8);
  }
}

TEST(StateHash, KeepsPlacesAndNamesApart) {
  const std::uint64_t words[] = {1, 2};
  const std::uint64_t swapped[] = {2, 1};
  EXPECT_NE(HashBytes(5, words, sizeof words), HashBytes(5, swapped, sizeof swapped));
  EXPECT_NE(HashKey("weight"), HashKey("bias"));
  EXPECT_NE(HashKey("a") + HashBytes(HashKey("a"), words, 8), HashKey("a") + HashBytes(HashKey("b"), words, 8));
}

}  // namespace
}  // namespace mpc::runtime
