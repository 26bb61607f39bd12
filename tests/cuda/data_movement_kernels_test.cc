// Data movement: CUDA's bits are the CPU's for any shape, cut and permutation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/cuda/padded_copy.h"
#include "kernels/float16.h"
#include "tests/cuda/bits_of_the_cpu.h"
#include "tests/cuda_emulation/emulator.h"

namespace mpc::test {
namespace {

TEST(CudaDataMovement, EveryPermutationOfEveryTypeKeepsItsBits) {
  Random random(7);
  constexpr std::int64_t kExtents[] = {1, 2, 3, 8, 16, 33, 40};
  for (int round = 0; round < 150; ++round) {
    Shape from(static_cast<std::size_t>(Pick(random, 1, 5)));
    for (std::int64_t& extent : from) extent = OneOf(random, kExtents);
    while (NumElements(from) > 20000) *std::max_element(from.begin(), from.end()) = 2;
    std::vector<std::int64_t> permutation(from.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    std::shuffle(permutation.begin(), permutation.end(), random);
    Shape to;
    for (std::int64_t axis : permutation) to.push_back(from[static_cast<std::size_t>(axis)]);
    const DType dtype = OneOf(random, kStored);
    const KernelSpec spec{"transpose", {{dtype, from}}, {{dtype, to}}, {}, {{"permutation", permutation}}};
    ExpectTheBitsOfTheCpu(spec, {RandomBits(random, spec.inputs[0])}, Nan::kSamePayload);
  }
}

// A cut of `whole` along an axis into one to thirty parts.
std::vector<std::int64_t> RandomSizes(Random& random, Shape& whole, std::size_t axis) {
  constexpr std::int64_t kSizes[] = {1, 2, 3, 8, 16};
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(Pick(random, 0, 4) == 0 ? 30 : Pick(random, 1, 4)));
  for (std::int64_t& size : sizes) size = OneOf(random, kSizes);
  whole[axis] = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  return sizes;
}

TEST(CudaDataMovement, ConcatAndSplitGiveTheCpusBits) {
  Random random(8);
  for (int round = 0; round < 120; ++round) {
    Shape whole = RandomShape(random, 1);
    const std::int64_t axis = Pick(random, 0, static_cast<std::int64_t>(whole.size()) - 1);
    const std::vector<std::int64_t> sizes = RandomSizes(random, whole, static_cast<std::size_t>(axis));
    const bool one_type = Pick(random, 0, 1) == 0;
    const DType dtype = one_type ? OneOf(random, kStored) : OneOf(random, kFloating);
    std::vector<TensorSpec> parts;
    for (std::int64_t size : sizes) {
      parts.push_back({one_type ? dtype : OneOf(random, kFloating), whole});
      parts.back().shape[static_cast<std::size_t>(axis)] = size;
    }
    const TensorSpec joined{dtype, whole};
    std::vector<Bytes> values;
    for (const TensorSpec& part : parts) {
      values.push_back(one_type ? RandomBits(random, part) : RandomValues(random, part));
    }
    ExpectTheBitsOfTheCpu({"concat", parts, {joined}, {}, {{"axis", axis}}}, values,
                          one_type ? Nan::kSamePayload : Nan::kAnyPayload);
    std::vector<bool> used(parts.size());
    for (std::size_t i = 0; i < used.size(); ++i) used[i] = i == 0 || Pick(random, 0, 3) != 0;
    ExpectTheBitsOfTheCpu({"split", {joined}, parts, used, {{"axis", axis}, {"sizes", sizes}}},
                          {one_type ? RandomBits(random, joined) : RandomValues(random, joined)},
                          one_type ? Nan::kSamePayload : Nan::kAnyPayload);
  }
}

constexpr DType kNotFloating[] = {DType::kI8, DType::kI32, DType::kI64, DType::kBool};

TEST(CudaDataMovement, SliceAndPadGiveTheCpusBits) {
  Random random(9);
  constexpr std::int64_t kMargins[] = {0, 0, 1, 3, 8};
  for (int round = 0; round < 150; ++round) {
    const Shape inner = RandomShape(random, 1);
    Shape outer = inner;
    std::vector<std::int64_t> low, high;
    for (std::int64_t& extent : outer) {
      low.push_back(OneOf(random, kMargins));
      high.push_back(OneOf(random, kMargins));
      extent += low.back() + high.back();
    }
    if (NumElements(outer) > 20000) continue;
    const bool one_type = Pick(random, 0, 1) == 0;
    const DType dtype = OneOf(random, kFloating);
    const TensorSpec large{dtype, outer}, small{one_type ? dtype : OneOf(random, kFloating), inner};
    const auto bytes = [&](const TensorSpec& spec) {
      return one_type ? RandomBits(random, spec) : RandomValues(random, spec);
    };
    ExpectTheBitsOfTheCpu({"slice", {large}, {small}, {}, {{"starts", low}, {"sizes", inner}}}, {bytes(large)},
                          one_type ? Nan::kSamePayload : Nan::kAnyPayload);
    ExpectTheBitsOfTheCpu({"pad", {small}, {large}, {}, {{"low", low}, {"high", high}, {"value", 1.7}}}, {bytes(small)},
                          one_type ? Nan::kSamePayload : Nan::kAnyPayload);
    for (DType other : kNotFloating) {
      const TensorSpec labels{other, outer}, block{other, inner};
      ExpectTheBitsOfTheCpu({"slice", {labels}, {block}, {}, {{"starts", low}, {"sizes", inner}}},
                            {RandomBits(random, labels)});
      ExpectTheBitsOfTheCpu({"pad", {block}, {labels}, {}, {{"low", low}, {"high", high}, {"value", 1.0}}},
                            {RandomBits(random, block)});
    }
  }
}

TEST(CudaDataMovement, ChannelsArePaddedToVectors) {
  Random random(11);
  for (std::int64_t channels = 0; channels <= 8; ++channels) {
    for (std::int64_t low = 0; low <= 8 - channels; low += 2) {
      const std::int64_t high = 8 - channels - low;
      const Shape shape = {Pick(random, 1, 3), Pick(random, 1, 40), channels};
      for (const DType dtype : kFloating) {
        const TensorSpec from{dtype, shape}, to{dtype, {shape[0], shape[1], 8}};
        ExpectTheBitsOfTheCpu({"pad",
                               {from},
                               {to},
                               {},
                               {{"low", std::vector<std::int64_t>{0, 0, low}},
                                {"high", std::vector<std::int64_t>{0, 0, high}},
                                {"value", 0.0}}},
                              {RandomBits(random, from)}, Nan::kSamePayload);
      }
    }
  }
}

TEST(CudaDataMovement, TensorsWithoutElementsDoNothing) {
  const TensorSpec none{DType::kF16, {3, 0, 5}};
  EXPECT_EQ(OnCuda({"reshape", {none}, {{DType::kF16, {0}}}, {}, {}}, {{}})[0], Bytes());
  EXPECT_EQ(
      OnCuda(
          {"transpose", {none}, {{DType::kF16, {5, 3, 0}}}, {}, {{"permutation", std::vector<std::int64_t>{2, 0, 1}}}},
          {{}})[0],
      Bytes());
  EXPECT_EQ(OnCuda({"slice",
                    {{DType::kF16, {3, 2, 5}}},
                    {none},
                    {},
                    {{"starts", std::vector<std::int64_t>{0, 1, 0}}, {"sizes", none.shape}}},
                   {Bytes(60)})[0],
            Bytes());
  const TensorSpec padded{DType::kF16, {3, 2, 5}};
  EXPECT_EQ(OnCuda({"pad",
                    {none},
                    {padded},
                    {},
                    {{"low", std::vector<std::int64_t>{0, 2, 0}}, {"high", std::vector<std::int64_t>{0, 0, 0}}}},
                   {{}})[0],
            Bytes(60));
}

/// A matrix of random bits, or of zeros, whose rows lie `stride` apart.
std::vector<std::uint16_t> Elements(Random& random, const cuda::StridedMatrix& matrix, bool zeros) {
  std::vector<std::uint16_t> elements(static_cast<std::size_t>(matrix.rows * matrix.stride));
  for (std::uint16_t& element : elements) element = zeros ? 0 : static_cast<std::uint16_t>(Pick(random, 0, 65535));
  return elements;
}

TEST(CudaPaddedCopy, CopiesTheCornerClearsTheRestAndLeavesWhatLiesBetweenRows) {
  Random random(11);
  constexpr std::int64_t kExtents[] = {1, 3, 8, 40, 257, 5000};
  for (int round = 0; round < 40; ++round) {
    const auto matrix = [&] {
      const std::int64_t width = OneOf(random, kExtents);
      return cuda::StridedMatrix{Pick(random, 1, 9), width, width + Pick(random, 0, 9)};
    };
    const cuda::StridedMatrix from_matrix = matrix(), to_matrix = matrix();
    const std::vector<std::uint16_t> from = Elements(random, from_matrix, /*zeros=*/false);
    std::vector<std::uint16_t> to = Elements(random, to_matrix, /*zeros=*/false), expected = to;
    for (std::int64_t row = 0; row < to_matrix.rows; ++row) {
      for (std::int64_t column = 0; column < to_matrix.width; ++column) {
        const bool inside = row < from_matrix.rows && column < from_matrix.width;
        expected[static_cast<std::size_t>(row * to_matrix.stride + column)] =
            inside ? from[static_cast<std::size_t>(row * from_matrix.stride + column)] : 0;
      }
    }
    emulation::Queue queue;
    ASSERT_TRUE(cuda::EnqueuePaddedCopy(from.data(), from_matrix, to.data(), to_matrix, queue).ok());
    EXPECT_EQ(to, expected);
  }
}

TEST(CudaPaddedCopy, AddsABiasInF32AndRoundsOnce) {
  // 1 + 2^-12 rounds to 1 in f16; with another 2^-12 the sum is halfway, with 2^-11 behind it.
  const float sums[] = {1 + 0x1p-12f, 2, 99, 1 + 0x1p-12f, -2, 99};
  const Half bias[] = {Half(0x1p-11f), Half(0.5f)};
  Half to[4];
  emulation::Queue queue;
  ASSERT_TRUE(
      cuda::EnqueueRoundedSum(sums, 3, {bias, DType::kF16}, {to, DType::kF16}, /*rows=*/2, /*width=*/2, queue).ok());
  const float expected[] = {1 + 0x1p-10f, 2.5f, 1 + 0x1p-10f, -1.5f};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(static_cast<float>(to[i]), expected[i]) << i;
}

}  // namespace
}  // namespace mpc::test
