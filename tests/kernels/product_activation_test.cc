// gelu as the activation of products: its own error, and what becomes of values that are not finite. Ones and zeros as
// weights make each product one element of its operand, exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/reference/functions.h"
#include "tests/kernels/acceptance.h"
#include "tests/kernels/activation_error_bounds.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// How far apart the elements are that are tested, among those that f32 holds in [-16, 16] above 2^-30.
constexpr std::uint32_t kStep = 2003;
constexpr std::int64_t kColumns = 16;

std::vector<double> Elements() {
  std::vector<double> elements;
  for (std::uint32_t bits = 0x30800000; bits < 0x41800000; bits += kStep) {
    const auto x = static_cast<double>(std::bit_cast<float>(bits));
    elements.insert(elements.end(), {x, -x});
  }
  return elements;
}

OpCase WithActivation(OpCase op_case, const std::string& activation) {
  op_case.attributes.Set("activation", activation);
  return op_case;
}

/// x [n] times 16 ones: each element 16 times.
OpCase Product(const std::vector<double>& x, const std::string& activation) {
  const auto rows = static_cast<std::int64_t>(x.size());
  return WithActivation(
      {"matmul/ones",
       "matmul",
       {},
       {{{DType::kF32, {rows, 1}}, op_cases::List(x)}, {{DType::kF32, {1, kColumns}}, op_cases::List({1})}},
       {{DType::kF32, {rows, kColumns}}}},
      activation);
}

/// An image of `x` and a window of 3x3 whose middle is 1, from one channel to 16.
OpCase Convolution(const std::vector<double>& x, const std::string& activation) {
  const auto pixels = static_cast<std::int64_t>(x.size());
  return WithActivation({"conv2d/ones",
                         "conv2d",
                         {{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}},
                         {{{DType::kF32, {1, 1, pixels, 1}}, op_cases::List(x)},
                          {{DType::kF32, {kColumns, 1, 3, 3}}, op_cases::List({0, 0, 0, 0, 1, 0, 0, 0, 0})}},
                         {{DType::kF32, {1, 1, pixels, kColumns}}}},
                        activation);
}

/// The first 16 channels apart: what each element of the operand becomes.
std::vector<double> Activated(const OpCase& op_case, DType dtype) {
  const std::vector<reference::Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
  const auto bits = RunKernel(CpuKernels(), op_case, dtype, inputs);
  EXPECT_TRUE(bits.ok()) << bits.status();
  if (!bits.ok()) return {};
  const reference::Tensor y = reference::FromStorage(op_cases::ResultSpecs(op_case, dtype)[0], (*bits)[0].data());
  std::vector<double> results;
  for (std::size_t i = 0; i < y.values.size(); i += kColumns) {
    results.push_back(y.values[i]);
    for (std::size_t channel = 1; channel < kColumns; ++channel) {
      const double other = y.values[i + channel];
      EXPECT_TRUE(other == y.values[i] || (std::isnan(other) && std::isnan(y.values[i]))) << other;
    }
  }
  return results;
}

class ProductActivation : public testing::TestWithParam<const char*> {
 protected:
  static bool IsTanhForm() { return std::string(GetParam()) == "gelu_tanh"; }
  static double Exact(double x) { return IsTanhForm() ? reference::GeluTanh(x) : reference::Gelu(x); }
};

TEST_P(ProductActivation, ErrsAsAKernelOfItsOwnOrBySixUnitsOfTheProduct) {
  const std::vector<double> x = Elements();
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    for (const OpCase& op_case : {Product(x, GetParam()), Convolution(x, GetParam())}) {
      SCOPED_TRACE(op_case.op);
      const std::vector<double> stored = op_cases::MakeInputs(op_case, dtype)[0].values;
      const std::vector<double> y = Activated(op_case, dtype);
      ASSERT_EQ(y.size(), x.size());
      int reported = 0;
      for (std::size_t i = 0; i < y.size() && reported < 3; ++i) {
        const double exact = Exact(stored[i]);
        if (Accepts(dtype, y[i], exact, GeluOfProductError(IsTanhForm(), stored[i], exact))) continue;
        ADD_FAILURE() << GetParam() << " of " << stored[i] << " is " << y[i] << ", exactly " << exact;
        ++reported;
      }
    }
  }
}

// An overflow stays visible: -infinity times 0, which gelu is there, is NaN.
TEST_P(ProductActivation, KeepsNanAndInfinities) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const double most = dtype == DType::kF16 ? 65504 : 0x1.fep127;
    const std::vector<double> y =
        Activated(Product({kNan, -kNan, kInfinity, -kInfinity, most, -most, -40, 0}, GetParam()), dtype);
    ASSERT_EQ(y.size(), 8u);
    for (const std::size_t i : {0, 1, 3}) EXPECT_TRUE(std::isnan(y[i])) << i << ": " << y[i];
    EXPECT_EQ(y[2], kInfinity);
    EXPECT_EQ(y[4], most);
    for (const std::size_t i : {5, 6, 7}) EXPECT_EQ(y[i], 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, ProductActivation, testing::Values("gelu", "gelu_tanh"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mpc::test
