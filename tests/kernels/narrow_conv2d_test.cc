// The own convolutions of few channels, beyond the cases of the table: lanes without a result, and threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/row_permutation.h"

namespace mpc::test {
namespace {

using Floats = std::vector<float>;

/// 5x5 windows over 32x32 pixels of 1 channel, to 6 channels: a row of results ends inside a vector.
constexpr std::int64_t kBatch = 19, kSize = 32, kResults = 28, kOut = 6, kWindow = 5;
const Shape kX{kBatch, kSize, kSize, 1}, kWeight{kOut, 1, kWindow, kWindow}, kY{kBatch, kResults, kResults, kOut};

Floats Convolve(const std::string& name, const Shape& first, const Shape& second, const Shape& result,
                const std::vector<const Floats*>& inputs) {
  const auto f32 = [](const Shape& shape) { return TensorSpec{DType::kF32, shape}; };
  KernelSpec spec{name, {f32(first), f32(second)}, {f32(result)}, {}, {{"data_format", std::string("NHWC")}}};
  auto kernel = cpu::CreateKernel(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->choice(), "own");
  Floats values(static_cast<std::size_t>(NumElements(result)));
  std::vector<std::uint8_t> workspace((*kernel)->workspace_bytes() + 64);
  const auto place = reinterpret_cast<std::uintptr_t>(workspace.data());
  const void* operands[] = {inputs[0]->data(), inputs[1]->data()};
  void* results[] = {values.data()};
  (*kernel)->Run({operands, results, workspace.data() + (64 - place % 64)});
  return values;
}

Floats Values(const Shape& shape, std::uint32_t seed) {
  Floats values(static_cast<std::size_t>(NumElements(shape)));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 16) * 0x1p-16f - 0.5f;
  }
  return values;
}

class NarrowConvolution : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::HasAvx512()) GTEST_SKIP() << "needs AVX-512";
  }
};

TEST_F(NarrowConvolution, AnInfinityReachesTheWeightsThatMeetItAndNoOther) {
  Floats x = Values(kX, 1);
  x[kSize - 1] = std::numeric_limits<float>::infinity();  // the last pixel of a row: met by the last columns alone
  const Floats dy = Values(kY, 2);
  const Floats gradient = Convolve("conv2d_grad_weight", kX, kY, kWeight, {&x, &dy});
  for (std::int64_t i = 0; i < NumElements(kWeight); ++i) {
    const bool meets = i / kWindow % kWindow == 0 && i % kWindow == kWindow - 1;
    EXPECT_EQ(std::isfinite(gradient[static_cast<std::size_t>(i)]), !meets) << i;
  }
}

// LeNet-5's second one. The library's threads would wait for each other, on a busy machine for long.
TEST_F(NarrowConvolution, TheGradientOfSixteenChannelsWaitsForNoThreadOfTheLibrary) {
  const Shape shape_x{kBatch, 14, 14, 6}, shape_weight{16, 6, 5, 5}, shape_y{kBatch, 10, 10, 16};
  const Floats x = Values(shape_x, 1), dy = Values(shape_y, 2);
  const int threads = cpu::NumThreads();
  const auto gradient = [&](int count) {
    cpu::SetNumThreads(count);
    return Convolve("conv2d_grad_weight", shape_x, shape_y, shape_weight, {&x, &dy});
  };
  const Floats one = gradient(1);
  EXPECT_EQ(gradient(3), one);
  EXPECT_EQ(gradient(8), one);
  cpu::SetNumThreads(threads);
  double sum = 0;  // of the weight that each output's window begins with, over channel 15 and channel 5
  for (std::int64_t image = 0; image < kBatch; ++image) {
    for (std::int64_t row = 0; row < 10; ++row) {
      for (std::int64_t column = 0; column < 10; ++column) {
        sum += static_cast<double>(x[static_cast<std::size_t>(((image * 14 + row) * 14 + column) * 6 + 5)]) *
               static_cast<double>(dy[static_cast<std::size_t>(((image * 10 + row) * 10 + column) * 16 + 15)]);
      }
    }
  }
  // 1,900 products of at most 1/4, each sum rounded to 2^-24 of at most 475.
  EXPECT_NEAR(one[static_cast<std::size_t>((15 * 6 + 5) * 25)], sum, 1900 * 475 * 0x1p-24);
}

TEST_F(NarrowConvolution, BitsDoNotDependOnTheNumberOfThreads) {
  const Floats x = Values(kX, 1), weight = Values(kWeight, 2), dy = Values(kY, 3);
  const int threads = cpu::NumThreads();
  const auto all = [&](int count) {
    cpu::SetNumThreads(count);
    return std::vector<Floats>{Convolve("conv2d", kX, kWeight, kY, {&x, &weight}),
                               Convolve("conv2d_grad_input", kY, kWeight, kX, {&dy, &weight}),
                               Convolve("conv2d_grad_weight", kX, kY, kWeight, {&x, &dy})};
  };
  const std::vector<Floats> one = all(1);
  EXPECT_EQ(all(3), one);
  EXPECT_EQ(all(8), one);
  cpu::SetNumThreads(threads);
}

}  // namespace
}  // namespace mpc::test
