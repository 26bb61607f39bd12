// Every kernel of the library that may be chosen, on drawn shapes, beside the reference. The library has other kernels
// for each level of a processor, so that this runs once a level (tests/kernels/CMakeLists.txt). More cases than the
// default, by hand:
//   MPC_LIBRARY_CASES=840 ctest --test-dir build/default -R cpu_library_kernels
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"
#include "kernels/known_attributes.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/drawn_convolutions.h"
#include "tests/kernels/kernel_checks.h"
#include "tests/kernels/kernel_run.h"
#include "tests/op_cases/families.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using op_cases::Variable;

/// Cases for one level. Seven levels make 350, which the default suite has time for.
constexpr int kCases = 50;

/// Multiply-adds of a case at most: the reference computes each of them three times.
constexpr std::int64_t kMostWork = 400'000;

/// Multiply-adds of an operation that is cut into parts, and cases of such for one level.
constexpr std::int64_t kPartsFrom = 2'100'000, kPartsTo = 12'000'000;
constexpr int kCasesInParts = 24;

int CasesAskedFor() {
  const char* given = std::getenv("MPC_LIBRARY_CASES");
  int cases = kCases;
  if (given != nullptr && (!absl::SimpleAtoi(given, &cases) || cases < 1)) {
    ADD_FAILURE() << "MPC_LIBRARY_CASES is a number of cases from 1, got '" << given << "'";
  }
  return cases;
}

/// As many of `cases` that are cut into parts, or times as many as there are more cases than the default.
int CasesInPartsAskedFor(int cases) { return cases * std::max(1, CasesAskedFor() / kCases); }

/// Each level draws shapes of its own.
std::uint64_t SeedOfLevel() {
  const char* level = std::getenv("ONEDNN_MAX_CPU_ISA");
  std::uint64_t seed = 17;
  for (const char* c = level == nullptr ? "" : level; *c != '\0'; ++c) seed = seed * 131 + static_cast<unsigned>(*c);
  return seed;
}

/// One image or two, channels-last, of so many pixels that gradients have parts of their rows in f32 and bf16.
DrawnConvolution DrawFewImages(Draws& draws) {
  for (;;) {
    const DrawnConvolution shape = DrawConvolution(draws, kPartsFrom, kPartsTo, /*scale=*/5);
    const bool has_parts = shape.batch == 1 || (shape.batch == 2 && shape.multiply_adds() >= 2 * kPartsFrom);
    const bool has_pixels = shape.batch * shape.out_height * shape.out_width >= 1024;
    const bool is_channels_last = shape.attributes.Get(attribute::kDataFormat) == DataFormat::kNHWC;
    if (has_parts && has_pixels && is_channels_last) return shape;
  }
}

struct Extents {
  std::int64_t m, k, n;
};

/// Of kPartsFrom to kPartsTo multiply-adds: about as long as wide, or long in one direction.
Extents DrawProductInParts(Draws& draws) {
  for (;;) {
    Extents drawn{draws.Between(1, 400), draws.Between(1, 400), draws.Between(1, 400)};
    std::int64_t Extents::*const one = draws.OneOf<std::int64_t Extents::*>({&Extents::m, &Extents::k, &Extents::n});
    if (draws.OneIn(2)) drawn.*one *= draws.Between(1, 40);
    const std::int64_t work = drawn.m * drawn.k * drawn.n;
    if (work >= kPartsFrom && work <= kPartsTo) return drawn;
  }
}

OpCase MatmulCase(Draws& draws, const Extents& extents, bool batched) {
  const bool transpose_a = draws.OneIn(2), transpose_b = draws.OneIn(2);
  const auto [m, k, n] = extents;
  const Shape leading = batched ? Shape{draws.Between(1, 5)} : Shape{};
  const auto matrix = [&leading](std::int64_t rows, std::int64_t columns, bool transposed) {
    Shape shape = leading;
    shape.insert(shape.end(), {transposed ? columns : rows, transposed ? rows : columns});
    return shape;
  };
  const std::string op = batched ? "batch_matmul" : "matmul";
  OpCase op_case{.name = op,
                 .op = op,
                 .attributes = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                 .operands = {Variable(matrix(m, k, transpose_a)), Variable(matrix(k, n, transpose_b))},
                 .results = {op_cases::F32(matrix(m, n, false))}};
  if (!batched && draws.OneIn(2)) op_case.operands.push_back(Variable({n}));
  return op_case;
}

