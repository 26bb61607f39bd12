// Operations with several CPU kernels: each one that tuning may choose is right, has a name, and is made again by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
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

/// What Winograd's algorithm for 4 results of 3 taps makes of the rounding errors of its products, in two dimensions:
/// y = A^T [(G g) * (B^T d)] in one, with the points p_i of oneDNN's transforms (0, +-5/8, +-3/2, infinity), row i of
/// A^T the powers of p_i, of G those over N_i = prod (p_i - p_j), column i of B the coefficients of prod (p - p_j).
/// Scaling a row of G against a column of B changes nothing. The gradient of the weight exchanges A and G.
///
/// Product i of independent operands of deviation 1 deviates by |G_i| |B_i|, in the Euclidean norm. A result takes them
/// times the magnitudes of its row of A^T. `mean` is the root mean square over results, `most` the largest.
struct WinogradDeviation {
  double mean, most;
};

using Rows = std::array<std::vector<double>, 6>;

double NormOf(const std::vector<double>& row) {
  return std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
}

/// The coefficients of prod (p - p_j) over all points but `without`.
std::vector<double> PolynomialWithout(const std::array<double, 5>& points, std::size_t without) {
  std::vector<double> product = {1};
  for (std::size_t j = 0; j < points.size(); ++j) {
    if (j == without) continue;
    std::vector<double> next(product.size() + 1, 0);
    for (std::size_t k = 0; k < product.size(); ++k) {
      next[k + 1] += product[k];
      next[k] -= points[j] * product[k];
    }
    product = next;
  }
  return product;
}

WinogradDeviation AmplificationOf(bool of_weight) {
  constexpr std::array<double, 5> kPoints = {0, 0.625, -0.625, 1.5, -1.5};
  Rows a, g, b;
  for (std::size_t i = 0; i < 5; ++i) {
    double norm = 1;
    for (std::size_t j = 0; j < 5; ++j) norm *= j == i ? 1 : kPoints[i] - kPoints[j];
    for (int power = 0; power < 4; ++power) {
      a[i].push_back(std::pow(kPoints[i], power));
      if (power < 3) g[i].push_back(std::pow(kPoints[i], power) / norm);
    }
    b[i] = PolynomialWithout(kPoints, i);
  }
  a[5] = {0, 0, 0, 1};
  g[5] = {0, 0, 1};
  b[5] = PolynomialWithout(kPoints, kPoints.size());
  const Rows &results = of_weight ? g : a, &operand = of_weight ? a : g;
  double squares = 0, most = 0;
  const std::size_t count = results[0].size();
  for (std::size_t k = 0; k < count; ++k) {
    double result = 0;
    for (std::size_t i = 0; i < 6; ++i) result += std::abs(results[i][k]) * NormOf(operand[i]) * NormOf(b[i]);
    squares += result * result / static_cast<double>(count);
    most = std::max(most, result);
  }
  return {squares, most * most};
}

/// Root mean squares of the errors of all results, and of those that err most. Roundings are taken as independent, each
/// of the unit roundoff of what it rounds: partial sums of independent terms deviate no more than their sum. On the way
/// from an operand to a result there are three transforms of two passes, each of at most 6 products and 5 sums, the
/// product, and the sum over channels (of the gradient of the weight: over tiles). Operands in [-1, 1] deviate by
/// 1 / sqrt(3). The errors that independent roundings add up to grow with the root of their number (Higham and Mary, "A
/// New Approach to Probabilistic Rounding Error Analysis", 2019).
WinogradDeviation WinogradErrors(const std::string& op) {
  const double summed = op == "conv2d" ? 40 : op == "conv2d_grad_input" ? 48 : 2 * 4 * 3;
  const double roundings = summed + 3 * 2 * 11 + 1;
  const double of_products = 0x1p-24 * std::sqrt(roundings) * std::sqrt(summed) / 3;
  const WinogradDeviation amplification = AmplificationOf(op == "conv2d_grad_weight");
  return {of_products * amplification.mean, of_products * amplification.most};
}

std::vector<Tensor> ReferenceOf(const OpCase& op_case, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results = {
      {op_case.results[0], std::vector<double>(static_cast<std::size_t>(op_case.results[0].num_elements()))}};
  reference::Find(op_case.op)(op_case.attributes, inputs, absl::MakeSpan(results));
  return results;
}

