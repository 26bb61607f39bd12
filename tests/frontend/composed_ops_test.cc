// Functions and layers made of operations that exist.
#include "frontend/graph/composed_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "frontend/graph/compiled_step.h"
#include "frontend/nn/composed_layers.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::Count;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Pointwise;
using testing::Values;

const Tensor kPoints = Tensor::From({-200.0f, -1.0f, 0.0f, 1.0f, 200.0f}, {5});

/// The derivative of `function` at w + x, by a compiled step.
class GradientOf : public nn::TrainingStep {
 public:
  MPC_CELL(GradientOf, w)
  explicit GradientOf(std::function<Tensor(const Tensor&)> function, Shape shape = {5},
                      const Initializer& first = Ones())
      : w(std::move(shape), first), function_(std::move(function)) {}
  Tensor Construct(Tensor x) { return ops::Backward(reduce_sum(function_(w + x)), {w})[0]; }
  Parameter w;

 private:
  std::function<Tensor(const Tensor&)> function_;
};

std::vector<float> Gradient(std::function<Tensor(const Tensor&)> function) {
  GradientOf step(std::move(function));
  return step(kPoints - 1.0).ToFloats();
}

TEST(ComposedOps, EluSoftplusAndMishDoNotOverflow) {
  const float e = std::exp(-1.0f);
  EXPECT_THAT(nn::ELU()(kPoints).ToFloats(), Pointwise(FloatNear(1e-6f), {-1.0f, e - 1, 0.0f, 1.0f, 200.0f}));
  const float low = std::log1p(e);
  const float two = std::log(2.0f);
  EXPECT_THAT(nn::Softplus()(kPoints).ToFloats(), Pointwise(FloatNear(1e-6f), {0.0f, low, two, 1 + low, 200.0f}));
  EXPECT_THAT(nn::Mish()(kPoints).ToFloats(),
              Pointwise(FloatNear(1e-6f), {0.0f, -std::tanh(low), 0.0f, std::tanh(1 + low), 200.0f}));
}

TEST(ComposedOps, EluKeepsTheDigitsOfSmallNumbers) {
  std::vector<float> points;
  for (float x = -16; x < -1e-30f; x *= 0.93f) points.push_back(x);
  const Tensor x = Tensor::From(points, {static_cast<std::int64_t>(points.size())});
  const std::vector<float> y = elu(x).ToFloats();
  // tanh errs by 1.38 ulps and exp by 0.89 (kernels/scalar/vector_math.h). Near 0 a sum and a product add 1.1 to the
  // former. Further out exp is 0.61 at most, and its error is 1.2 ulps of a result of 0.39 or more.
  constexpr double kBound = 3 * 0x1p-23;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double exact = std::expm1(static_cast<double>(points[i]));
    EXPECT_LE(std::abs(y[i] - exact), kBound * std::abs(exact)) << points[i];
  }
  const auto function = [](const Tensor& x) { return elu(x); };
  const std::vector<float> slopes = GradientOf(function, x.shape(), Zeros())(x).ToFloats();
  // Near 0 the derivative is a sum of products, elsewhere the exponential.
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(slopes[i], std::exp(points[i]), 8 * 0x1p-23 * std::exp(points[i])) << points[i];
  }
  // A tensor of f16 gives the f16 number that is next to the exact one, or the one beside it.
  const Tensor half = Tensor::From({-0.001f, -0.01f, -0.1f, -0.4f}, {4}).To(DType::kF16);
  const std::vector<float> given = half.ToFloats(), low = elu(half).To(DType::kF32).ToFloats();
  EXPECT_EQ(elu(half).dtype(), DType::kF16);
  for (std::size_t i = 0; i < low.size(); ++i) {
    const double exact = std::expm1(static_cast<double>(given[i]));
    EXPECT_LE(std::abs(low[i] - exact), 2 * 0x1p-11 * std::abs(exact)) << given[i];
  }
}

