// Numbers in place of tensors, and element-wise functions that are made with them.
#include "frontend/graph/scalar_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "frontend/graph/compiled_step.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/traced_ir.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::HasSubstr;
using testing::kInfinity;
using testing::kNan;

std::vector<float> Truths(const Tensor& x) {
  EXPECT_EQ(x.dtype(), DType::kBool) << x.status();
  return x.ToFloats();
}

TEST(ScalarOperands, StandWhereTensorsDo) {
  const Tensor x = Tensor::From({-2.0f, 0.5f, 4.0f}, {3});
  EXPECT_THAT((1.0 / x).ToFloats(), ElementsAre(-0.5, 2, 0.25));
  EXPECT_THAT((3 / x).ToFloats(), ElementsAre(-1.5, 6, 0.75));
  EXPECT_THAT(reciprocal(x).ToFloats(), ElementsAre(-0.5, 2, 0.25));
  EXPECT_THAT(rsqrt(Tensor::From({4.0f, 0.25f}, {2})).ToFloats(), ElementsAre(0.5, 2));
  EXPECT_THAT(maximum(x, 0).ToFloats(), ElementsAre(0, 0.5, 4));
  EXPECT_THAT(maximum(1.5, x).ToFloats(), ElementsAre(1.5, 1.5, 4));
  EXPECT_THAT(minimum(x, 0).ToFloats(), ElementsAre(-2, 0, 0));
  EXPECT_THAT(ops::minimum(1.5, x).ToFloats(), ElementsAre(-2, 0.5, 1.5));
  const Tensor positive = greater(x, 0);
  EXPECT_THAT(Truths(positive), ElementsAre(0, 1, 1));
  EXPECT_THAT(where(positive, x, 0.0).ToFloats(), ElementsAre(0, 0.5, 4));
  EXPECT_THAT(where(positive, 7.0, x).ToFloats(), ElementsAre(-2, 7, 7));
}

TEST(ScalarOperands, OfComparisonsAreNotRoundedToALowType) {
  const Tensor x = Tensor::From({-2.0f, 0.5f, 4.0f}, {3});
  EXPECT_THAT(Truths(equal(x, 0.5)), ElementsAre(0, 1, 0));
  EXPECT_THAT(Truths(not_equal(x, 0.5)), ElementsAre(1, 0, 1));
  EXPECT_THAT(Truths(less(x, 0.5)), ElementsAre(1, 0, 0));
  EXPECT_THAT(Truths(less_equal(x, 0.5)), ElementsAre(1, 1, 0));
  EXPECT_THAT(Truths(greater_equal(x, 0.5)), ElementsAre(0, 1, 1));
  // 0.1 rounds to 0x1.998p-4 in f16, which is below it.
  const Tensor low = Tensor::Full({1}, 0.1, DType::kF16);
  EXPECT_THAT(Truths(less(low, 0.1)), ElementsAre(1));
  EXPECT_EQ(maximum(low, 0).dtype(), DType::kF16);
  EXPECT_EQ((1.0 / low).dtype(), DType::kF16);
  EXPECT_EQ(where(less(low, 1), low, 0).dtype(), DType::kF16);
}

TEST(ScalarOperands, OfIntegersAreWholeNumbersOfTheirType) {
  const Tensor i = Tensor::From<std::int32_t>({-3, 0, 5}, {3});
  EXPECT_THAT(maximum(i, 1).ToFloats(), ElementsAre(1, 1, 5));
  EXPECT_EQ(maximum(i, 1).dtype(), DType::kI32);
  EXPECT_THAT(Truths(greater(i, 0)), ElementsAre(0, 0, 1));
  EXPECT_THAT(where(greater(i, 0), i, -1).ToFloats(), ElementsAre(-1, -1, 5));
  EXPECT_THAT(sign(i).ToFloats(), ElementsAre(-1, 0, 1));
  EXPECT_EQ(sign(i).dtype(), DType::kI32);
  EXPECT_THAT(ErrorOf(maximum(i, 0.5)), HasSubstr("the number 0.5 beside tensor<3xi32> is none of its type"));
  EXPECT_THAT(ErrorOf(less(i, 3e9)), HasSubstr("the number 3e+09 beside tensor<3xi32>"));
  EXPECT_NE(ErrorOf(1.0 / i), "");
  EXPECT_NE(ErrorOf(maximum(Tensor(), 1)), "");
}

TEST(ScalarOperands, HaveTheDerivativesOfDifferences) {
  const Tensor x = Tensor::From({-1.5f, -0.5f, 0.5f, 1.25f}, {2, 2});
  ExpectGradient([](const Tensor& x) { return 0.25 / x; }, x, 4e-3f);
  ExpectGradient([](const Tensor& x) { return rsqrt(square(x) + 1.0); }, x);
  ExpectGradient([](const Tensor& x) { return maximum(x, 0) + minimum(1.0, x); }, x);
  ExpectGradient([](const Tensor& x) { return where(greater(x, 0), x, 0) + where(less(x, 1), 2, x); }, x);
  ExpectGradient([](const Tensor& x) { return sign(x) * x; }, x);
}

TEST(ElementTests, SignAndWhatIsFinite) {
  const Tensor x = Tensor::From({-kInfinity, -3.0f, -0.0f, 1e-40f, kInfinity, kNan}, {6});
  EXPECT_THAT(sign(x).ToFloats(), ElementsAre(-1, -1, 0, 1, 1, 0));
  EXPECT_THAT(Truths(isnan(x)), ElementsAre(0, 0, 0, 0, 0, 1));
  EXPECT_THAT(Truths(isinf(x)), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_THAT(Truths(isfinite(x)), ElementsAre(0, 1, 1, 1, 0, 0));
  const Tensor low = x.To(DType::kF16);
  EXPECT_THAT(Truths(isfinite(low)), ElementsAre(0, 1, 1, 1, 0, 0));
  EXPECT_EQ(sign(low).dtype(), DType::kF16);
}

/// Keeps what is finite of x, squashed.
class Finite : public nn::Cell {
 public:
  MPC_CELL(Finite)
  Tensor Construct(const Tensor& x) { return maximum(where(isfinite(x), 1.0 / x, 0), -1); }
};

TEST(ScalarOperands, AreConstantsOfOneElementAtEveryLevel) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    Finite cell;
    internal::StepOptions options;
    internal::UseDevice("cpu", options);
    options.compile.level = level;
    options.compile.dtype = "f16";
    options.networks = {&cell};
    const auto step = internal::CompileStep(
        &cell, [&](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{cell(inputs[0])}; },
        {TensorSpec{DType::kF32, {64, 8}}}, options);
    ASSERT_TRUE(step.ok()) << step.status();
    for (const std::string& line : testing::LinesWith((*step)->compiled().final_ir.Print(), "mpc.constant")) {
      EXPECT_THAT(line, ::testing::Not(HasSubstr("64x8"))) << level;
    }
  }
  EXPECT_THAT(Finite()(Tensor::From({2.0f, -0.25f, kInfinity, kNan}, {4})).ToFloats(), ElementsAre(0.5, -1, 0, 0));
}

}  // namespace
}  // namespace mpc
