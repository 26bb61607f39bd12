// Activation functions, comparison, movement of parts of tensors, look-ups, and the layers made of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "frontend/graph/ops.h"
#include "frontend/nn/activations.h"
#include "frontend/nn/embedding.h"
#include "tests/frontend/error_of.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

const Tensor kA = Tensor::From({1.0f, -2.0f, 3.0f, 4.0f}, {2, 2});
const Tensor kB = Tensor::From({2.0f, 4.0f}, {2});

TEST(Ops, ActivationFunctions) {
  EXPECT_THAT(abs(kA).ToFloats(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(floor(kA / 2.0).ToFloats(), ElementsAre(0, -1, 1, 2));
  EXPECT_THAT(leaky_relu(kA).ToFloats(), Pointwise(FloatNear(1e-7f), {1.0f, -0.4f, 3.0f, 4.0f}));
  EXPECT_THAT(leaky_relu(kA, 0.5).ToFloats(), ElementsAre(1, -1, 3, 4));
  EXPECT_THAT(prelu(kA, Tensor::From({0.5f, 0.25f}, {2})).ToFloats(), ElementsAre(1, -0.5, 3, 4))
      << "a slope a channel";
  EXPECT_THAT(prelu(kA, Tensor::From({0.5f}, {1})).ToFloats(), ElementsAre(1, -1, 3, 4)) << "one slope for all";
  EXPECT_THAT(pow(kB, 2).ToFloats(), ElementsAre(4, 16));
  EXPECT_THAT(pow(kB, -0.5).ToFloats(), Pointwise(FloatNear(1e-6f), {std::sqrt(0.5f), 0.5f}));
  EXPECT_THAT(clamp(kA, -1, 3).ToFloats(), ElementsAre(1, -1, 3, 3));
  const auto near = [](float expected) { return ElementsAre(FloatNear(expected, 1e-6f)); };
  const Tensor x = Tensor::From({0.75f}, {1});
  EXPECT_THAT(log1p(x).ToFloats(), near(std::log1p(0.75f)));
  EXPECT_THAT(sin(x).ToFloats(), near(std::sin(0.75f)));
  EXPECT_THAT(cos(x).ToFloats(), near(std::cos(0.75f)));
  EXPECT_THAT(silu(x).ToFloats(), near(0.75f / (1 + std::exp(-0.75f))));
  EXPECT_THAT(hard_swish(x).ToFloats(), near(0.75f * 3.75f / 6));
  EXPECT_THAT(erf(x).ToFloats(), near(std::erf(0.75f)));
  EXPECT_THAT(gelu(x).ToFloats(), near(0.375f * (1 + std::erf(0.75f / std::sqrt(2.0f)))));
  const float u = std::sqrt(2 / 3.14159265f) * (0.75f + 0.044715f * 0.421875f);
  EXPECT_THAT(gelu(x, "tanh").ToFloats(), near(0.375f * (1 + std::tanh(u))));
}

class AddsStored : public nn::Cell {
 public:
  MPC_CELL(AddsStored)
  Tensor Construct(const Tensor& x) { return x + Tensor::Full({2, 2}, 1.0, DType::kF8E5M2); }
};

TEST(Ops, ATensorOfATypeThatOnlyCastsTakeIsAnError) {
  EXPECT_THAT(std::string(AddsStored()(kA).status().message()),
              AllOf(HasSubstr("a tensor is tensor<2x2xf8E5M2>"), HasSubstr("as with x.To(DType::kF32)")));
}

TEST(Ops, ComparisonAndChoice) {
  EXPECT_THAT(minimum(kA, kB).ToFloats(), ElementsAre(1, -2, 2, 4));
  EXPECT_THAT(greater(kA, kB).ToFloats(), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(less(kA, kB).ToFloats(), ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(greater(kA, kB).dtype(), DType::kBool);
  EXPECT_THAT(not_equal(kA, kB).ToFloats(), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(greater_equal(kA, kB).ToFloats(), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(less_equal(kA, kB).ToFloats(), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(logical_and(less(kA, kB), greater(kA, kB)).ToFloats(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(logical_or(less(kA, kB), greater(kA, kB)).ToFloats(), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(logical_not(equal(kA, kB)).ToFloats(), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(ErrorOf(logical_and(kA, kB)), HasSubstr("takes truth values of i1"));
  EXPECT_THAT(ErrorOf(logical_not(kA)), HasSubstr("a comparison such as not_equal makes them"));
  EXPECT_THAT(where(greater(kA, Tensor::Scalar(0.0f)), kA, kB).ToFloats(), ElementsAre(1, 4, 3, 4));
  EXPECT_THAT(where(less(kB, Tensor::Scalar(3.0f)), Tensor::Scalar(7.0f), kA).ToFloats(), ElementsAre(7, -2, 7, 4));
}

class Ordered : public nn::Cell {
 public:
  MPC_CELL(Ordered)
  /// Elements behind the first column, and zeros.
  Tensor Construct(const Tensor& x) {
    return where(greater(iota({2, 2}), Tensor::Scalar(0.0f)), x, Tensor::Scalar(0.0f));
  }
};

TEST(Ops, ArithmeticOfIntegers) {
  for (DType dtype : {DType::kI32, DType::kI64}) {
    const Tensor a = cast(Tensor::From({7.0f, -7.0f, 5.0f}, {3}), dtype);
    const Tensor b = cast(Tensor::From({2.0f, 2.0f, 0.0f}, {3}), dtype);
    const auto floats = [](const Tensor& x) { return cast(x, DType::kF32).ToFloats(); };
    EXPECT_EQ((a + b).dtype(), dtype);
    EXPECT_THAT(floats(a + b), ElementsAre(9, -5, 5));
    EXPECT_THAT(floats(a - b), ElementsAre(5, -9, 5));
    EXPECT_THAT(floats(a * b), ElementsAre(14, -14, 0));
    EXPECT_THAT(floats(floor_div(a, b)), ElementsAre(3, -4, 0));
    EXPECT_THAT(floats(floor_mod(a, b)), ElementsAre(1, 1, 5));
    EXPECT_THAT(floats(maximum(a, b)), ElementsAre(7, 2, 5));
    EXPECT_THAT(floats(minimum(a, b)), ElementsAre(2, -7, 0));
    EXPECT_THAT(floats(-a), ElementsAre(-7, 7, -5));
    EXPECT_THAT(floats(abs(a)), ElementsAre(7, 7, 5));
  }
  const Tensor largest = cast(Tensor::From({2147483648.0f}, {1}), DType::kI32);  // a cast saturates
  EXPECT_THAT(cast(largest + cast(Tensor::From({1.0f}, {1}), DType::kI32), DType::kF32).ToFloats(),
              ElementsAre(-2147483648.0f));
}

TEST(Ops, ArithmeticOfIntegersTakesOneType) {
  const Tensor narrow = cast(kB, DType::kI32), wide = cast(kB, DType::kI64);
  EXPECT_THAT(ErrorOf(narrow + wide),
              HasSubstr("int_add takes operands of one type, got tensor<2xi32> and tensor<2xi64>; cast changes it"));
  EXPECT_THAT(ErrorOf(floor_div(kB, kB)), HasSubstr("int_floor_div takes integers, i32 or i64, got tensor<2xf32>"));
  EXPECT_FALSE((narrow + kB).status().ok());
}

TEST(Ops, EquallySpacedNumbers) {
  EXPECT_THAT(arange(3).ToFloats(), ElementsAre(0, 1, 2));
  EXPECT_EQ(arange(3).dtype(), DType::kI64);
  EXPECT_THAT(arange(5, 0, -2, DType::kF32).ToFloats(), ElementsAre(5, 3, 1));
  EXPECT_EQ(arange(5, 0, -2, DType::kF32).dtype(), DType::kF32);
  EXPECT_THAT(iota({2, 2}, 0).ToFloats(), ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(iota({2, 2}, 0).dtype(), DType::kI32);
  EXPECT_THAT(Ordered()(kA).ToFloats(), ElementsAre(0, -2, 0, 4));
  EXPECT_THAT(ErrorOf(arange(0, 3, -1)), HasSubstr("a step that leads from start towards end"));
  EXPECT_THAT(ErrorOf(arange(0, 3, 0)), HasSubstr("a step that leads from start towards end"));
  EXPECT_THAT(ErrorOf(iota({2}, 1)), HasSubstr("iota axis 1 is outside"));
  EXPECT_THAT(ErrorOf(iota({2}, 0, DType::kBool)), HasSubstr("iota"));
}

TEST(Ops, ConcatAndSplitAreInverse) {
  const std::vector<Tensor> columns = split(kA, {1, 1}, -1);
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_THAT(columns[0].ToFloats(), ElementsAre(1, 3));
  EXPECT_THAT(columns[1].ToFloats(), ElementsAre(-2, 4));
  EXPECT_THAT(concat(columns, 1).ToFloats(), ElementsAre(1, -2, 3, 4));
  EXPECT_THAT(concat({kA, reshape(kB, {1, 2})}).ToFloats(), ElementsAre(1, -2, 3, 4, 2, 4));
  EXPECT_EQ(split(Values({12, 2}), {2, 2, 2, 2, 2, 2}).size(), 6u);
}

TEST(Ops, SliceAndPadAreInverse) {
  const Tensor padded = pad(kA, {0, 1}, {1, 0}, 9);
  EXPECT_THAT(padded.ToFloats(), ElementsAre(9, 1, -2, 9, 3, 4, 9, 9, 9));
  EXPECT_THAT(slice(padded, {0, 1}, {2, 2}).ToFloats(), ElementsAre(1, -2, 3, 4));
}

TEST(Ops, LookUps) {
  const Tensor indices = Tensor::From<std::int32_t>({1, 0, 1}, {3});
  EXPECT_THAT(gather(kA, indices).ToFloats(), ElementsAre(3, 4, 1, -2, 3, 4));
  EXPECT_EQ(gather(Values({5, 2, 3}), reshape(indices, {3, 1})).shape(), Shape({3, 1, 2, 3}));
  EXPECT_TRUE(std::isnan(gather(kA, Tensor::From<std::int64_t>({2}, {1})).ToFloats()[0])) << "outside the table";
  EXPECT_THAT(scatter_add(kA, indices, Tensor::From({1.0f, 2.0f, 10.0f, 20.0f, 3.0f, 4.0f}, {3, 2})).ToFloats(),
              ElementsAre(11, 18, 7, 10));
  EXPECT_THAT(ErrorOf(scatter_add(kA, indices, kA)), HasSubstr("scatter_add expects updates of shape 3x2"));
  EXPECT_THAT(one_hot(indices, 2).ToFloats(), ElementsAre(0, 1, 1, 0, 0, 1));
  EXPECT_THAT(one_hot(indices, 2, 0.75, 0.25).ToFloats(), ElementsAre(0.25, 0.75, 0.75, 0.25, 0.25, 0.75));
}

TEST(Ops, MaximaAndMeansOverAxes) {
  EXPECT_EQ(reduce_max(kA).Item<float>(), 4.0f);
  EXPECT_THAT(reduce_max(kA, {-1}).ToFloats(), ElementsAre(1, 4));
  EXPECT_EQ(reduce_max(kA, {0}, /*keep_dims=*/true).shape(), Shape({1, 2}));
  EXPECT_THAT(reduce_min(kA, {-1}).ToFloats(), ElementsAre(-2, 3));
  EXPECT_EQ(reduce_min(kA, {0}, /*keep_dims=*/true).shape(), Shape({1, 2}));
  EXPECT_EQ(reduce_prod(kA).Item<float>(), -24.0f);
  EXPECT_THAT(reduce_prod(kA, {0}).ToFloats(), ElementsAre(3, -8));
  EXPECT_THAT(global_avg_pool2d(Tensor::From({1.0f, 3.0f, 5.0f, 7.0f}, {1, 2, 1, 2})).ToFloats(), ElementsAre(2, 6));
  EXPECT_EQ(global_avg_pool2d(Values({2, 3, 4, 5})).shape(), Shape({2, 3}));
}

TEST(Ops, RunningSumsAndOrders) {
  EXPECT_THAT(cumsum(kA, 1).ToFloats(), ElementsAre(1, -1, 3, 7));
  EXPECT_THAT(cumsum(kA, 0, /*exclusive=*/true, /*reverse=*/true).ToFloats(), ElementsAre(3, 4, 0, 0));
  const auto [sorted, order] = sort(kA);
  EXPECT_THAT(sorted.ToFloats(), ElementsAre(-2, 1, 3, 4));
  EXPECT_THAT(order.ToFloats(), ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(order.dtype(), DType::kI32);
  EXPECT_THAT(sort(kA, 0, /*descending=*/true).first.ToFloats(), ElementsAre(3, 4, 1, -2));
  const auto [largest, where_largest] = topk(kA, 1);
  EXPECT_THAT(largest.ToFloats(), ElementsAre(1, 4));
  EXPECT_THAT(where_largest.ToFloats(), ElementsAre(0, 1));
  EXPECT_THAT(topk(kA, 1, 0, /*largest=*/false).first.ToFloats(), ElementsAre(1, -2));
  EXPECT_THAT(ErrorOf(topk(kA, 3).first), HasSubstr("top_k takes k in [1, 2]"));
  EXPECT_THAT(ErrorOf(cumsum(kA, 2)), HasSubstr("cumsum axis 2 is outside"));
}

TEST(Ops, ConcatGivesTheTypeThatArithmeticHas) {
  const Tensor low = cast(kB, DType::kF16);
  const Tensor joined = concat({kB, low, cast(kB, DType::kBF16)});
  EXPECT_EQ(joined.dtype(), DType::kF32);
  EXPECT_THAT(joined.ToFloats(), ElementsAre(2, 4, 2, 4, 2, 4));
  EXPECT_EQ(concat({low, low}).dtype(), DType::kF16);
  EXPECT_THAT(ErrorOf(concat({kB, Tensor::From<std::int32_t>({1}, {1})})), HasSubstr("of one element type"));
}

TEST(Ops, EmptyTensorsAreRefusedByName) {
  const Tensor empty = Tensor::Zeros({0, 4});
  const auto refuses = [](const std::string& op) { return HasSubstr(op + " takes tensors with at least one element"); };
  EXPECT_THAT(ErrorOf(relu(empty)), refuses("relu"));
  EXPECT_THAT(ErrorOf(reduce_mean(empty, {1})), refuses("reduce_mean"));
  EXPECT_THAT(ErrorOf(concat({kA, Tensor::Zeros({0, 2})})), refuses("concat"));
  EXPECT_THAT(ErrorOf(matmul(empty, Tensor::Zeros({4, 2}))), refuses("matmul"));
  EXPECT_THAT(ErrorOf(gather(kA, Tensor::Zeros({0}, DType::kI32))), refuses("gather"));
  EXPECT_THAT(ErrorOf(broadcast_to(Tensor::Zeros({1}), {0})), HasSubstr("at least one"));
}

TEST(Ops, TypesThatAnOperationDoesNotTakeAreNamedWithTheCast) {
  const Tensor integers = Tensor::From<std::int32_t>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(ErrorOf(relu(integers)),
            "relu does not take tensor<2x2xi32> as operand 0; cast it first, as with ops::Cast(x, DType::kF32)");
  EXPECT_EQ(ErrorOf(sigmoid(Tensor::From<std::int64_t>({1, 2}, {2}))),
            "sigmoid does not take tensor<2xi64> as operand 0; cast it first, as with ops::Cast(x, DType::kF32)");
}

TEST(Ops, ErrorsOfMovementSayWhatIsAccepted) {
  EXPECT_THAT(ErrorOf(concat({})), HasSubstr("at least one tensor"));
  EXPECT_THAT(ErrorOf(concat({kA, kB})), HasSubstr("agree on every other axis"));
  const std::vector<Tensor> pieces = split(kA, {1, 1, 1, 1, 1}, 0);
  ASSERT_EQ(pieces.size(), 5u);
  for (const Tensor& piece : pieces) EXPECT_THAT(ErrorOf(piece), HasSubstr("add up to 2"));
  EXPECT_THAT(ErrorOf(slice(kA, {0, 1}, {2, 2})), HasSubstr("has elements 0 to 1"));
  EXPECT_THAT(ErrorOf(pad(kA, {0}, {0})), HasSubstr("one of low an axis"));
  EXPECT_THAT(ErrorOf(gather(kA, kB)), HasSubstr("indices of i32 or i64"));
  EXPECT_THAT(ErrorOf(where(kA, kA, kA)), HasSubstr("condition of i1"));
  EXPECT_THAT(ErrorOf(gelu(kA, "erf")), HasSubstr("\"none\" or \"tanh\""));
  EXPECT_THAT(ErrorOf(prelu(kA, Values({3}))), HasSubstr("one slope a channel"));
  EXPECT_THAT(ErrorOf(clamp(kA, 1, -1)), HasSubstr("the minimum must not exceed the maximum"));
  for (const double exponent : {1e300, std::nan("")}) {
    EXPECT_THAT(ErrorOf(pow(kA, exponent)), HasSubstr("takes an exponent that is finite in f32"));
  }
  EXPECT_THAT(ErrorOf(global_avg_pool2d(kA)), HasSubstr("[N, C, H, W]"));
}

TEST(ActivationLayers, HaveMindSporesDefaults) {
  EXPECT_THAT(nn::LeakyReLU()(kA).ToFloats(), Pointwise(FloatNear(1e-7f), {1.0f, -0.4f, 3.0f, 4.0f}));
  EXPECT_EQ(nn::GELU()(kA).ToFloats(), gelu(kA, "tanh").ToFloats());
  EXPECT_EQ(nn::GELU(/*approximate=*/false)(kA).ToFloats(), gelu(kA).ToFloats());
  EXPECT_EQ(nn::SiLU()(kA).ToFloats(), silu(kA).ToFloats());
  EXPECT_EQ(nn::HSwish()(kA).ToFloats(), hard_swish(kA).ToFloats());
  nn::PReLU prelu_layer(2);
  EXPECT_EQ(prelu_layer.w.shape(), Shape({2}));
  EXPECT_THAT(prelu_layer(kA).ToFloats(), ElementsAre(1, -0.5, 3, 4));
}

TEST(Embedding, LooksUpRowsOfItsTable) {
  nn::Embedding embedding(3, 2, {.embedding_table = Ones()});
  ASSERT_TRUE(embedding.embedding_table.SetData(Tensor::From({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2})).ok());
  const Tensor indices = Tensor::From<std::int32_t>({2, 0, 1, 2}, {2, 2});
  EXPECT_EQ(embedding(indices).shape(), Shape({2, 2, 2}));
  EXPECT_THAT(embedding(indices).ToFloats(), ElementsAre(5, 6, 1, 2, 3, 4, 5, 6));
  // N(0, 0.01^2): 8,000 draws within six deviations.
  nn::Embedding drawn(1000, 8);
  for (float value : drawn.embedding_table.Value()->ToFloats()) ASSERT_LT(std::abs(value), 0.06f);
}

}  // namespace
}  // namespace mpc