TEST(ComposedOps, DerivativesAreFiniteAndRightAtZero) {
  const float e = std::exp(-1.0f);
  EXPECT_THAT(Gradient([](const Tensor& x) { return elu(x, 2); }),
              Pointwise(FloatNear(1e-6f), {0.0f, 2 * e, 2.0f, 1.0f, 1.0f}));
  EXPECT_THAT(Gradient([](const Tensor& x) { return softplus(x); }),
              Pointwise(FloatNear(1e-6f), {0.0f, e / (1 + e), 0.5f, 1 / (1 + e), 1.0f}));
  EXPECT_NEAR(Gradient([](const Tensor& x) { return mish(x); })[2], 0.6f, 1e-6f) << "tanh(log(2))";
}

// The values are PyTorch's.
TEST(ComposedOps, EluAndSoftplusOfInfinityAndNan) {
  const Tensor x = Tensor::From({testing::kNan, testing::kInfinity, -testing::kInfinity, 3e38f, -3e38f}, {5});
  const auto gradient = [&](std::function<Tensor(const Tensor&)> function) {
    return GradientOf(std::move(function))(x).ToFloats();
  };
  EXPECT_THAT(elu(x, 2).ToFloats(), ElementsAre(IsNan(), testing::kInfinity, -2, 3e38f, -2));
  EXPECT_THAT(gradient([](const Tensor& x) { return elu(x, 2); }), ElementsAre(IsNan(), 1, 0, 1, 0));
  EXPECT_THAT(softplus(x).ToFloats(), ElementsAre(IsNan(), testing::kInfinity, 0, 3e38f, 0));
  EXPECT_THAT(gradient([](const Tensor& x) { return softplus(x); }), ElementsAre(IsNan(), 1, 0, 1, 0));
}

TEST(ComposedOps, RmsNormDividesByTheRootOfTheMeanSquare) {
  EXPECT_THAT(nn::RMSNorm(2)(Tensor::From({1.0f, 7.0f}, {1, 2})).ToFloats(), Pointwise(FloatNear(1e-5f), {0.2f, 1.4f}));
  EXPECT_THAT(ErrorOf(nn::RMSNorm(3)(Values({1, 2}))), HasSubstr("rms_norm takes gamma of the last extent of x"));
}

TEST(ComposedOps, StackAndArgsort) {
  const Tensor a = Tensor::From({3.0f, 1.0f}, {2});
  const Tensor b = Tensor::From({5.0f, 6.0f}, {2});
  EXPECT_THAT(stack({a, b}).ToFloats(), ElementsAre(3, 1, 5, 6));
  EXPECT_THAT(stack({a, b}, -1).ToFloats(), ElementsAre(3, 5, 1, 6));
  EXPECT_EQ(stack({a, b, a}, 1).shape(), Shape({2, 3}));
  EXPECT_THAT(ErrorOf(stack({})), HasSubstr("at least one tensor"));
  EXPECT_THAT(ErrorOf(stack({a, Values({3})})), HasSubstr("tensors of one shape"));
  EXPECT_THAT(ErrorOf(stack({a}, 2)), HasSubstr("stack axis 2 is outside [-2, 1]"));
  EXPECT_THAT(argsort(a).ToFloats(), ElementsAre(1, 0));
  EXPECT_THAT(argsort(a, -1, /*descending=*/true).ToFloats(), ElementsAre(0, 1));
}

