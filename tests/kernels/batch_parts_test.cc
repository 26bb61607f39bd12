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

TEST(BatchCut, HasAShorterLastPartWhereNoDivisorIsNear) {
  if (!IsF16Widened()) GTEST_SKIP() << "f16 is not widened";
  const auto cut = [](std::int64_t batch) {
    const cpu::BatchCut cut = cpu::CutBatch(SpecOf(Convolutions(batch, 32)[0], DType::kF16), {1, false});
    EXPECT_EQ((cut.rest > 0 ? cut.parts - 1 : cut.parts) * cut.images + cut.rest, batch);
    return std::vector<std::int64_t>{cut.parts, cut.images, cut.rest};
  };
  using Cut = std::vector<std::int64_t>;
  EXPECT_EQ(cut(1), (Cut{1, 1, 0}));
  EXPECT_EQ(cut(12), (Cut{1, 12, 0}));
  EXPECT_EQ(cut(31), (Cut{3, 11, 9}));
  EXPECT_EQ(cut(32), (Cut{4, 8, 0}));
  EXPECT_EQ(cut(36), (Cut{3, 12, 0}));
  EXPECT_EQ(cut(37), (Cut{4, 10, 7}));
}

}  // namespace
}  // namespace mpc::test
