// The gradient of a convolution's weight in panels of f32, which processors have below AVX-512.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/row_products.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/drawn_convolutions.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using reference::Tensor;

bool IsOffered(const OpCase& op_case, DType dtype) {
  return std::ranges::count(cpu::CandidateChoices(SpecOf(op_case, dtype)), cpu::kInPanels) == 1;
}

OpCase GradWeight(const DrawnConvolution& shape) { return CaseOf("conv2d_grad_weight", shape, false, "none"); }

/// Channels-last images of `extent` x `extent` pixels, with windows of `kernel` x `kernel` that keep their extent.
DrawnConvolution Images(std::int64_t batch, std::int64_t extent, std::int64_t channels, std::int64_t out_channels,
                        std::int64_t kernel = 3, std::int64_t stride = 1) {
  DrawnConvolution shape{};
  shape.batch = batch;
  shape.channels = channels;
  shape.out_channels = out_channels;
  shape.height = shape.width = extent;
  shape.kernel_height = shape.kernel_width = kernel;
  shape.out_height = shape.out_width = (extent - 1) / stride + 1;
  shape.attributes = {
      {"data_format", std::string("NHWC")}, {"pad_mode", std::string("same")}, {"strides", Ints{stride, stride}}};
  return shape;
}

class PanelConvolutions : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::MultipliesFloats()) GTEST_SKIP() << "needs FMA, and no AVX-512 (ONEDNN_MAX_CPU_ISA=AVX2)";
  }
  void TearDown() override { cpu::SetNumThreads(threads_); }

  /// A gradient of channels-last images without groups: any windows, strides, dilations and padding.
  static OpCase Draw(Draws& draws) {
    constexpr std::int64_t kMostWork = 1'000'000;
    for (;;) {
      DrawnConvolution shape = DrawConvolution(draws, 0, kMostWork);
      shape.attributes.Set("data_format", std::string("NHWC"));
      shape.attributes.Set("groups", std::int64_t{1});
      if (shape.multiply_adds() <= kMostWork) return GradWeight(shape);
    }
  }

  /// With one thread and several, which have the same bits.
  static void ExpectPanelsMatch(const OpCase& op_case, DType dtype) {
    SCOPED_TRACE(absl::StrCat(Describe(op_case), " in ", std::string(DTypeName(dtype))));
    ASSERT_TRUE(IsOffered(op_case, dtype));
    const auto device = CpuKernelsChosen(cpu::kInPanels);
    const Expectation expected = ExpectationOf(op_case, dtype);
    cpu::SetNumThreads(1);
    ExpectMatches(*device, op_case, dtype, expected);
    const auto one = RunKernel(*device, op_case, dtype, expected.inputs);
    for (const int threads : {2, 5}) {
      cpu::SetNumThreads(threads);
      const auto several = RunKernel(*device, op_case, dtype, expected.inputs);
      ASSERT_TRUE(one.ok() && several.ok()) << one.status() << several.status();
      EXPECT_EQ(*one, *several) << threads;
    }
  }

 private:
  int threads_ = cpu::NumThreads();
};

TEST_F(PanelConvolutions, MatchTheReferenceOnDrawnShapes) {
  constexpr int kCases = 120;
  Draws draws(1);
  for (int i = 0; i < kCases; ++i) {
    OpCase op_case = Draw(draws);
    if (draws.OneIn(3)) op_case.f32_results = {0};
    ExpectPanelsMatch(op_case, draws.OneOf<DType>({DType::kF32, DType::kF32, DType::kF16, DType::kBF16}));
  }
}

// In order: one pixel; one channel; several chunks of several images; a chunk of many images; rows in several strips;
// more channels than are converted at a time; strides of several rows of chunks; windows that are longer than images.
TEST_F(PanelConvolutions, OfManyTermsOrFewMatchTheReference) {
  for (const DrawnConvolution& shape :
       {Images(1, 1, 7, 17), Images(3, 5, 1, 1), Images(5, 33, 40, 40), Images(70, 3, 33, 20), Images(1, 70, 6, 16),
        Images(2, 2, 1100, 18), Images(9, 25, 50, 33, 3, 2), Images(2, 3, 19, 35, 7)}) {
    ExpectPanelsMatch(GradWeight(shape), DType::kF32);
    ExpectPanelsMatch(GradWeight(shape), DType::kF16);
  }
}

TEST_F(PanelConvolutions, SumManyPixelsInChunks) {
  DrawnConvolution shape = Images(3, 150, 24, 16, 3, 2);
  ExpectPanelsMatch(GradWeight(shape), DType::kF32);
  shape = Images(1, 600, 3, 3);  // one row is longer than a strip
  ExpectPanelsMatch(GradWeight(shape), DType::kF32);
}

