// Convolutions that widen their images take a part of the batch at a time: the numbers are right, and the workspace is
// that of a part.
#include "kernels/cpu/batch_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/row_parts.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/kernel_checks.h"
#include "tests/op_cases/families.h"

namespace mpc::test {
namespace {

using op_cases::Fixed;
using op_cases::OpCase;

constexpr std::int64_t kChannels = 32;
const Shape kWeight = {kChannels, kChannels, 1, 1};

/// Of images of `extent` x `extent` pixels.
std::vector<OpCase> Convolutions(std::int64_t batch, std::int64_t extent) {
  const Shape images = {batch, extent, extent, kChannels};
  const std::string name = absl::StrCat("/parts_of_", batch);
  const Attributes format = {{"data_format", std::string("NHWC")}};
  OpCase forward{"conv2d" + name, "conv2d", format, {Fixed(images), Fixed(kWeight), Fixed({kChannels})}, {}};
  forward.attributes.Set("activation", std::string("relu"));
  forward.results = {op_cases::F32(images)};
  OpCase input{"conv2d_grad_input" + name, "conv2d_grad_input", format, {Fixed(images), Fixed(kWeight)}, {}};
  input.attributes.Set("input_shape", images);
  input.results = {op_cases::F32(images)};
  OpCase filter{"conv2d_grad_weight" + name, "conv2d_grad_weight", format, {Fixed(images), Fixed(images)}, {}};
  filter.attributes.Set("weight_shape", kWeight);
  filter.results = {op_cases::F32(kWeight)};
  return {forward, input, filter};
}

/// Ten images of half a MiB in f32 on either side, and 31 of an eighth.
std::vector<OpCase> Convolutions() {
  std::vector<OpCase> cases = Convolutions(10, 64);
  for (OpCase& op_case : Convolutions(31, 32)) cases.push_back(std::move(op_case));
  return cases;
}

class BatchParts : public testing::TestWithParam<OpCase> {};

/// Where the library multiplies f16 itself, nothing is widened.
bool IsF16Widened() { return !cpu::IsNative(DType::kF16); }

TEST_P(BatchParts, MatchTheReferenceWithinDerivedBounds) {
  ExpectMatchesReference(CpuKernels(), GetParam(), DType::kF16);
}

TEST_P(BatchParts, WidenAPartOfTheBatch) {
  if (!IsF16Widened()) GTEST_SKIP() << "f16 is not widened";
  const auto kernel = cpu::CreateKernel(SpecOf(GetParam(), DType::kF16));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::size_t all = static_cast<std::size_t>(GetParam().operands[0].spec.num_elements()) * sizeof(float) * 2;
  EXPECT_LT((*kernel)->workspace_bytes(), all * 3 / 5);
  EXPECT_NE((*kernel)->choice(), "") << "tuning may choose";
}

// An image of 512 MiB when both its sides are widened. There are four parts of one image each.
TEST(LargeImages, AreWidenedByFewPartsAtATime) {
  if (!IsF16Widened()) GTEST_SKIP() << "f16 is not widened";
  constexpr std::int64_t kExtent = 1448;
  const auto kernel = cpu::CreateKernel(SpecOf(Convolutions(4, kExtent)[0], DType::kF16));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::size_t widened = 2 * kExtent * kExtent * kChannels * sizeof(float);
  EXPECT_LT((*kernel)->workspace_bytes(), 2 * widened + (1 << 20)) << "two slots, and the weight";
  EXPECT_GT((*kernel)->workspace_bytes(), widened);
}

TEST_P(BatchParts, EachChoiceIsMadeAgainByItsName) {
  const KernelSpec spec = SpecOf(GetParam(), DType::kF16);
  for (const std::string& choice : cpu::CandidateChoices(spec)) {
    const auto kernel = cpu::CreateKernel(spec, {.choice = choice});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ((*kernel)->choice(), choice);
  }
}

INSTANTIATE_TEST_SUITE_P(Convolutions, BatchParts, testing::ValuesIn(Convolutions()), [](const auto& info) {
  return absl::StrCat(info.param.op, "_of_", info.param.operands[0].spec.shape[0]);
});

/// Parts, images of each, images of a shorter last one.
using Cut = std::vector<std::int64_t>;

/// How a convolution with as many images of `extent` x `extent` pixels is cut.
Cut CutOf(std::int64_t batch, std::int64_t extent, DType dtype, std::size_t operation) {
  const OpCase op_case = Convolutions(batch, extent)[operation];
  const KernelSpec spec = SpecOf(op_case, dtype);
  const Shape images = {batch, extent, extent, kChannels};
  const auto shape = cpu::ConvolutionShape::Create(spec, images, kWeight, images);
  EXPECT_TRUE(shape.ok()) << shape.status();
  const bool is_sum = op_case.op == "conv2d_grad_weight";
  const cpu::BatchCut cut = cpu::CutBatch(spec, {is_sum ? 2u : 1u, is_sum}, *shape);
  EXPECT_EQ((cut.rest > 0 ? cut.parts - 1 : cut.parts) * cut.images + cut.rest, batch);
  return {cut.parts, cut.images, cut.rest};
}

TEST(BatchCut, GivesEachPartWorkForAThread) {
  EXPECT_EQ(CutOf(1, 32, DType::kF32, 0), (Cut{1, 1, 0}));
  EXPECT_EQ(CutOf(4, 32, DType::kF32, 0), (Cut{4, 1, 0}));    // 4 million multiply-adds
  EXPECT_EQ(CutOf(64, 32, DType::kF32, 0), (Cut{16, 4, 0}));  // 67 million
  EXPECT_EQ(CutOf(512, 32, DType::kF32, 0), (Cut{16, 32, 0}));
}

TEST(BatchCut, HasAShorterLastPartWhereNoDivisorIsNear) {
  EXPECT_EQ(CutOf(36, 32, DType::kF32, 0), (Cut{9, 4, 0}));
  EXPECT_EQ(CutOf(37, 32, DType::kF32, 0), (Cut{8, 5, 2}));
}

TEST(BatchCut, LeavesFewImagesToPartsOfTheirRows) {
  const auto rows = [](std::int64_t batch, const char* format) {
    OpCase op_case = Convolutions(batch, 64)[0];
    op_case.attributes.Set("data_format", std::string(format));
    const Shape images = format[1] == 'H' ? Shape{batch, 64, 64, kChannels} : Shape{batch, kChannels, 64, 64};
    op_case.operands[0].spec.shape = op_case.results[0].shape = images;
    const KernelSpec spec = SpecOf(op_case, DType::kF32);
    const auto shape = cpu::ConvolutionShape::Create(spec, images, kWeight, images);
    EXPECT_TRUE(shape.ok()) << shape.status();
    return cpu::RowsOfPart(spec, cpu::kForward, *shape);
  };
  EXPECT_EQ(rows(1, "NHWC"), 16);  // 4 million multiply-adds: 4 parts
  EXPECT_EQ(rows(2, "NHWC"), 32);
  EXPECT_EQ(rows(4, "NHWC"), 64);
  EXPECT_EQ(rows(1, "NCHW"), 64) << "rows of an image do not lie together";
}

TEST(BatchCut, LeavesFewImagesOfGradientsToPartsOfTheirRows) {
  const auto rows = [](std::int64_t batch, std::int64_t extent, const cpu::BatchOperands& operands, DType dtype) {
    const bool is_sum = operands.sums_the_batch;
    const KernelSpec spec = SpecOf(Convolutions(batch, extent)[is_sum ? 2 : 1], dtype);
    const Shape images = {batch, extent, extent, kChannels};
    const auto shape = cpu::ConvolutionShape::Create(spec, images, kWeight, images);
    EXPECT_TRUE(shape.ok()) << shape.status();
    const std::int64_t part = cpu::RowsOfPart(spec, operands, *shape);
    EXPECT_EQ(cpu::CutBatch(spec, operands, *shape).parts, part < extent ? 1 : batch) << "rows are cut by attempts";
    return part;
  };
  EXPECT_EQ(rows(1, 64, cpu::kGradInput, DType::kF32), 16);
  EXPECT_EQ(rows(2, 64, cpu::kGradInput, DType::kF32), 32);
  EXPECT_EQ(rows(4, 64, cpu::kGradInput, DType::kF32), 64);
  EXPECT_EQ(rows(1, 64, cpu::kGradWeight, DType::kF32), 16);
  EXPECT_EQ(rows(1, 48, cpu::kGradWeight, DType::kF32), 24) << "2.4 million multiply-adds";
  EXPECT_EQ(rows(1, 192, cpu::kGradWeight, DType::kF32), 24) << "8 sums at most";
  if (IsF16Widened()) {
    EXPECT_EQ(rows(1, 64, cpu::kGradInput, DType::kF16), 64);
  }
}

TEST(ConvolutionShape, RowsHaveThePaddingOfTheirEdge) {
  KernelSpec spec{.name = "conv2d", .inputs = {}, .outputs = {}, .output_used = {}, .attributes = {}};
  spec.attributes.Set("data_format", std::string("NHWC"));
  spec.attributes.Set("pad_mode", std::string("pad"));
  spec.attributes.Set("padding", std::vector<std::int64_t>{2, 1, 0, 0});
  spec.attributes.Set("strides", std::vector<std::int64_t>{2, 1});
  const auto whole = cpu::ConvolutionShape::Create(spec, {3, 13, 4, 8}, {8, 8, 5, 1}, {3, 6, 4, 8});
  ASSERT_TRUE(whole.ok()) << whole.status();
  using Numbers = std::vector<std::int64_t>;  // first row, rows of x, rows of y, padding
  const auto part = [&](std::int64_t row, std::int64_t count) {
    const cpu::ConvolutionShape rows = whole->Rows(row, count);
    return Numbers{whole->FirstRowOf(row), rows.x[2], rows.y[2], rows.pad_begin[0], rows.pad_end[0]};
  };
  EXPECT_EQ(part(0, 2), (Numbers{0, 5, 2, 2, 0}));
  EXPECT_EQ(part(2, 2), (Numbers{2, 7, 2, 0, 0}));
  EXPECT_EQ(part(4, 2), (Numbers{6, 7, 2, 0, 0}));
}

TEST(ConvolutionShape, RowsOfXHaveTheRowsOfYThatReachThem) {
  using Numbers = std::vector<std::int64_t>;  // first row of y, rows of x, rows of y, padding
  const auto part = [](const Attributes& windows, std::int64_t rows, std::int64_t row, std::int64_t count) {
    KernelSpec spec{.name = "conv2d", .inputs = {}, .outputs = {}, .output_used = {}, .attributes = windows};
    spec.attributes.Set("data_format", std::string("NHWC"));
    spec.attributes.Set("pad_mode", std::string("pad"));
    const std::int64_t window = windows.GetInts("padding")[0] == 0 ? 1 : 5;
    const auto whole = cpu::ConvolutionShape::Create(spec, {3, 13, 4, 8}, {8, 8, window, 1}, {3, rows, 4, 8});
    EXPECT_TRUE(whole.ok()) << whole.status();
    const auto cut = whole->RowsOfX(row, count);
    return cut ? Numbers{whole->FirstRowOfYFor(row), cut->x[2], cut->y[2], cut->pad_begin[0], cut->pad_end[0]}
               : Numbers{};
  };
  using Ints = std::vector<std::int64_t>;
  const Attributes wide = {{"padding", Ints{2, 1, 0, 0}}, {"strides", Ints{2, 1}}};
  EXPECT_EQ(part(wide, 6, 0, 4), (Numbers{0, 4, 3, 2, 3}));
  EXPECT_EQ(part(wide, 6, 4, 4), (Numbers{1, 4, 4, 4, 3}));
  EXPECT_EQ(part(wide, 6, 8, 5), (Numbers{3, 5, 3, 4, 0}));
  const Attributes dilated = {{"padding", Ints{2, 1, 0, 0}}, {"dilations", Ints{3, 1}}};
  EXPECT_EQ(part(dilated, 4, 6, 4), (Numbers{0, 4, 4, 8, 4})) << "the window is 13 rows high";
  const Attributes apart = {{"padding", Ints{0, 0, 0, 0}}, {"strides", Ints{3, 1}}};
  EXPECT_EQ(part(apart, 5, 3, 6), (Numbers{1, 6, 2, 0, 0})) << "two rows behind the last window";
  EXPECT_EQ(part(apart, 5, 4, 6), Numbers{}) << "the first row of y lies below that of x";
  EXPECT_EQ(part(apart, 5, 1, 2), Numbers{}) << "no window reaches them";
}

/// The parts of the gradient by the input of two images of 64 rows, in parts of 32. Primitives of rows have this
/// implementation and want the weight so.
std::size_t PartsInRows(const std::string& implementation, dnnl::memory::format_tag first_weight,
                        dnnl::memory::format_tag weight) {
  const KernelSpec spec = SpecOf(Convolutions(2, 64)[1], DType::kF32);
  const Shape images = {2, 64, 64, kChannels};
  const auto shape = cpu::ConvolutionShape::Create(spec, images, kWeight, images);
  EXPECT_TRUE(shape.ok()) << shape.status();
  std::size_t made = 0;
  const auto make = [&](const cpu::ConvolutionShape& part) {
    const dnnl::memory::desc stored = part.Weight(dnnl::memory::data_type::f32);
    const dnnl::memory::desc wanted(part.weight, dnnl::memory::data_type::f32, ++made == 1 ? first_weight : weight);
    cpu::Attempt attempt;
    attempt.implementation = part.x[2] == 64 ? "jit" : implementation;
    attempt.operation.primitives.push_back({{}, {}, {{}, {2, DType::kF32, stored, wanted, true}}, {}});
    return attempt;
  };
  // Each image has another padding above and below than its rows.
  cpu::ConvolutionShape padded = *shape;
  padded.weight[2] = 3;
  padded.pad_begin[0] = padded.pad_end[0] = 1;
  const cpu::Attempt attempt = cpu::InRowsOrImages(spec, cpu::kGradInput, padded, 32, make);
  EXPECT_EQ(attempt.implementation, "jit");
  return attempt.operation.parts.size();
}

TEST(RowParts, AreWholeImagesWhereRowsAreSlowOrWantTheWeightDifferently) {
  using Tag = dnnl::memory::format_tag;
  EXPECT_EQ(PartsInRows("jit", Tag::OIhw16o16i, Tag::OIhw16o16i), 4u);
  EXPECT_EQ(PartsInRows("ref", Tag::OIhw16o16i, Tag::OIhw16o16i), 2u);
  EXPECT_EQ(PartsInRows("jit", Tag::OIhw16i16o, Tag::OIhw16o16i), 2u);
}

TEST(BatchCut, AddsUpFewSums) { EXPECT_EQ(CutOf(512, 32, DType::kF32, 2), (Cut{8, 64, 0})); }

TEST(BatchCut, WidensFewImagesAtATime) {
  if (!IsF16Widened()) GTEST_SKIP() << "f16 is not widened";
  EXPECT_EQ(CutOf(32, 32, DType::kF16, 0), (Cut{16, 2, 0}));
  EXPECT_EQ(CutOf(32, 64, DType::kF16, 0), (Cut{32, 1, 0}));
}

}  // namespace
}  // namespace mpc::test
