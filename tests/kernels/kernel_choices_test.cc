// Operations with several CPU kernels: each one that tuning may choose is right, has a name, and is made again by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using reference::Tensor;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class KernelChoices : public testing::TestWithParam<std::string> {};

TEST_P(KernelChoices, MatchTheReferenceWithinDerivedBounds) {
  std::size_t most = 0;
  ForEachCase(GetParam(), [&](const OpCase& op_case, DType dtype) {
    const std::vector<std::string> choices = cpu::CandidateChoices(SpecOf(op_case, dtype));
    most = std::max(most, choices.size());
    for (const std::string& choice : choices) {
      SCOPED_TRACE(choice);
      ExpectMatchesReference(*CpuKernelsChosen(choice), op_case, dtype);
    }
  });
  EXPECT_GT(most, 1u) << "nothing is ever chosen";
}

TEST_P(KernelChoices, BeginWithThatOfTheRules) {
  ForEachCase(GetParam(), [&](const OpCase& op_case, DType dtype) {
    const KernelSpec spec = SpecOf(op_case, dtype);
    const auto kernel = cpu::CreateKernel(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const std::vector<std::string> choices = cpu::CandidateChoices(spec);
    ASSERT_FALSE(choices.empty());
    EXPECT_EQ((*kernel)->choice(), choices[0]);
    EXPECT_EQ(std::set<std::string>(choices.begin(), choices.end()).size(), choices.size()) << "names tell them apart";
  });
}

TEST_P(KernelChoices, ThatAreNotOfferedAreRefusedByName) {
  ForEachCase(GetParam(), [&](const OpCase& op_case, DType dtype) {
    const absl::Status status = cpu::CreateKernel(SpecOf(op_case, dtype), {.choice = "f32 abacus"}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"f32 abacus\""));
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, KernelChoices,
                         testing::Values("conv2d", "conv2d_grad_input", "conv2d_grad_weight", "conv_transpose2d",
                                         "matmul"),
                         [](const auto& info) { return info.param; });

TEST(KernelChoices, AreNoneWhereThereIsOneKernel) {
  const KernelSpec relu{"relu", {{DType::kF32, {8}}}, {{DType::kF32, {8}}}, {}, {}};
  EXPECT_TRUE(cpu::CandidateChoices(relu).empty());
  EXPECT_EQ((*cpu::CreateKernel(relu))->choice(), "");
  EXPECT_EQ(cpu::CreateKernel(relu, {.choice = "own"}).status().code(), absl::StatusCode::kFailedPrecondition);
}

constexpr char kWinograd[] = "f32 winograd";

/// 3x3 windows over [2, 14, 11, 40] to 48 channels.
OpCase Convolution(const std::string& op) {
  const TensorSpec x{DType::kF32, {2, 14, 11, 40}};
  const TensorSpec weight{DType::kF32, {48, 40, 3, 3}};
  const TensorSpec y{DType::kF32, {2, 14, 11, 48}};
  OpCase op_case;
  op_case.name = op + "/winograd";
  op_case.op = op;
  op_case.attributes = {{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}};
  if (op == "conv2d") {
    op_case.operands = {{x, op_cases::Uniform(-1, 1)}, {weight, op_cases::Uniform(-1, 1)}};
    op_case.results = {y};
  } else if (op == "conv2d_grad_input") {
    op_case.operands = {{y, op_cases::Uniform(-1, 1)}, {weight, op_cases::Uniform(-1, 1)}};
    op_case.results = {x};
    op_case.attributes.Set("input_shape", std::vector<std::int64_t>(x.shape));
  } else {
    op_case.operands = {{x, op_cases::Uniform(-1, 1)}, {y, op_cases::Uniform(-1, 1)}};
    op_case.results = {weight};
    op_case.attributes.Set("weight_shape", std::vector<std::int64_t>(weight.shape));
  }
  return op_case;
}

/// How far Winograd's algorithm for 4 results of 3 taps can be from exact, for operands of magnitude 1, relative to the
/// rounding errors of its sums: y = A^T [(G g) * (B^T d)] in one dimension, with the points p_i of oneDNN's transforms
/// (0, +-5/8, +-3/2, infinity), row i of A^T the powers of p_i, of G those over N_i = prod (p_i - p_j), column i of B
/// the coefficients of prod (p - p_j). Scaling a row of G against a column of B changes nothing. Two dimensions square
/// it. `of_weight`: the gradient of the weight exchanges A and G.
double Amplification(bool of_weight) {
  constexpr std::array<double, 5> kPoints = {0, 0.625, -0.625, 1.5, -1.5};
  std::array<double, 6> a_sum{}, g_sum{}, b_sum{};  // for each point: sums of magnitudes
  std::array<double, 6> a_most{}, g_most{};         // and the largest
  const auto coefficients = [&](int without) {
    std::vector<double> product = {1};
    for (int j = 0; j < 5; ++j) {
      if (j == without) continue;
      std::vector<double> next(product.size() + 1, 0);
      for (std::size_t k = 0; k < product.size(); ++k) {
        next[k + 1] += product[k];
        next[k] -= kPoints[static_cast<std::size_t>(j)] * product[k];
      }
      product = next;
    }
    double sum = 0;
    for (double value : product) sum += std::abs(value);
    return sum;
  };
  for (int i = 0; i < 6; ++i) {
    const auto at = static_cast<std::size_t>(i);
    b_sum[at] = coefficients(i);  // all points for infinity
    if (i == 5) {
      a_sum[at] = g_sum[at] = a_most[at] = g_most[at] = 1;
      continue;
    }
    double norm = 1;
    for (int j = 0; j < 5; ++j) norm *= j == i ? 1 : kPoints[at] - kPoints[static_cast<std::size_t>(j)];
    for (int power = 0; power < 4; ++power) {
      const double value = std::pow(std::abs(kPoints[at]), power);
      a_sum[at] += value;
      a_most[at] = std::max(a_most[at], value);
      if (power == 3) continue;
      g_sum[at] += value / std::abs(norm);
      g_most[at] = std::max(g_most[at], value / std::abs(norm));
    }
  }
  double sum = 0;
  for (std::size_t i = 0; i < 6; ++i)
    sum += of_weight ? g_most[i] * a_sum[i] * b_sum[i] : a_most[i] * g_sum[i] * b_sum[i];
  return sum * sum;
}

/// Roundings on the way from an operand to a result: two passes of each transform with at most 8 operations, products,
/// and the sum.
double WinogradBound(const std::string& op) {
  const double summed = op == "conv2d" ? 40 : op == "conv2d_grad_input" ? 48 : 2 * 4 * 3;  // channels, or tiles
  const double roundings = summed + 3 * 2 * 8 + 1;
  const double gamma = roundings * 0x1p-24 / (1 - roundings * 0x1p-24);
  return gamma * Amplification(op == "conv2d_grad_weight") * summed;
}

class Winograd : public testing::TestWithParam<std::string> {};

TEST_P(Winograd, IsTakenWhereItIsAllowedAndWithinItsBound) {
  const OpCase op_case = Convolution(GetParam());
  const KernelSpec spec = SpecOf(op_case, DType::kF32);
  EXPECT_THAT(cpu::CandidateChoices(spec), Not(Contains(kWinograd)));
  EXPECT_NE((*cpu::CreateKernel(spec))->choice(), kWinograd);
  if (!testing::Value(cpu::CandidateChoices(spec, {.allow_winograd = true}), Contains(kWinograd))) {
    GTEST_SKIP() << "oneDNN has it for AVX-512 alone";
  }
  EXPECT_EQ((*cpu::CreateKernel(spec, {.allow_winograd = true}))->choice(), kWinograd);

  const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, DType::kF32);
  std::vector<Tensor> exact = {
      {op_case.results[0], std::vector<double>(static_cast<std::size_t>(op_case.results[0].num_elements()))}};
  reference::Find(op_case.op)(op_case.attributes, inputs, absl::MakeSpan(exact));
  const auto bits = RunKernel(*CpuKernelsChosen(kWinograd), op_case, DType::kF32, inputs);
  ASSERT_TRUE(bits.ok()) << bits.status();
  const Tensor actual = reference::FromStorage(exact[0].spec, (*bits)[0].data());
  double farthest = 0;
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    farthest = std::max(farthest, std::abs(actual.values[i] - exact[0].values[i]));
  }
  EXPECT_LE(farthest, WinogradBound(op_case.op));
  EXPECT_EQ(*RunKernel(*CpuKernelsChosen(kWinograd), op_case, DType::kF32, inputs), *bits) << "equal runs, equal bits";
}

