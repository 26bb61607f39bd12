// The own convolutions of few channels, beyond the cases of the table: lanes without a result, and threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/lane_vectors.h"

namespace mpc::test {
namespace {

using Floats = std::vector<float>;

/// 5x5 windows over 32x32 pixels of 1 channel, to 6 channels: a row of results ends inside a vector.
constexpr std::int64_t kBatch = 19, kSize = 32, kResults = 28, kOut = 6, kWindow = 5;
const Shape kX{kBatch, kSize, kSize, 1}, kWeight{kOut, 1, kWindow, kWindow}, kY{kBatch, kResults, kResults, kOut};

/// The result by our own kernel. `is_own` is told whether it was that one; null: it has to be.
Floats Convolve(const std::string& name, const Shape& first, const Shape& second, const Shape& result,
                const std::vector<const Floats*>& inputs, const Shape& padding = {0, 0}, bool* is_own = nullptr) {
  const auto f32 = [](const Shape& shape) { return TensorSpec{DType::kF32, shape}; };
  KernelSpec spec{name,
                  {f32(first), f32(second)},
                  {f32(result)},
                  {},
                  {{"data_format", std::string("NHWC")},
                   {"pad_mode", std::string("pad")},
                   {"padding", std::vector<std::int64_t>{padding[0], padding[0], padding[1], padding[1]}}}};
  auto kernel = cpu::CreateKernel(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_TRUE(is_own != nullptr || (*kernel)->choice() == "own") << (*kernel)->choice();
  if (is_own != nullptr) *is_own = (*kernel)->choice() == "own";
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
    if (!cpu::HasLanes()) GTEST_SKIP() << "needs AVX2";
  }
};

TEST_F(NarrowConvolution, AnInfinityReachesTheWeightsThatMeetItAndNoOther) {
  // Rows of results end inside a vector of AVX-512, and inside one of AVX2.
  for (const std::int64_t width : {kSize, kSize - 1}) {
    const Shape shape_x{kBatch, kSize, width, 1}, shape_y{kBatch, kResults, width - kWindow + 1, kOut};
    Floats x = Values(shape_x, 1);
    // The last pixel of a row: met by the last columns alone.
    x[static_cast<std::size_t>(width - 1)] = std::numeric_limits<float>::infinity();
    const Floats dy = Values(shape_y, 2);
    const Floats gradient = Convolve("conv2d_grad_weight", shape_x, shape_y, kWeight, {&x, &dy});
    for (std::int64_t i = 0; i < NumElements(kWeight); ++i) {
      const bool meets = i / kWindow % kWindow == 0 && i % kWindow == kWindow - 1;
      EXPECT_EQ(std::isfinite(gradient[static_cast<std::size_t>(i)]), !meets) << i << " of width " << width;
    }
  }
}

// LeNet-5's second one, which the library computes with AVX2.
TEST_F(NarrowConvolution, TheGradientOfSixteenChannelsIsOursWithAvx512) {
  const Shape shape_x{kBatch, 14, 14, 6}, shape_weight{16, 6, 5, 5}, shape_y{kBatch, 10, 10, 16};
  const Floats x = Values(shape_x, 1), dy = Values(shape_y, 2);
  const int threads = cpu::NumThreads();
  const auto gradient = [&](int count) {
    cpu::SetNumThreads(count);
    bool is_own = false;
    Floats values = Convolve("conv2d_grad_weight", shape_x, shape_y, shape_weight, {&x, &dy}, {0, 0}, &is_own);
    EXPECT_EQ(is_own, cpu::HasAvx512());
    return values;
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

/// A convolution of stride 1, and sums over its terms in f64.
struct DrawnNarrow {
  std::int64_t batch, rows, columns, in, out, window_rows, window_columns;
  Shape padding;

  std::int64_t result_rows() const { return rows + 2 * padding[0] - window_rows + 1; }
  std::int64_t result_columns() const { return columns + 2 * padding[1] - window_columns + 1; }
  Shape x() const { return {batch, rows, columns, in}; }
  Shape weight() const { return {out, in, window_rows, window_columns}; }
  Shape y() const { return {batch, result_rows(), result_columns(), out}; }

  /// Calls body(element of x, of the weight, of y) for each product.
  template <typename Body>
  void ForEachProduct(const Body& body) const {
    std::int64_t y_at = 0;
    for (std::int64_t pixel = 0; pixel < batch * result_rows() * result_columns(); ++pixel) {
      const std::int64_t image = pixel / result_columns() / result_rows();
      for (std::int64_t o = 0; o < out; ++o, ++y_at) {
        for (std::int64_t tap = 0; tap < window_rows * window_columns; ++tap) {
          const std::int64_t row = pixel / result_columns() % result_rows() + tap / window_columns - padding[0];
          const std::int64_t column = pixel % result_columns() + tap % window_columns - padding[1];
          if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
          for (std::int64_t c = 0; c < in; ++c) {
            body(((image * rows + row) * columns + column) * in + c, (o * in + c) * window_rows * window_columns + tap,
                 y_at);
          }
        }
      }
    }
  }
};

/// Sums of products, of their magnitudes, and how many products each has.
struct SumsInF64 {
  explicit SumsInF64(const Shape& shape)
      : sum(static_cast<std::size_t>(NumElements(shape))), magnitude(sum.size()), terms(sum.size()) {}
  void Add(std::int64_t at, double a, double b) {
    const auto i = static_cast<std::size_t>(at);
    sum[i] += a * b;
    magnitude[i] += std::abs(a * b);
    ++terms[i];
  }
  /// Each product and each addition in f32 rounds to 2^-24 of at most the sum of magnitudes.
  void ExpectNear(const Floats& values, const std::string& what) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], sum[i], (terms[i] + 1) * magnitude[i] * 0x1p-24) << what << " " << i;
    }
  }
  std::vector<double> sum, magnitude, terms;
};

