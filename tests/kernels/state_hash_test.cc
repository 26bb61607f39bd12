#include "kernels/state_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/kernel.h"

namespace mpc {
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

TEST(StateHash, IsThatOfTheKernelOnAnyThreads) {
  std::mt19937 generator(3);
  const std::vector<std::int64_t> sizes = {1, 0, 3, 100'003, 1, 400'000};
  KernelSpec spec{kStateHash, {}, {{DType::kI64, {}}}, {}, {}};
  std::vector<std::int64_t> keys;
  std::vector<std::vector<std::uint8_t>> contents;
  std::vector<const void*> inputs;
  std::uint64_t expected = 0;
  for (const std::int64_t size : sizes) {
    spec.inputs.push_back({size % 2 == 0 ? DType::kF16 : DType::kBool, {size}});
    contents.push_back(DrawBytes(generator, spec.inputs.back().bytes()));
    keys.push_back(static_cast<std::int64_t>(HashKey(std::to_string(keys.size()))));
    expected += HashBytes(static_cast<std::uint64_t>(keys.back()), contents.back().data(), contents.back().size());
  }
  for (const auto& content : contents) inputs.push_back(content.data());
  spec.attributes.Set(kHashKeys, keys);
  const int threads = cpu::NumThreads();
  for (const int count : {1, 2, 5}) {
    cpu::SetNumThreads(count);
    std::uint64_t hash = 0;
    void* outputs[] = {&hash};
    const auto kernel = cpu::CreateKernel(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    (*kernel)->Run({inputs.data(), outputs, nullptr});
    EXPECT_EQ(hash, expected) << count << " threads";
  }
  cpu::SetNumThreads(threads);
  spec.attributes.Set(kHashKeys, std::vector<std::int64_t>{1});
  EXPECT_EQ(cpu::CreateKernel(spec).status().message(),
            "state_hash takes a key for each input and gives one i64; got 6 inputs, 1 keys and tensor<i64>");
}

}  // namespace
}  // namespace mpc