TEST_P(Winograd, LeavesNoInfinityUnseen) {
  const OpCase op_case = Convolution(GetParam());
  if (!testing::Value(cpu::CandidateChoices(SpecOf(op_case, DType::kF32), {.allow_winograd = true}),
                      Contains(kWinograd))) {
    GTEST_SKIP() << "oneDNN has it for AVX-512 alone";
  }
  for (const double bad : {double{INFINITY}, -double{INFINITY}, double{NAN}}) {
    std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, DType::kF32);
    inputs[0].values[7] = bad;
    const auto bits = RunKernel(*CpuKernelsChosen(kWinograd), op_case, DType::kF32, inputs);
    ASSERT_TRUE(bits.ok()) << bits.status();
    const Tensor actual = reference::FromStorage(op_case.results[0], (*bits)[0].data());
    EXPECT_TRUE(std::any_of(actual.values.begin(), actual.values.end(), [](double v) { return !std::isfinite(v); }));
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Winograd, testing::Values("conv2d", "conv2d_grad_input", "conv2d_grad_weight"),
                         [](const auto& info) { return info.param; });

TEST(Winograd, IsNotForOtherWindows) {
  OpCase op_case = Convolution("conv2d");
  op_case.attributes.Set("strides", std::vector<std::int64_t>{2, 2});
  op_case.results[0].shape = {2, 7, 6, 48};
  EXPECT_THAT(cpu::CandidateChoices(SpecOf(op_case, DType::kF32), {.allow_winograd = true}), Not(Contains(kWinograd)));
}

}  // namespace
}  // namespace mpc::test