// Zeros of padding would make NaN of an infinity that a tap never meets.
TEST_F(PanelConvolutions, NumbersThatAreNotFiniteReachTheWeightsThatMeetThemAndNoOther) {
  constexpr int kCases = 60;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Draws draws(2);
  for (int i = 0; i < kCases; ++i) {
    const OpCase op_case = Draw(draws);
    SCOPED_TRACE(Describe(op_case));
    std::vector<Tensor> inputs = ExpectationOf(op_case, DType::kF32).inputs;
    for (Tensor& input : inputs) {
      for (int j = 0; j < 3; ++j) {
        const auto at = draws.Between(0, static_cast<std::int64_t>(input.values.size()) - 1);
        input.values[static_cast<std::size_t>(at)] =
            draws.OneOf<double>({kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()});
      }
    }
    const KernelSpec spec = SpecOf(op_case, DType::kF32);
    std::vector<Tensor> exact{{spec.outputs[0], {}}};
    ASSERT_TRUE(reference::Run(op_case.op, spec.attributes, inputs, absl::MakeSpan(exact)).ok());
    const auto bits = RunKernel(*CpuKernelsChosen(cpu::kInPanels), op_case, DType::kF32, inputs);
    ASSERT_TRUE(bits.ok()) << bits.status();
    const Tensor actual = reference::FromStorage(spec.outputs[0], (*bits)[0].data());
    const auto kind_of = [](double value) {
      return std::isnan(value) ? "NaN" : std::isfinite(value) ? "finite" : value > 0 ? "+infinity" : "-infinity";
    };
    for (std::size_t j = 0; j < actual.values.size(); ++j) {
      ASSERT_STREQ(kind_of(actual.values[j]), kind_of(exact[0].values[j])) << j;
    }
  }
}

TEST_F(PanelConvolutions, AreOfferedForImagesChannelsLastWithoutGroups) {
  const DrawnConvolution last = Images(1, 4, 32, 32);
  DrawnConvolution first = last, grouped = last;
  first.attributes.Set("data_format", std::string("NCHW"));
  grouped.attributes.Set("groups", std::int64_t{2});
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_TRUE(IsOffered(GradWeight(last), dtype));
    EXPECT_FALSE(IsOffered(GradWeight(first), dtype));
    EXPECT_FALSE(IsOffered(GradWeight(grouped), dtype));
    EXPECT_FALSE(IsOffered(CaseOf("conv2d_grad_input", last, false, "none"), dtype));
  }
}

// docs/cpu.md has the times that these rules come from.
TEST_F(PanelConvolutions, AreTheRuleWhereTheyAreFaster) {
  const auto is_rule = [](const DrawnConvolution& shape) {
    const KernelSpec spec = SpecOf(GradWeight(shape), DType::kF32);
    const bool is_first = cpu::CandidateChoices(spec).front() == cpu::kInPanels;
    const auto kernel = cpu::CreateKernel(spec);
    EXPECT_TRUE(kernel.ok());
    EXPECT_EQ((*kernel)->choice() == cpu::kInPanels, is_first);
    return is_first;
  };
  EXPECT_TRUE(is_rule(Images(4, 8, 32, 32)));
  EXPECT_TRUE(is_rule(Images(8, 8, 64, 128, 3, 2)));
  EXPECT_TRUE(is_rule(Images(4, 8, 64, 56)));
  EXPECT_FALSE(is_rule(Images(1, 8, 64, 64))) << "few pixels";
  EXPECT_FALSE(is_rule(Images(4, 8, 31, 64))) << "few channels of x";
  EXPECT_FALSE(is_rule(Images(4, 8, 64, 16))) << "few channels of y";
  EXPECT_FALSE(is_rule(Images(4, 8, 64, 55))) << "a panel is half empty";
  EXPECT_FALSE(is_rule(Images(4, 8, 64, 64, 1))) << "one tap";
}

TEST_F(PanelConvolutions, NeedFewMegabytesBesideTheirSums) {
  for (const DrawnConvolution& shape : {Images(32, 32, 64, 64), Images(256, 14, 64, 128, 3, 2)}) {
    const OpCase op_case = GradWeight(shape);
    const auto kernel = cpu::CreateKernel(SpecOf(op_case, DType::kF32), {.choice = cpu::kInPanels});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_LT((*kernel)->workspace_bytes(), std::size_t{4} << 20) << Describe(op_case);
  }
}

}  // namespace
}  // namespace mpc::test
