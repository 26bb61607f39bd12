// What surrounds the optimizers of a step, against hand-computed values.
#include <cmath>
#include <limits>

#include "tests/kernels/reference_run.h"

namespace mpc::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const TensorSpec kCount{DType::kI32, {}};
const TensorSpec kFlag{DType::kBool, {}};

TEST(ScaleLoss, IsAProduct) {
  ExpectNear(RunOne("scale_loss", {}, {F32({2}, {1.5, -2}), F32({}, {1024})}, {2}), {1536, -2048});
}

double Merged(const Values& checks) {
  std::vector<reference::Tensor> operands;
  for (double check : checks) operands.push_back(I32({}, {check}));
  return RunReference("merge_checks", {}, operands, {kCount})[0].values[0];
}

TEST(MergeChecks, AGradientBeatsALossAndALossBeatsNothing) {
  EXPECT_EQ(Merged({-1, -1}), -1);
  EXPECT_EQ(Merged({-1, -2}), -2);
  EXPECT_EQ(Merged({0, -2}), 0);
  EXPECT_EQ(Merged({2, -1, 5}), 5);
}

double Flags(const char* op, const Values& flags) {
  std::vector<reference::Tensor> operands;
  for (double flag : flags) operands.push_back(Bool({}, {flag}));
  return RunReference(op, {}, operands, {kFlag})[0].values[0];
}

TEST(Flags, AllAndAny) {
  EXPECT_EQ(Flags("all_of", {1, 1}), 1);
  EXPECT_EQ(Flags("all_of", {1, 0}), 0);
  EXPECT_EQ(Flags("any_of", {0, 1}), 1);
  EXPECT_EQ(Flags("any_of", {0, 0}), 0);
}

TEST(GlobalNorm, IsOverEveryElementOfEveryGradient) {
  EXPECT_EQ(RunOne("global_norm", {}, {F32({2}, {1, -2}), F16({1, 2}, {4, 2})}, {})[0], 5);
  EXPECT_TRUE(std::isnan(RunOne("global_norm", {}, {F32({1}, {std::nan("")}), F32({1}, {1})}, {})[0]));
}

Values Clipped(double norm) {
  return RunOne("clip_by_norm", {{"max_norm", 2.0}}, {F32({2}, {3, -4}), F32({}, {norm})}, {2});
}

TEST(ClipByNorm, ShortensWhatIsTooLongAndNothingElse) {
  const double factor = 2 / (5 + static_cast<double>(1e-6f));
  ExpectNear(Clipped(5), {3 * factor, -4 * factor});
  ExpectNear(Clipped(1), {3, -4});
  ExpectNear(Clipped(0), {3, -4});
}

TEST(ClipByNorm, ANormThatIsNotFiniteGivesNan) {
  for (double norm : {kInfinity, std::nan("")}) {
    for (double value : Clipped(norm)) EXPECT_TRUE(std::isnan(value));
  }
}

Values Accumulated(double micro_step, double apply) {
  return RunOne("accumulate_gradient", {{"count", 4}},
                {F32({2}, {10, kInfinity}), F32({2}, {8, 2}), I32({}, {micro_step}), Bool({}, {apply})}, {2});
}

TEST(AccumulateGradient, AddsAShareAndStartsAfreshInTheFirstMicroStep) {
  EXPECT_EQ(Accumulated(1, 1), (Values{12, kInfinity}));
  EXPECT_EQ(Accumulated(0, 1), (Values{2, 0.5}));
  EXPECT_EQ(Accumulated(0, 0), (Values{10, kInfinity}));
}

// The sums of 1 to 9 micro-steps, by the levels that a step has: micro-step j has the gradient 4^j.
TEST(AccumulateGradient, LevelsAddInABalancedTreeAndGiveTheMean) {
  for (std::int64_t count = 1; count <= 9; ++count) {
    std::int64_t levels = 1;
    while ((std::int64_t{1} << levels) < count) ++levels;
    Values accumulators(static_cast<std::size_t>(levels), kInfinity);
    double sum = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      double carried = std::pow(4, static_cast<double>(j)) * static_cast<double>(count);
      sum += std::pow(4, static_cast<double>(j));
      for (std::int64_t level = 0; level < levels; ++level) {
        double& accumulator = accumulators[static_cast<std::size_t>(level)];
        accumulator = RunOne("accumulate_gradient", {{"count", count}, {"level", level}},
                             {F32({}, {accumulator}), F32({}, {carried}), I32({}, {static_cast<double>(j)})}, {})[0];
        carried = accumulator;
      }
    }
    EXPECT_EQ(accumulators.back(), sum) << count;
  }
}

TEST(NextMicroStep, CountsAround) {
  const auto next = [](double micro_step, double apply) {
    return RunReference("next_micro_step", {{"count", 3}}, {I32({}, {micro_step}), Bool({}, {apply})}, {kCount})[0]
        .values[0];
  };
  EXPECT_EQ(next(0, 1), 1);
  EXPECT_EQ(next(2, 1), 0);
  EXPECT_EQ(next(2, 0), 2);
}

TEST(TensorStatistics, CountsExponentsZerosAndTheLargestFiniteMagnitude) {
  const Values x = {0, -0.0, 1e-40, 1, -1.5, 2, 0x1p-24, -65504, kInfinity, std::nan("")};
  const auto results =
      RunReference("tensor_statistics", {}, {F32({10}, x)}, {{DType::kI32, {256}}, kCount, {DType::kF32, {}}});
  Values expected(256, 0);
  expected[0] = 3;    // two zeros and a subnormal
  expected[103] = 1;  // 2^-24
  expected[127] = 2;  // [1, 2)
  expected[128] = 1;
  expected[142] = 1;  // 65504 = 1.999 * 2^15
  expected[255] = 2;
  EXPECT_EQ(results[0].values, expected);
  EXPECT_EQ(results[1].values[0], 2);
  EXPECT_EQ(results[2].values[0], 65504);
}

}  // namespace
}  // namespace mpc::test