/// The root mean square of all distances, and the largest one.
WinogradDeviation Distances(const Tensor& actual, const Tensor& exact) {
  WinogradDeviation distance{0, 0};
  for (std::size_t i = 0; i < exact.values.size(); ++i) {
    const double error = actual.values[i] - exact.values[i];
    distance.mean += error * error;
    distance.most = std::max(distance.most, std::abs(error));
  }
  distance.mean = std::sqrt(distance.mean / static_cast<double>(exact.values.size()));
  return distance;
}

double RootMeanSquare(const Tensor& tensor) {
  return NormOf(tensor.values) / std::sqrt(static_cast<double>(tensor.values.size()));
}

/// Deviations that none of ten thousand normal errors reaches.
constexpr double kFarthest = 6;

class Winograd : public testing::TestWithParam<std::string> {};

TEST_P(Winograd, IsTakenWhereItIsAllowedAndWithinItsBound) {
  const OpCase op_case = Convolution(GetParam());
  const KernelSpec spec = SpecOf(op_case, DType::kF32);
  EXPECT_THAT(cpu::CandidateChoices(spec), Not(Contains(kWinograd)));
  EXPECT_NE((*cpu::CreateKernel(spec))->choice(), kWinograd);
  if (!testing::Value(cpu::CandidateChoices(spec, {.allow_winograd = true}), Contains(kWinograd))) {
    GTEST_SKIP() << "oneDNN 2 alone has it, with AVX-512";
  }
  EXPECT_EQ((*cpu::CreateKernel(spec, {.allow_winograd = true}))->choice(), kWinograd);

  const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, DType::kF32);
  const Tensor exact = ReferenceOf(op_case, inputs)[0];
  const auto bits = RunKernel(*CpuKernelsChosen(kWinograd), op_case, DType::kF32, inputs);
  ASSERT_TRUE(bits.ok()) << bits.status();
  const WinogradDeviation distance = Distances(reference::FromStorage(exact.spec, (*bits)[0].data()), exact);
  const WinogradDeviation error = WinogradErrors(op_case.op);
  const auto defined = RunKernel(*CpuKernelsChosen(cpu::CandidateChoices(spec)[0]), op_case, DType::kF32, inputs);
  ASSERT_TRUE(defined.ok()) << defined.status();
  const WinogradDeviation by_definition = Distances(reference::FromStorage(exact.spec, (*defined)[0].data()), exact);
  std::cout << absl::StreamFormat("root mean square of errors over that of results: winograd %.1e, definition %.1e\n",
                                  distance.mean / RootMeanSquare(exact), by_definition.mean / RootMeanSquare(exact));
  EXPECT_LE(distance.mean, error.mean);
  EXPECT_LE(distance.most, kFarthest * error.most);
  EXPECT_EQ(*RunKernel(*CpuKernelsChosen(kWinograd), op_case, DType::kF32, inputs), *bits) << "equal runs, equal bits";
}

// Operands rounded to a type of 16 bits make errors that the bound refuses, however exact everything else is.
TEST_P(Winograd, NoLowerTypePassesAsF32) {
  const OpCase op_case = Convolution(GetParam());
  const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, DType::kF32);
  const Tensor exact = ReferenceOf(op_case, inputs)[0];
  for (DType low : {DType::kF16, DType::kBF16}) {
    std::vector<Tensor> rounded = inputs;
    for (Tensor& input : rounded) {
      for (double& value : input.values) value = reference::RoundTo(low, value);
    }
    const WinogradDeviation distance = Distances(ReferenceOf(op_case, rounded)[0], exact);
    const WinogradDeviation error = WinogradErrors(op_case.op);
    std::cout << absl::StreamFormat("root mean square of errors over that of results: operands in %s %.1e\n",
                                    DTypeName(low), distance.mean / RootMeanSquare(exact));
    EXPECT_GT(distance.mean, 4 * error.mean) << DTypeName(low);
    EXPECT_GT(distance.most, kFarthest * error.most) << DTypeName(low);
  }
}

TEST_P(Winograd, LeavesNoInfinityUnseen) {
  const OpCase op_case = Convolution(GetParam());
  if (!testing::Value(cpu::CandidateChoices(SpecOf(op_case, DType::kF32), {.allow_winograd = true}),
                      Contains(kWinograd))) {
    GTEST_SKIP() << "oneDNN 2 alone has it, with AVX-512";
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