/// Of `least` to `most` multiply-adds.
OpCase DrawConvolutionCase(Draws& draws, std::int64_t least, std::int64_t most) {
  const auto op = draws.OneOf<std::string>({"conv2d", "conv2d_grad_input", "conv2d_grad_input", "conv2d_grad_weight",
                                            "conv2d_grad_weight", "conv_transpose2d"});
  const DrawnConvolution shape = DrawConvolution(draws, least, most);
  return CaseOf(op, shape, draws.OneIn(2), draws.OneOf<std::string>({"none", "none", "relu", "gelu"}));
}

/// Pointwise windows over images of [height, width] pixels, channels last.
DrawnConvolution Pointwise(std::int64_t batch, std::int64_t channels, std::int64_t out_channels, const Ints& image,
                           const Ints& strides) {
  DrawnConvolution shape{};
  shape.batch = batch;
  shape.channels = channels;
  shape.out_channels = out_channels;
  shape.kernel_height = shape.kernel_width = 1;
  shape.height = image[0];
  shape.width = image[1];
  shape.out_height = (image[0] - 1) / strides[0] + 1;
  shape.out_width = (image[1] - 1) / strides[1] + 1;
  shape.attributes = {{"data_format", std::string("NHWC")}, {"strides", strides}};
  return shape;
}

/// `kernel` windows whose rows are `dilation` apart, over one image of few rows of `width` pixels, channels last.
DrawnConvolution DilatedRows(std::int64_t width, std::int64_t channels, std::int64_t groups, const Ints& kernel,
                             std::int64_t dilation) {
  constexpr std::int64_t kRows = 3;  // of y
  DrawnConvolution shape = Pointwise(1, channels, 2 * groups, {kRows + dilation * (kernel[0] - 1), width}, {1, 1});
  shape.kernel_height = kernel[0];
  shape.kernel_width = kernel[1];
  shape.out_height = kRows;
  shape.out_width = width - (kernel[1] - 1);
  shape.attributes.Set("pad_mode", std::string("valid"));
  shape.attributes.Set("dilations", Ints{dilation, 1});
  shape.attributes.Set("groups", groups);
  return shape;
}

/// The library computes rows of more than 28 pixels in blocks.
DrawnConvolution DrawDilatedRows(Draws& draws) {
  const std::int64_t groups = draws.OneIn(3) ? draws.Between(2, 6) : 1;
  const std::int64_t channels = groups > 1 ? groups * draws.Between(1, 12) : draws.Channels();
  return DilatedRows(draws.Between(20, 70), channels, groups, {draws.Between(1, 3), draws.Between(1, 3)},
                     draws.Between(2, 3));
}

OpCase DrawCase(Draws& draws) {
  if (draws.OneIn(8)) {
    const auto op = draws.OneOf<std::string>({"conv2d", "conv2d_grad_input", "conv2d_grad_weight"});
    return CaseOf(op, DrawDilatedRows(draws), false, "none");
  }
  if (!draws.OneIn(6)) return DrawConvolutionCase(draws, 0, kMostWork);
  const bool batched = draws.OneIn(2);
  const std::int64_t m = draws.Channels(), k = draws.Channels(), n = draws.Channels();
  return MatmulCase(draws, {m, k, n}, batched);
}

OpCase DrawCaseInParts(Draws& draws) {
  if (draws.OneIn(4)) {
    const auto op = draws.OneOf<std::string>({"conv2d_grad_input", "conv2d_grad_weight"});
    return CaseOf(op, DrawFewImages(draws), false, "none");
  }
  if (draws.OneIn(3)) return DrawConvolutionCase(draws, kPartsFrom, kPartsTo);
  OpCase op_case = MatmulCase(draws, DrawProductInParts(draws), draws.OneIn(4));
  if (op_case.op == "matmul") {
    op_case.attributes.Set("activation", draws.OneOf<std::string>({"none", "relu", "gelu"}));
  }
  return op_case;
}

