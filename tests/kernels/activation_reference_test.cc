// Activation functions, selection, movement and look-ups of the reference, on values computed by hand.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/kernels/reference_run.h"

namespace mpc::test {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Values Unary(std::string_view op, double x, const Attributes& attributes = {}) {
  return RunOne(op, attributes, {F32({1}, {x})}, {1});
}
Values Gradient(std::string_view op, double dy, double x, const Attributes& attributes = {}) {
  return RunOne(op, attributes, {F32({1}, {dy}), F32({1}, {x})}, {1});
}

TEST(ActivationReference, KnownValues) {
  ExpectNear(Unary("silu", 1), {0.7310585786300049});
  ExpectNear(Unary("hard_swish", 1), {4.0 / 6});
  ExpectNear(Unary("hard_swish", -3), {0});
  ExpectNear(Unary("hard_swish", 5), {5});
  ExpectNear(Gradient("hard_swish_grad", 2, 1), {10.0 / 6});
  ExpectNear(Unary("erf", 0.5), {0.5204998778130465});
  ExpectNear(Gradient("erf_grad", 2, 0), {2.256758334191025});
  ExpectNear(Unary("gelu", 1), {0.8413447460685429});
  ExpectNear(Unary("gelu", 1, {{"approximate", std::string("tanh")}}), {0.8411919906082768});
  ExpectNear(Unary("log1p", 1e-10), {1e-10 - 5e-21}, 1e-25);
  ExpectNear(Unary("pow", 3, {{"exponent", -2.0}}), {1.0 / 9});
  ExpectNear(Gradient("pow_grad", 2, 3, {{"exponent", 2.0}}), {12});
  ExpectNear(Gradient("square_grad", 2, 3), {12});
  ExpectNear(Gradient("sin_grad", 2, 0), {2});
  ExpectNear(Gradient("cos_grad", 2, 0), {0});
  ExpectNear(Gradient("leaky_relu_grad", 2, -1, {{"alpha", 0.25}}), {0.5});
}

TEST(ActivationReference, TheLowerTailOfGeluKeepsItsDigits) {
  // Phi(-10) = 7.619853024160525e-24, where 1 + erf(-10 / sqrt 2) is 0.
  const double expected = -10 * 7.619853024160525e-24;
  EXPECT_NEAR(Unary("gelu", -10)[0], expected, 1e-14 * std::abs(expected));
}

TEST(ActivationReference, DerivativesAtKinks) {
  EXPECT_EQ(Gradient("abs_grad", 3, 0)[0], 0);
  EXPECT_EQ(Gradient("leaky_relu_grad", 3, 0, {{"alpha", 0.5}})[0], 1.5);
  const Attributes unit = {{"minimum", 0.0}, {"maximum", 1.0}};
  EXPECT_EQ(Gradient("clamp_grad", 3, 0, unit)[0], 3) << "the limits are inside";
  EXPECT_EQ(Gradient("clamp_grad", 3, 1, unit)[0], 3);
  EXPECT_EQ(Gradient("clamp_grad", 3, 1.5, unit)[0], 0);
  EXPECT_TRUE(std::isnan(Unary("clamp", kNaN, unit)[0]));
  EXPECT_EQ(Gradient("pow_grad", kInfinity, 0, {{"exponent", 0.0}})[0], 0);
}

TEST(ActivationReference, APowerOfANegativeNumberNeedsAWholeExponent) {
  EXPECT_EQ(Unary("pow", -2, {{"exponent", 3.0}})[0], -8);
  EXPECT_TRUE(std::isnan(Unary("pow", -2, {{"exponent", 0.5}})[0]));
  EXPECT_TRUE(std::isnan(Unary("pow", -kInfinity, {{"exponent", 0.5}})[0]));
}

TEST(ActivationReference, PreluHasItsSlopesOnTheChannelAxis) {
  const reference::Tensor slopes = F32({2}, {0.5, 0.25});
  const auto x = [](Shape shape) { return F32(std::move(shape), {-4, -4, -4, 4}); };
  EXPECT_THAT(RunOne("prelu", {}, {x({1, 2, 1, 2}), slopes}, {1, 2, 1, 2}), ElementsAre(-2, -2, -1, 4));
  const Attributes nhwc = {{"data_format", std::string("NHWC")}};
  EXPECT_THAT(RunOne("prelu", nhwc, {x({1, 1, 2, 2}), slopes}, {1, 1, 2, 2}), ElementsAre(-2, -1, -2, 4));
  EXPECT_THAT(RunOne("prelu", {}, {x({2, 2}), F32({1}, {2})}, {2, 2}), ElementsAre(-8, -8, -8, 4));
  const auto gradients = RunReference("prelu_grad", {}, {F32({2, 2}, {1, 2, 3, 5}), x({2, 2}), slopes},
                                      {{DType::kF32, {2, 2}}, {DType::kF32, {2}}});
  EXPECT_THAT(gradients[0].values, ElementsAre(0.5, 0.5, 1.5, 5));
  EXPECT_THAT(gradients[1].values, ElementsAre(-4 - 12, -8));
}

TEST(SelectionReference, MinimumPropagatesNaNAndSharesTies) {
  const Values y = RunOne("minimum", {}, {F32({3}, {1, kNaN, 2}), F32({3}, {2, 1, 2})}, {3});
  EXPECT_EQ(y[0], 1);
  EXPECT_TRUE(std::isnan(y[1]));
  const auto gradients =
      RunReference("minimum_grad", {}, {F32({3}, {8, 8, 8}), F32({3}, {1, 2, 3}), F32({3}, {3, 2, 1})},
                   {{DType::kF32, {3}}, {DType::kF32, {3}}});
  EXPECT_THAT(gradients[0].values, ElementsAre(8, 4, 0));
  EXPECT_THAT(gradients[1].values, ElementsAre(0, 4, 8));
}

TEST(SelectionReference, WhereTakesNothingFromTheOtherOperand) {
  EXPECT_THAT(RunOne("where", {}, {Bool({2, 1}, {1, 0}), F32({2}, {1, 2}), F32({}, {9})}, {2, 2}),
              ElementsAre(1, 2, 9, 9));
  EXPECT_THAT(RunOne("where", {}, {Bool({1}, {0}), F32({1}, {kNaN}), F32({1}, {3})}, {1}), ElementsAre(3));
  EXPECT_THAT(
      RunReference("greater", {}, {F32({3}, {1, 2, kNaN}), F32({3}, {1, 1, 1})}, {{DType::kBool, {3}}})[0].values,
      ElementsAre(0, 1, 0));
}

TEST(SelectionReference, ComparisonsOfNaN) {
  const auto compare = [](std::string_view op) {
    return RunReference(op, {}, {F32({4}, {1, 2, 3, kNaN}), F32({}, {2})}, {{DType::kBool, {4}}})[0].values;
  };
  EXPECT_THAT(compare("not_equal"), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(compare("greater_equal"), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(compare("less_equal"), ElementsAre(1, 1, 0, 0));
}

TEST(SelectionReference, Logic) {
  const auto run = [](std::string_view op, std::vector<reference::Tensor> operands) {
    return RunReference(op, {}, operands, {{DType::kBool, {2, 2}}})[0].values;
  };
  const reference::Tensor a = Bool({2, 1}, {1, 0}), b = Bool({2}, {1, 0});
  EXPECT_THAT(run("logical_and", {a, b}), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(run("logical_or", {a, b}), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(run("logical_not", {Bool({2, 2}, {1, 0, 0, 1})}), ElementsAre(0, 1, 1, 0));
}

TEST(SelectionReference, IotaCountsAlongItsAxis) {
  EXPECT_THAT(
      RunOne("iota", {{"axis", std::int64_t{0}}, {"start", std::int64_t{5}}, {"step", std::int64_t{-2}}}, {}, {2, 3}),
      ElementsAre(5, 5, 5, 3, 3, 3));
  EXPECT_THAT(RunOne("iota", {}, {}, {2, 2}), ElementsAre(0, 1, 0, 1));
}

TEST(MovementReference, ConcatSplitSliceAndPad) {
  const reference::Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Attributes last = {{"axis", std::int64_t{-1}}, {"sizes", Ints{1, 2}}};
  const auto pieces = RunReference("split", last, {x}, {{DType::kF32, {2, 1}}, {DType::kF32, {2, 2}}});
  EXPECT_THAT(pieces[0].values, ElementsAre(1, 4));
  EXPECT_THAT(pieces[1].values, ElementsAre(2, 3, 5, 6));
  EXPECT_EQ(RunOne("concat", last, pieces, {2, 3}), x.values);
  const Values block = RunOne("slice", {{"starts", Ints{1, 1}}, {"sizes", Ints{1, 2}}}, {x}, {1, 2});
  EXPECT_THAT(block, ElementsAre(5, 6));
  EXPECT_THAT(RunOne("pad", {{"low", Ints{0, 1}}, {"high", Ints{1, 0}}, {"value", 9.0}}, {F32({1, 2}, block)}, {2, 3}),
              ElementsAre(9, 5, 6, 9, 9, 9));
}

TEST(MovementReference, LookUpsOutsideTheTable) {
  const Values y = RunOne("gather", {}, {F32({2, 2}, {1, 2, 3, 4}), I32({2}, {1, 2})}, {2, 2});
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(y[1], 4);
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
  EXPECT_THAT(RunOne("gather_grad", {}, {F32({4}, {1, 2, 4, 8}), I64({4}, {2, -1, 2, 3})}, {3}), ElementsAre(0, 0, 5));
  EXPECT_THAT(RunOne("scatter_add", {}, {F32({3}, {1, 1, 1}), I64({4}, {2, -1, 2, 3}), F32({4}, {1, 2, 4, 8})}, {3}),
              ElementsAre(1, 1, 6));
  EXPECT_THAT(RunOne("one_hot", {{"on", 2.0}, {"off", 0.5}}, {I32({2}, {1, 3})}, {2, 3}),
              ElementsAre(0.5, 2, 0.5, 0.5, 0.5, 0.5));
}

TEST(MovementReference, MinimaAndProducts) {
  const reference::Tensor x = F32({2, 3}, {1, 7, 0, 5, 2, 3});
  const Attributes rows = {{"axes", Ints{1}}};
  EXPECT_THAT(RunOne("reduce_min", rows, {x}, {2}), ElementsAre(0, 2));
  EXPECT_TRUE(std::isnan(RunOne("reduce_min", {}, {F32({3}, {1, kNaN, -kInfinity})}, {})[0]));
  EXPECT_THAT(RunOne("reduce_prod", rows, {x}, {2}), ElementsAre(0, 30));
  EXPECT_THAT(RunOne("reduce_prod_grad", rows, {F32({2}, {2, 1}), x}, {2, 3}), ElementsAre(0, 0, 14, 6, 15, 10));
  EXPECT_THAT(RunOne("reduce_prod_grad", {}, {F32({}, {1}), F32({3}, {0, 4, 0})}, {3}), ElementsAre(0, 0, 0));
}

TEST(AxisReference, RunningSums) {
  const reference::Tensor x = F32({2, 3}, {1, 2, 4, 8, 16, 32});
  EXPECT_THAT(RunOne("cumsum", {}, {x}, {2, 3}), ElementsAre(1, 3, 7, 8, 24, 56));
  const Attributes down = {{"axis", std::int64_t{0}}, {"exclusive", true}};
  EXPECT_THAT(RunOne("cumsum", down, {x}, {2, 3}), ElementsAre(0, 0, 0, 1, 2, 4));
  EXPECT_THAT(RunOne("cumsum", {{"reverse", true}}, {x}, {2, 3}), ElementsAre(7, 6, 4, 56, 48, 32));
}

TEST(AxisReference, EqualElementsKeepTheirOrderAndNanIsTheLargest) {
  const auto order = [](std::string_view op, const Attributes& attributes, std::int64_t count) {
    return RunReference(op, attributes, {F32({5}, {2, kNaN, 1, 2, kInfinity})},
                        {{DType::kF32, {count}}, {DType::kI32, {count}}})[1]
        .values;
  };
  EXPECT_THAT(order("sort", {}, 5), ElementsAre(2, 0, 3, 4, 1));
  EXPECT_THAT(order("sort", {{"descending", true}}, 5), ElementsAre(1, 4, 0, 3, 2));
  EXPECT_THAT(order("top_k", {{"k", std::int64_t{3}}}, 3), ElementsAre(1, 4, 0));
  EXPECT_THAT(order("top_k", {{"k", std::int64_t{2}}, {"smallest", true}}, 2), ElementsAre(2, 0));
  EXPECT_THAT(RunOne("top_k_grad", {{"extent", std::int64_t{4}}}, {F32({2}, {5, 6}), I32({2}, {2, 0})}, {4}),
              ElementsAre(6, 0, 5, 0));
}

TEST(MovementReference, EqualMaximaShareTheCotangent) {
  const reference::Tensor x = F32({2, 3}, {1, 7, 7, 5, 2, 3});
  const Attributes rows = {{"axes", Ints{1}}};
  const Values y = RunOne("reduce_max", rows, {x}, {2});
  EXPECT_THAT(y, ElementsAre(7, 5));
  EXPECT_THAT(RunOne("reduce_max_grad", rows, {F32({2}, {8, 3}), x, F32({2}, y)}, {2, 3}),
              ElementsAre(0, 4, 4, 3, 0, 0));
  EXPECT_TRUE(std::isnan(RunOne("reduce_max", {}, {F32({3}, {kNaN, 1, kInfinity})}, {})[0]));
}

}  // namespace
}  // namespace mpc::test