TEST(ComposedOps, TileRepeatsAxes) {
  const Tensor x = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  EXPECT_THAT(tile(x, {1, 2}).ToFloats(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(tile(x, {2, 1}).ToFloats(), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
  EXPECT_THAT(tile(x, {2}).ToFloats(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4)) << "counts are aligned at the right";
  EXPECT_EQ(tile(x, {3, 1, 2}).shape(), Shape({3, 2, 4}));
  EXPECT_EQ(tile(x, {}).ToFloats(), x.ToFloats());
  EXPECT_THAT(tile(Tensor::Scalar(7.0f), {3}).ToFloats(), ElementsAre(7, 7, 7));
  EXPECT_THAT(ErrorOf(tile(x, {0, 2})), HasSubstr("tile takes counts of 1 or more that give at most 2^47 elements"));
  EXPECT_THAT(ErrorOf(tile(x, {1, std::int64_t{1} << 60})), HasSubstr("for axis 1 of 2x2"));
}

TEST(ComposedOps, TriangularPartsBeginAtADiagonal) {
  const Tensor x = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  EXPECT_THAT(tril(x).ToFloats(), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(tril(x, 1).ToFloats(), ElementsAre(1, 2, 0, 4, 5, 6));
  EXPECT_THAT(triu(x).ToFloats(), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(triu(x, -1).ToFloats(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(triu(x, 2).ToFloats(), ElementsAre(0, 0, 3, 0, 0, 0));
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(tril(x, kFar).ToFloats(), x.ToFloats());
  EXPECT_EQ(triu(x, -kFar).ToFloats(), x.ToFloats());
  EXPECT_THAT(tril(tile(x, {2, 1, 1})).ToFloats(), ElementsAre(1, 0, 0, 4, 5, 0, 1, 0, 0, 4, 5, 0));
  const Tensor bad = Tensor::From({1.0f, testing::kNan, 3.0f, 4.0f}, {2, 2});
  EXPECT_THAT(tril(bad).ToFloats(), ElementsAre(1, 0, 3, 4)) << "what is left out is zero, whatever it was";
  EXPECT_THAT(ErrorOf(tril(Values({3}))), HasSubstr("tril takes a tensor of rank 2 or more, got tensor<3xf32>"));
}

TEST(ComposedOps, TileAndTriangularPartsTakeIntegersAndTruthValues) {
  const Tensor numbers = Tensor::From({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(tile(numbers, {1, 2}).dtype(), DType::kI32);
  EXPECT_THAT(tile(numbers, {1, 2}).ToFloats(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_EQ(triu(numbers).dtype(), DType::kI32);
  EXPECT_THAT(triu(numbers).ToFloats(), ElementsAre(1, 2, 0, 4));
  const Tensor truths = Tensor::From({true, false, true, true}, {2, 2});
  EXPECT_EQ(tile(truths, {2, 1}).dtype(), DType::kBool);
  EXPECT_THAT(tile(truths, {2, 1}).ToFloats(), ElementsAre(1, 0, 1, 1, 1, 0, 1, 1));
  EXPECT_THAT(tril(truths).ToFloats(), ElementsAre(1, 0, 1, 1));
}

TEST(ComposedOps, GradientsAreThoseOfDifferences) {
  const Tensor x = Values({2, 3}, 1);
  ExpectGradient([](const Tensor& x) { return mish(x); }, x);
  ExpectGradient([](const Tensor& x) { return rms_norm(x, Values({3}, 2)); }, x);
  ExpectGradient([&x](const Tensor& gamma) { return rms_norm(x, gamma); }, Values({3}, 2));
  ExpectGradient([&x](const Tensor& y) { return stack({y, x, y * y}, 1); }, x);
  ExpectGradient([](const Tensor& x) { return tile(x, {2, 1, 3}); }, x);
  ExpectGradient([](const Tensor& x) { return tril(x, -1) + triu(x * x, 1); }, x);
}

// argsort has indices alone. The values of sort, which it is made of, have the derivatives of what they came from.
TEST(ComposedOps, SortedValuesCarryTheirDerivatives) {
  const Tensor x = testing::DistinctValues({2, 3});
  ExpectGradient([](const Tensor& x) { return square(sort(x, -1, /*descending=*/true).first); }, x);
  ExpectGradient([](const Tensor& x) { return square(topk(x, 2).first); }, x);
}

TEST(ComposedOps, RmsNormOfLowTensorsComputesInF32) {
  const Tensor gamma = ops::Fill(DType::kF16, {2}, 1);
  const auto norm = [&](float a, float b) {
    return rms_norm(cast(Tensor::From({a, b}, {1, 2}), DType::kF16), gamma, 1e-8);
  };
  EXPECT_EQ(norm(1, 7).dtype(), DType::kF16);
  EXPECT_THAT(cast(norm(1000, 7000), DType::kF32).ToFloats(), Pointwise(FloatNear(1e-3f), {0.2f, 1.4f}));
  EXPECT_THAT(cast(norm(0, 0), DType::kF32).ToFloats(), Pointwise(FloatNear(0), {0.0f, 0.0f}));
}

/// A norm with ToFloat, or a function in a Cell with ToFloat, and the gradients of its result's sum of squares.
class LowNorm : public nn::TrainingStep {
 public:
  MPC_CELL(LowNorm, w, norm)
  LowNorm() { norm.ToFloat(DType::kF16); }
  std::tuple<Tensor, Tensor, Tensor> Construct(Tensor x) {
    const Tensor y = norm(w + x);
    const std::vector<Tensor> gradients = ops::Backward(reduce_sum(y * Values({1, 2}, 3)), {w, norm.gamma});
    return {y, gradients[0], gradients[1]};
  }
  Parameter w{{1, 2}, Zeros()};
  nn::RMSNorm norm{2};
};

TEST(ComposedOps, RmsNormUnderToFloatComputesInF32) {
  LowNorm step;
  const auto [y, dx, dgamma] = step(Tensor::From({1000.0f, 7000.0f}, {1, 2}));
  MPC_ASSERT_OK(y.status());
  EXPECT_THAT(y.ToFloats(), Pointwise(FloatNear(1e-6f), {0.2f, 1.4f}));
  // Of y = x / r, the derivative by x is (dy - y mean(dy y)) / r, and r is 5000.
  const std::vector<float> dy = Values({1, 2}, 3).ToFloats();
  const float mean = (dy[0] * 0.2f + dy[1] * 1.4f) / 2;
  EXPECT_THAT(dx.ToFloats(), Pointwise(FloatNear(1e-9f), {(dy[0] - 0.2f * mean) / 5000, (dy[1] - 1.4f * mean) / 5000}));
  EXPECT_THAT(dgamma.ToFloats(), Pointwise(FloatNear(1e-6f), {dy[0] * 0.2f, dy[1] * 1.4f}));
}

/// The compiled function of one tensor, 4 x 8, and the regions of its IR.
struct Compiled {
  explicit Compiled(const std::function<Tensor(const Tensor&)>& function) {
    internal::StepOptions options;
    internal::UseDevice("cpu", options);
    options.compile.fusion = true;
    const auto step = internal::CompileStep(
        nullptr, [&](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{function(inputs[0])}; },
        {TensorSpec{DType::kF32, {4, 8}}}, options);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) return;
    regions = Count((*step)->compiled().final_ir.Print(), "= mpc.fusion(");
    instructions = (*step)->program().step().instructions.size();
  }
  int regions = 0;
  std::size_t instructions = 0;
};

TEST(ComposedOps, ElementWiseOnesAreOneRegion) {
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> functions = {
      {"elu", [](const Tensor& x) { return elu(x); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"mish", [](const Tensor& x) { return mish(x); }},
      {"hard_swish", [](const Tensor& x) { return hard_swish(x); }},
      {"hard_swish of mish", [](const Tensor& x) { return hard_swish(mish(x)); }},
      {"rms_norm", [](const Tensor& x) { return rms_norm(x, ops::Fill(DType::kF32, {8}, 2)); }},
      {"a chain", [](const Tensor& x) { return elu(softplus(x)) * mish(x); }},
  };
  for (const auto& [name, function] : functions) {
    const Compiled compiled(function);
    EXPECT_EQ(compiled.regions, 1) << name;
    EXPECT_EQ(compiled.instructions, 1u) << name << " is one kernel";
  }
}

}  // namespace
}  // namespace mpc