TEST_F(NarrowConvolution, DrawnShapesAreNearSumsInF64) {
  std::uint32_t seed = 11;
  const auto draw = [&seed](std::int64_t from, std::int64_t to) {
    seed = seed * 1664525u + 1013904223u;
    return from + static_cast<std::int64_t>(seed >> 16) % (to - from + 1);
  };
  int own[3] = {};
  for (int i = 0; i < 200; ++i) {
    DrawnNarrow c{draw(1, 3), draw(5, 20), draw(5, 20), draw(1, 16), draw(1, 16), draw(1, 5), draw(1, 5), {}};
    c.padding = {draw(0, 2), draw(0, 2)};
    const Floats x = Values(c.x(), seed), weight = Values(c.weight(), seed + 1), dy = Values(c.y(), seed + 2);
    SumsInF64 y(c.y()), dx(c.x()), dweight(c.weight());
    const auto at = [](const Floats& values, std::int64_t place) { return values[static_cast<std::size_t>(place)]; };
    c.ForEachProduct([&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at) {
      y.Add(y_at, at(x, x_at), at(weight, w_at));
      dx.Add(x_at, at(dy, y_at), at(weight, w_at));
      dweight.Add(w_at, at(x, x_at), at(dy, y_at));
    });
    const std::string shape = ShapeToString(c.x()) + ShapeToString(c.weight()) + ShapeToString(c.padding);
    bool is_own[3];
    y.ExpectNear(Convolve("conv2d", c.x(), c.weight(), c.y(), {&x, &weight}, c.padding, &is_own[0]), "y of " + shape);
    dx.ExpectNear(Convolve("conv2d_grad_input", c.y(), c.weight(), c.x(), {&dy, &weight}, c.padding, &is_own[1]),
                  "dx of " + shape);
    dweight.ExpectNear(Convolve("conv2d_grad_weight", c.x(), c.y(), c.weight(), {&x, &dy}, c.padding, &is_own[2]),
                       "dweight of " + shape);
    for (int k = 0; k < 3; ++k) own[k] += is_own[k] ? 1 : 0;
  }
  for (const int count : own) EXPECT_GE(count, 15);
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