class LibraryKernels : public testing::Test {
 protected:
  void TearDown() override { cpu::SetNumThreads(threads_); }

  /// Each choice, with one thread and with two. Threads that write into each other's memory do so now and then, so that
  /// two of them run twice.
  static void ExpectEveryChoiceMatches(const OpCase& op_case, DType dtype) {
    SCOPED_TRACE(absl::StrCat(Describe(op_case), " in ", std::string(DTypeName(dtype))));
    const KernelSpec spec = SpecOf(op_case, dtype);
    const Expectation expected = ExpectationOf(op_case, dtype);
    for (int threads : {1, 2}) {
      cpu::SetNumThreads(threads);
      std::vector<std::string> choices = cpu::CandidateChoices(spec);
      if (choices.empty()) choices = {""};  // an operation with one kernel
      for (const std::string& choice : choices) {
        SCOPED_TRACE(absl::StrCat("'", choice, "' with ", threads, " threads"));
        for (int run = 0; run < threads; ++run) ExpectMatches(*CpuKernelsChosen(choice), op_case, dtype, expected);
      }
    }
  }

 private:
  int threads_ = cpu::NumThreads();
};

TEST_F(LibraryKernels, MatchTheReferenceOnDrawnShapes) {
  Draws draws(SeedOfLevel());
  const int cases = CasesAskedFor();
  for (int i = 0; i < cases; ++i) {
    const DType dtype = draws.OneOf<DType>({DType::kF32, DType::kF32, DType::kBF16, DType::kF16});
    OpCase op_case = DrawCase(draws);
    absl::StrAppend(&op_case.name, "/drawn_", i);  // values are drawn by name
    ExpectEveryChoiceMatches(op_case, dtype);
  }
}

// Parts follow from shapes and types alone.
TEST_F(LibraryKernels, HaveTheSameBitsWithAnyNumberOfThreads) {
  Draws draws(SeedOfLevel() + 1);
  draws.DrawMoreChannels();
  const int drawn = CasesInPartsAskedFor(kCasesInParts);
  for (int i = 0; i < drawn; ++i) {
    const DType dtype = draws.OneOf<DType>({DType::kF32, DType::kF32, DType::kBF16, DType::kF16});
    OpCase op_case = DrawCaseInParts(draws);
    absl::StrAppend(&op_case.name, "/parts_", i);
    SCOPED_TRACE(absl::StrCat(Describe(op_case), " in ", std::string(DTypeName(dtype))));
    const std::vector<reference::Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    std::vector<std::string> choices = cpu::CandidateChoices(SpecOf(op_case, dtype));
    if (choices.empty()) choices = {""};
    for (const std::string& choice : choices) {
      cpu::SetNumThreads(1);
      const auto one = RunKernel(*CpuKernelsChosen(choice), op_case, dtype, inputs);
      ASSERT_TRUE(one.ok()) << one.status();
      for (const int threads : {2, 4}) {
        cpu::SetNumThreads(threads);
        const auto several = RunKernel(*CpuKernelsChosen(choice), op_case, dtype, inputs);
        ASSERT_TRUE(several.ok()) << several.status();
        EXPECT_EQ(*several, *one) << "'" << choice << "' with " << threads << " threads";
      }
    }
  }
}

// What parts compute, of each operation and type.
TEST_F(LibraryKernels, MatchTheReferenceInParts) {
  Draws draws(SeedOfLevel() + 2);
  draws.DrawMoreChannels();
  const int few_images = CasesInPartsAskedFor(2);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    std::vector<OpCase> cases = {MatmulCase(draws, {256, 100, 90}, false), MatmulCase(draws, {40, 260, 230}, false),
                                 MatmulCase(draws, {30, 2600, 30}, false), MatmulCase(draws, {80, 60, 150}, true)};
    const DrawnConvolution shape = DrawConvolution(draws, kPartsFrom, kPartsFrom * 3 / 2);
    for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) {
      cases.push_back(CaseOf(op, shape, false, "none"));
    }
    for (int i = 0; i < few_images; ++i) {
      const DrawnConvolution rows = DrawFewImages(draws);
      for (const char* op : {"conv2d_grad_input", "conv2d_grad_weight"}) {
        cases.push_back(CaseOf(op, rows, false, "none"));
      }
    }
    for (OpCase& op_case : cases) {
      absl::StrAppend(&op_case.name, "/in_parts");
      ExpectEveryChoiceMatches(op_case, dtype);
    }
  }
}

