// Convolutions on tiles, with the instructions of AMX emulated where the processor has none.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/tiles.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/drawn_convolutions.h"
#include "tests/kernels/kernel_checks.h"
#include "tests/kernels/tile_emulator.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;

const std::vector<std::string> kConvolutions = {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"};

bool IsOffered(const OpCase& op_case, DType dtype) {
  return std::ranges::count(cpu::CandidateChoices(SpecOf(op_case, dtype)), cpu::kOnTiles) == 1;
}

class TileConvolutions : public testing::Test {
 protected:
  void SetUp() override {
    if (!EmulateTiles()) GTEST_SKIP() << "needs AVX-512";
  }
  void TearDown() override { cpu::SetNumThreads(threads_); }

  /// With one thread and several, which have the same bits.
  static void ExpectTilesMatch(const OpCase& op_case) {
    SCOPED_TRACE(Describe(op_case));
    ASSERT_TRUE(IsOffered(op_case, DType::kBF16));
    const auto device = CpuKernelsChosen(cpu::kOnTiles);
    const Expectation expected = ExpectationOf(op_case, DType::kBF16);
    cpu::SetNumThreads(3);
    ExpectMatches(*device, op_case, DType::kBF16, expected);
    const auto several = RunKernel(*device, op_case, DType::kBF16, expected.inputs);
    cpu::SetNumThreads(1);
    const auto one = RunKernel(*device, op_case, DType::kBF16, expected.inputs);
    ASSERT_TRUE(one.ok() && several.ok()) << one.status() << several.status();
    EXPECT_EQ(*one, *several);
  }

 private:
  int threads_ = cpu::NumThreads();
};

// Windows of any size, stride, dilation and padding, in up to six images; results in f32, too.
TEST_F(TileConvolutions, MatchTheReferenceOnDrawnShapes) {
  constexpr int kCases = 16;  // of each operation
  constexpr std::int64_t kMostWork = 1'000'000;
  Draws draws(1);
  for (const std::string& op : kConvolutions) {
    for (int i = 0; i < kCases;) {
      DrawnConvolution shape = DrawConvolution(draws, 0, kMostWork);
      shape.attributes.Set("data_format", std::string("NHWC"));
      shape.attributes.Set("groups", std::int64_t{1});
      shape.channels = 16 * draws.Between(1, 4);
      shape.out_channels = 16 * draws.Between(1, 4);
      OpCase op_case = CaseOf(op, shape, draws.OneIn(2), draws.OneOf<std::string>({"none", "relu", "gelu"}));
      absl::StrAppend(&op_case.name, "/tiles_", i);
      if (draws.OneIn(3)) op_case.f32_results = {0};
      if (shape.multiply_adds() > kMostWork || !IsOffered(op_case, DType::kBF16)) continue;
      ExpectTilesMatch(op_case);
      ++i;
    }
  }
}

/// 3x3 windows with padding over images of `extent` x `extent`, channels-last.
DrawnConvolution Images(std::int64_t batch, std::int64_t extent, std::int64_t channels, std::int64_t out_channels,
                        std::int64_t stride = 1) {
  DrawnConvolution shape{};
  shape.batch = batch;
  shape.channels = channels;
  shape.out_channels = out_channels;
  shape.height = shape.width = extent;
  shape.kernel_height = shape.kernel_width = 3;
  shape.out_height = shape.out_width = (extent - 1) / stride + 1;
  shape.attributes = {
      {"data_format", std::string("NHWC")}, {"pad_mode", std::string("same")}, {"strides", Ints{stride, stride}}};
  return shape;
}

// In order: small images; many pixels, in several chunks; one image of fewer pixels than a tile has rows; more rows of
// the weight's gradient than a task has; strides.
TEST_F(TileConvolutions, OfManyTermsMatchTheReference) {
  for (const DrawnConvolution& shape : {Images(2, 3, 128, 32), Images(3, 20, 32, 32), Images(1, 2, 32, 96),
                                        Images(1, 2, 352, 160), Images(2, 9, 32, 48, 2)}) {
    for (const std::string& op : kConvolutions) {
      const OpCase op_case = CaseOf(op, shape, true, "none");
      if (op != "conv2d_grad_input" || IsOffered(op_case, DType::kBF16)) ExpectTilesMatch(op_case);
    }
  }
}

// A row of the result is longer than a row of the image with the zeros that its windows share.
TEST_F(TileConvolutions, PadByMoreThanAWindow) {
  DrawnConvolution shape = Images(2, 3, 32, 32);
  shape.kernel_height = shape.kernel_width = 1;
  shape.out_height = shape.out_width = 5;
  shape.attributes.Set("pad_mode", std::string("pad"));
  shape.attributes.Set("padding", Ints{1, 1, 1, 1});
  ExpectTilesMatch(CaseOf("conv2d", shape, true, "relu"));
  ExpectTilesMatch(CaseOf("conv2d_grad_weight", shape, false, "none"));
  EXPECT_FALSE(IsOffered(CaseOf("conv2d_grad_input", shape, false, "none"), DType::kBF16));
}

TEST_F(TileConvolutions, AreOfferedForImagesOfBf16ChannelsLast) {
  const auto offers = [](const std::string& op, const DrawnConvolution& shape, DType dtype = DType::kBF16) {
    return IsOffered(CaseOf(op, shape, false, "none"), dtype);
  };
  const DrawnConvolution last = Images(1, 4, 32, 32), strided = Images(1, 4, 32, 32, 2);
  DrawnConvolution first = last, grouped = Images(1, 4, 64, 64);
  first.attributes.Set("data_format", std::string("NCHW"));
  grouped.attributes.Set("groups", std::int64_t{2});
  for (const std::string& op : kConvolutions) {
    EXPECT_TRUE(offers(op, last)) << op;
    EXPECT_FALSE(offers(op, last, DType::kF32)) << op;
    EXPECT_FALSE(offers(op, last, DType::kF16)) << op;
    EXPECT_FALSE(offers(op, first)) << op;
    EXPECT_FALSE(offers(op, grouped)) << op;
    EXPECT_EQ(offers(op, strided), op != "conv2d_grad_input") << op;
    EXPECT_EQ(offers(op, Images(1, 4, 48, 32)), op != "conv2d") << "sums over whole tiles of channels";
    EXPECT_EQ(offers(op, Images(1, 4, 32, 48)), op != "conv2d_grad_input") << op;
    EXPECT_FALSE(offers(op, Images(1, 4, 32, 40))) << op;
  }
}

// docs/cpu.md has the times that these rules come from.
TEST_F(TileConvolutions, AreTheRuleWhereTheyAreFaster) {
  const auto is_rule = [](const std::string& op, const DrawnConvolution& shape) {
    const OpCase op_case = CaseOf(op, shape, false, "none");
    return cpu::CandidateChoices(SpecOf(op_case, DType::kBF16)).front() == cpu::kOnTiles;
  };
  for (const std::string& op : kConvolutions) {
    const bool by_weight = op == "conv2d_grad_weight";
    EXPECT_FALSE(is_rule(op, Images(1, 4, 32, 32))) << op;
    EXPECT_EQ(is_rule(op, Images(2, 8, 128, 128)), by_weight) << op;
    EXPECT_TRUE(is_rule(op, Images(16, 4, 512, 512))) << op << ": few pixels, many weights";
    EXPECT_EQ(is_rule(op, Images(15, 4, 512, 512)), by_weight) << op << ": fewer still";
    EXPECT_EQ(is_rule(op, Images(4, 16, 512, 512)), by_weight) << op << ": many pixels";
  }
}

}  // namespace
}  // namespace mpc::test
