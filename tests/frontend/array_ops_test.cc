// Functions of whole tensors that are compositions. Expected elements are those of PyTorch 2.15.
#include "frontend/graph/array_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "frontend/graph/axis_ops.h"
#include "tests/frontend/eighths.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"

namespace mpc {
namespace {

using testing::Eighths;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::HasSubstr;
using testing::kInfinity;
using testing::kNan;
using testing::Values;

Tensor Counted(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(NumElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::From(values, shape);
}

TEST(ArrayOps, MaskedFill) {
  const Tensor x = Counted({2, 3});
  const Tensor column = Tensor::From<bool>({true, false}, {2, 1});
  EXPECT_THAT(masked_fill(x, column, -kInfinity).ToFloats(), ElementsAre(-kInfinity, -kInfinity, -kInfinity, 3, 4, 5));
  const Tensor integers = masked_fill(x.To(DType::kI32), column, -7);
  EXPECT_EQ(integers.dtype(), DType::kI32);
  EXPECT_THAT(integers.ToFloats(), ElementsAre(-7, -7, -7, 3, 4, 5));
  EXPECT_EQ(masked_fill(x.To(DType::kF16), column, 1).dtype(), DType::kF16);
  ExpectGradient([&](const Tensor& x) { return masked_fill(x, column, 3); }, Eighths(2, {2, 3}));
  EXPECT_THAT(ErrorOf(masked_fill(x, Tensor::From<bool>({true, false}, {2}), 0)),
              HasSubstr("masked_fill takes a mask of i1 that broadcasts to x, got tensor<2xi1> for tensor<2x3xf32>"));
  EXPECT_THAT(ErrorOf(masked_fill(x, x, 0)), HasSubstr("masked_fill takes a mask of i1"));
  EXPECT_THAT(ErrorOf(masked_fill(Counted({3}), Tensor::From<bool>({true, false}, {2, 1}), 0)),
              HasSubstr("broadcasts to x"));
}

TEST(ArrayOps, Roll) {
  const Tensor x = Counted({2, 3});
  EXPECT_THAT(roll(x, {1, -1}, {0, 1}).ToFloats(), ElementsAre(4, 5, 3, 1, 2, 0));
  EXPECT_THAT(roll(x, {4}).ToFloats(), ElementsAre(2, 3, 4, 5, 0, 1));
  EXPECT_EQ(roll(x, {4}).shape(), Shape({2, 3}));
  EXPECT_THAT(roll(x, {-300}, {-1}).ToFloats(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(roll(x.To(DType::kI64), {2}).dtype(), DType::kI64);
  ExpectGradient([](const Tensor& x) { return roll(x, {1, 2}, {0, 1}); }, Eighths(2));
  EXPECT_THAT(ErrorOf(roll(x, {1, 2}, {0})), HasSubstr("got shifts [1, 2] and axes [0] for tensor<2x3xf32>"));
  EXPECT_THAT(ErrorOf(roll(x, {1, 2})), HasSubstr("roll takes a shift for each axis"));
  EXPECT_THAT(ErrorOf(roll(x, {1}, {2})), HasSubstr("axes [2]"));
  const Tensor failed = matmul(x, x);
  EXPECT_EQ(ErrorOf(roll(failed, {1})), ErrorOf(failed));
  EXPECT_EQ(ErrorOf(roll(failed, {1}, {0})), ErrorOf(failed));
  EXPECT_NE(ErrorOf(roll(Tensor(), {1})), "");
  EXPECT_THAT(ErrorOf(roll(Tensor::Zeros({0, 3}), {1}, {0})), HasSubstr("at least one element"));
}

TEST(ArrayOps, RepeatInterleave) {
  const Tensor x = Counted({2, 2});
  EXPECT_THAT(repeat_interleave(x, 2, 1).ToFloats(), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_EQ(repeat_interleave(x, 2, 1).shape(), Shape({2, 4}));
  EXPECT_THAT(repeat_interleave(x, 2, -2).ToFloats(), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_EQ(repeat_interleave(x, 2, -2).shape(), Shape({4, 2}));
  EXPECT_THAT(repeat_interleave(x.To(DType::kI32), 2).ToFloats(), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_EQ(repeat_interleave(x, 3).shape(), Shape({12}));
  EXPECT_EQ(repeat_interleave(Tensor::Scalar(2.0f), 2).shape(), Shape({2}));
  ExpectGradient([](const Tensor& x) { return repeat_interleave(x, 3, 0); }, Eighths(2));
  EXPECT_THAT(ErrorOf(repeat_interleave(x, 0)), HasSubstr("repeat_interleave takes 1 repeat or more"));
  EXPECT_NE(ErrorOf(repeat_interleave(x, std::numeric_limits<std::int64_t>::max(), 0)), "");
  EXPECT_THAT(ErrorOf(repeat_interleave(x, 2, 2)), HasSubstr("got 2 and axis 2 for tensor<2x2xf32>"));
}

TEST(ArrayOps, OuterAndDot) {
  const Tensor a = Tensor::From({1.0f, -2.0f}, {2}), b = Tensor::From({3.0f, 0.5f, 4.0f}, {3});
  EXPECT_THAT(outer(a, b).ToFloats(), ElementsAre(3, 0.5, 4, -6, -1, -8));
  EXPECT_EQ(outer(a, b).shape(), Shape({2, 3}));
  EXPECT_EQ(dot(b, b).shape(), Shape());
  EXPECT_EQ(dot(b, b).Item<float>(), 25.25f);
  ExpectGradient([&](const Tensor& a) { return outer(a, b); }, a);
  ExpectGradient([&](const Tensor& a) { return dot(a, b); }, Eighths(2, {3}));
  EXPECT_THAT(ErrorOf(outer(a, Counted({2, 2}))),
              HasSubstr("outer takes two tensors of rank 1, got tensor<2xf32> and"));
  EXPECT_THAT(ErrorOf(dot(a, b)), HasSubstr("dot takes two tensors of rank 1 and one extent, got tensor<2xf32> and "
                                            "tensor<3xf32>"));
  EXPECT_NE(ErrorOf(dot(Counted({2, 2}), Counted({2, 2}))), "");
}

TEST(ArrayOps, DiagAndEye) {
  EXPECT_THAT(diag(Tensor::From({2.0f, kInfinity}, {2})).ToFloats(), ElementsAre(2, 0, 0, kInfinity));
  EXPECT_THAT(diag(Counted({2, 3})).ToFloats(), ElementsAre(0, 4));
  EXPECT_THAT(diag(Counted({3, 2})).ToFloats(), ElementsAre(0, 3));
  EXPECT_THAT(diag(Counted({1, 1})).ToFloats(), ElementsAre(0));
  EXPECT_EQ(diag(Counted({2, 3}).To(DType::kI32)).dtype(), DType::kI32);
  ExpectGradient([](const Tensor& x) { return diag(x); }, Eighths(2));
  ExpectGradient([](const Tensor& x) { return diag(x); }, Eighths(2, {3}));
  EXPECT_THAT(ErrorOf(diag(Counted({1, 1, 1}))),
              HasSubstr("diag takes a tensor of rank 1 or 2, got tensor<1x1x1xf32>"));
  EXPECT_THAT(eye(2, 3).ToFloats(), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_EQ(eye(3).shape(), Shape({3, 3}));
  EXPECT_EQ(eye(2, 2, DType::kI64).dtype(), DType::kI64);
  EXPECT_THAT(ErrorOf(eye(2, 0)), HasSubstr("eye takes extents of 1 or more, got [2, 0]"));
}

/// Adds both to x.
class Constants : public nn::Cell {
 public:
  MPC_CELL(Constants)
  Tensor Construct(const Tensor& x) { return x + eye(3) + linspace(0, 1, 3); }
};

TEST(ArrayOps, Linspace) {
  EXPECT_THAT(linspace(-1, 2, 7).ToFloats(), ElementsAre(-1, -0.5, 0, 0.5, 1, 1.5, 2));
  // Each is the f32 number next to the exact one.
  EXPECT_THAT(linspace(0.1, 0.7, 4).ToFloats(), ElementsAre(0.1f, 0.3f, 0.5f, 0.7f));
  EXPECT_THAT(linspace(3, -1, 1).ToFloats(), ElementsAre(3));
  EXPECT_THAT(linspace(-3e38, 3e38, 3).ToFloats(), ElementsAre(-3e38f, 0, 3e38f));
  EXPECT_THAT(Constants()(Tensor::Zeros({3, 3})).ToFloats(), ElementsAre(1, 0.5, 1, 0, 1.5, 1, 0, 0.5, 2));
  EXPECT_THAT(ErrorOf(linspace(0, 1, 0)),
              HasSubstr("linspace takes 1 to 2^24 steps between numbers that f32 holds, got 0 from 0 to 1"));
  EXPECT_THAT(ErrorOf(linspace(0, kNan, 2)), HasSubstr("from 0 to nan"));
}

}  // namespace
}  // namespace mpc