/// 3x3 windows over one image, channels last, with as many channels of y as of x.
DrawnConvolution SingleImage(std::int64_t height, std::int64_t width, std::int64_t channels, std::int64_t stride,
                             const std::string& pad_mode) {
  DrawnConvolution shape = Pointwise(1, channels, channels, {height, width}, {stride, stride});
  shape.kernel_height = shape.kernel_width = 3;
  shape.attributes.Set("pad_mode", pad_mode);
  if (pad_mode == "valid") {
    shape.out_height = (height - 3) / stride + 1;
    shape.out_width = (width - 3) / stride + 1;
  }
  return shape;
}

// In order: windows reach beyond the parts next to theirs; no window reaches the last rows, so that the image is whole.
TEST_F(LibraryKernels, CutSingleImagesIntoManyRowsOrNone) {
  for (const DrawnConvolution& shape : {SingleImage(16, 256, 32, 1, "same"), SingleImage(11, 300, 64, 3, "valid")}) {
    for (const char* op : {"conv2d_grad_input", "conv2d_grad_weight"}) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        ExpectEveryChoiceMatches(CaseOf(op, shape, false, "none"), dtype);
      }
    }
  }
}

TEST_F(LibraryKernels, GatherStridedPixelsWithAnyNumberOfChannels) {
  for (const std::int64_t channels : {1, 4, 5, 8, 10, 11, 17, 24}) {
    for (const DrawnConvolution& shape :
         {Pointwise(5, channels, 5, {12, 8}, {3, 1}), Pointwise(5, channels, 16, {12, 10}, {2, 2})}) {
      for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) {
        for (const DType dtype : {DType::kF32, DType::kBF16}) {
          ExpectEveryChoiceMatches(CaseOf(op, shape, false, "none"), dtype);
        }
      }
    }
  }
}

TEST_F(LibraryKernels, DilateRowsOfAnyWidthAndNumberOfChannels) {
  std::vector<DrawnConvolution> shapes;
  for (const std::int64_t channels : {16, 17, 24, 40}) shapes.push_back(DilatedRows(44, channels, 1, {2, 2}, 2));
  for (const std::int64_t width : {28, 29, 59}) shapes.push_back(DilatedRows(width, 24, 1, {1, 1}, 3));
  for (const std::int64_t groups : {4, 8}) shapes.push_back(DilatedRows(48, 8 * groups, groups, {2, 1}, 2));
  for (const DrawnConvolution& shape : shapes) {
    for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        ExpectEveryChoiceMatches(CaseOf(op, shape, false, "none"), dtype);
      }
    }
  }
}

// y has one column, and all but one column of the window meet padding alone.
TEST_F(LibraryKernels, ReadNoColumnsBesideTheImage) {
  for (const std::int64_t channels : {4, 16, 33}) {
    for (const std::int64_t columns : {1, 2}) {
      DrawnConvolution shape = Pointwise(2, channels, 70, {11, columns}, {1, 3});
      shape.kernel_height = shape.kernel_width = 5;
      shape.attributes.Set("pad_mode", std::string("same"));
      ExpectEveryChoiceMatches(CaseOf("conv2d_grad_weight", shape, false, "none"), DType::kBF16);
    }
  }
}

TEST_F(LibraryKernels, TakeOddNumbersOfChannelsOfAnyNumberOfPixels) {
  for (const std::int64_t pixels : {29, 30, 31, 60}) {
    for (const Ints& strides : {Ints{1, 1}, Ints{1, 2}}) {
      const DrawnConvolution shape = Pointwise(2, 48, 29, {1, pixels * strides[1]}, strides);
      for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) {
        ExpectEveryChoiceMatches(CaseOf(op, shape, false, "none"), DType::kBF16);
      }
    }
  }
}

}  // namespace
}  // namespace mpc::test
