// Every case of the table, in every storage type, on the GPU of this machine: with the vendor's libraries and with the
// project's own kernels alone. Skipped where there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/cuda/kernel.h"
#include "kernels/state_hash.h"
#include "tests/gpu/gpu_kernel_device.h"
#include "tests/kernels/attention_checks.h"
#include "tests/kernels/kernel_checks.h"
#include "tests/op_cases/families.h"

namespace mpc::test {
namespace {

std::vector<std::string> CudaKernelNames() {
  std::vector<std::string> names;
  for (std::string_view name : cuda::KernelNames()) {
    // No operation: cuda_runs_test.cc has its claims.
    if (name != kStateHash) names.emplace_back(name);
  }
  return names;
}

/// Operation, and whether the vendor's libraries may take it.
using Parameter = std::tuple<std::string, bool>;

class GpuKernel : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    if (absl::IsUnavailable(GpuStatus())) GTEST_SKIP() << "no GPU: " << GpuStatus();
    ASSERT_TRUE(GpuStatus().ok()) << GpuStatus();
  }
  const std::string& op() const { return std::get<0>(GetParam()); }
  const KernelDevice& device() const { return GpuKernels(std::get<1>(GetParam())); }
};

std::string NameOf(const testing::TestParamInfo<Parameter>& info) {
  return std::get<0>(info.param) + (std::get<1>(info.param) ? "_with_libraries" : "_own");
}

TEST_P(GpuKernel, MatchesReferenceWithinDerivedBounds) { ExpectMatchesReference(device(), op()); }

TEST_P(GpuKernel, EqualRunsGiveEqualBits) { ExpectEqualRunsGiveEqualBits(device(), op(), /*runs=*/3); }

TEST_P(GpuKernel, SharedStorageGivesTheBitsOfSeparateStorage) { ExpectSharedStorageChangesNothing(device(), op()); }

TEST_P(GpuKernel, UnusedResultsChangeNoOther) { ExpectUnusedResultsChangeNoOther(device(), op()); }

INSTANTIATE_TEST_SUITE_P(Ops, GpuKernel, testing::Combine(testing::ValuesIn(CudaKernelNames()), testing::Bool()),
                         NameOf);

class GpuStateUpdate : public GpuKernel {};

TEST_P(GpuStateUpdate, InPlaceGivesTheBitsOfOutOfPlace) { ExpectInPlaceGivesTheBitsOfOutOfPlace(device(), op()); }

TEST_P(GpuStateUpdate, FalsePredicateLeavesStateBitsUnchanged) {
  ExpectFalsePredicateLeavesStateBitsUnchanged(device(), op());
}

class GpuRelu : public GpuKernel {};

TEST_P(GpuRelu, GivesNoNegativeZero) { ExpectReluGivesNoNegativeZero(device()); }

INSTANTIATE_TEST_SUITE_P(Ops, GpuRelu, testing::Combine(testing::Values(std::string("relu")), testing::Bool()), NameOf);

INSTANTIATE_TEST_SUITE_P(Ops, GpuStateUpdate,
                         testing::Combine(testing::ValuesIn(StateUpdates()), testing::Values(false)), NameOf);

TEST(GpuPackedAttention, GivesTheBitsOfAttentionOnOwnKernels) {
  if (absl::IsUnavailable(GpuStatus())) GTEST_SKIP() << "no GPU: " << GpuStatus();
  ASSERT_TRUE(GpuStatus().ok()) << GpuStatus();
  ExpectPackedAttentionGivesTheBitsOfAttention(GpuKernels(/*use_libraries=*/false));
}

/// Parts of a batch that begin inside the tensors.
TEST(GpuPackedAttention, GradientOfABatchInPartsMatchesTheReference) {
  if (absl::IsUnavailable(GpuStatus())) GTEST_SKIP() << "no GPU: " << GpuStatus();
  ASSERT_TRUE(GpuStatus().ok()) << GpuStatus();
  const Shape y = {4, 128, 32}, log_sum_exp = {4, 2, 128};
  op_cases::OpCase gradient{"packed_attention_grad/parts",
                            "packed_attention_grad",
                            {{"heads", 2}, {"scale", 0.25}, {"causal", true}},
                            {op_cases::Fixed(y), op_cases::Fixed({4, 128, 96}),
                             op_cases::Fixed(y, op_cases::Computed("packed_attention", 0, {1})),
                             op_cases::Fixed(log_sum_exp, op_cases::Computed("packed_attention", 1, {1}))},
                            {op_cases::F32({4, 128, 96})}};
  gradient.f32_operands = {3};
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const auto whole = GpuKernels(/*use_libraries=*/true).Create(SpecOf(gradient, dtype));
    ASSERT_TRUE(whole.ok()) << whole.status();
    const std::size_t all = (*whole)->workspace_bytes();
    const std::unique_ptr<KernelDevice> device = GpuKernelsWithin(all * 3 / 4);
    const auto in_parts = device->Create(SpecOf(gradient, dtype));
    ASSERT_TRUE(in_parts.ok()) << in_parts.status();
    EXPECT_LE((*in_parts)->workspace_bytes(), all * 3 / 4);
    EXPECT_GT((*in_parts)->workspace_bytes(), all / 8) << "mpc's own kernel takes much less";
    ExpectMatchesReference(*device, gradient, dtype);
  }
}

/// Operation, and the type that its cases run in.
using Choosing = std::tuple<std::string, DType>;

class GpuChoices : public testing::TestWithParam<Choosing> {};

/// Tuning takes the fastest, whatever it is.
TEST_P(GpuChoices, MatchTheReferenceWithinDerivedBounds) {
  if (absl::IsUnavailable(GpuStatus())) GTEST_SKIP() << "no GPU: " << GpuStatus();
  ASSERT_TRUE(GpuStatus().ok()) << GpuStatus();
  const auto& [op, type] = GetParam();
  std::size_t most = 0;
  ForEachCase(op, [&, type = type](const op_cases::OpCase& op_case, DType dtype) {
    if (dtype != type) return;
    const absl::StatusOr<std::vector<std::string>> choices = GpuCandidates(SpecOf(op_case, dtype));
    ASSERT_TRUE(choices.ok()) << choices.status();
    most = std::max(most, choices->size());
    for (const std::string& choice : *choices) {
      SCOPED_TRACE(choice);
      ExpectMatchesReference(*GpuKernelsChosen(choice), op_case, dtype);
    }
  });
  EXPECT_GT(most, 1u) << "nothing is ever chosen";
}

INSTANTIATE_TEST_SUITE_P(Ops, GpuChoices,
                         testing::Combine(testing::Values("matmul", "batch_matmul", "conv2d", "conv2d_grad_input",
                                                          "conv2d_grad_weight", "conv_transpose2d", "attention",
                                                          "attention_grad", "packed_attention",
                                                          "packed_attention_grad"),
                                          testing::Values(DType::kF16, DType::kBF16)),
                         [](const testing::TestParamInfo<Choosing>& info) {
                           return std::get<0>(info.param) + "_" + std::string(DTypeName(std::get<1>(info.param)));
                         });

/// A product that is computed in several blocks of rows, on copies with aligned rows, and the room that makes it so.
struct BlockedCase {
  std::string name;
  std::int64_t m, k, n;
  bool transpose_a, transpose_b, bias;
  std::size_t room;
};

class GpuBlockedProduct : public testing::TestWithParam<BlockedCase> {};

TEST_P(GpuBlockedProduct, MatchesTheReference) {
  if (absl::IsUnavailable(GpuStatus())) GTEST_SKIP() << "no GPU: " << GpuStatus();
  ASSERT_TRUE(GpuStatus().ok()) << GpuStatus();
  const auto& [name, m, k, n, transpose_a, transpose_b, bias, room] = GetParam();
  op_cases::OpCase product{"matmul/" + name,
                           "matmul",
                           {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                           {op_cases::Variable(transpose_a ? Shape{k, m} : Shape{m, k}),
                            op_cases::Variable(transpose_b ? Shape{n, k} : Shape{k, n},
                                               op_cases::Normal(0, 1 / std::sqrt(static_cast<double>(k))))},
                           {op_cases::F32({m, n})}};
  if (bias) product.operands.push_back(op_cases::Variable({n}));
  const std::unique_ptr<KernelDevice> device = GpuKernelsWithin(room);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const absl::StatusOr<std::unique_ptr<KernelDevice::Kernel>> kernel = device->Create(SpecOf(product, dtype));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_GT((*kernel)->workspace_bytes(), std::size_t{32} << 20) << "it has copies";
    ExpectMatchesReference(*device, product, dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, GpuBlockedProduct,
                         testing::Values(BlockedCase{"logits_with_bias", 1100, 1104, 1029, false, true, true,
                                                     2500 << 10},
                                         BlockedCase{"logits", 1100, 1104, 1029, false, true, false, 2500 << 10},
                                         BlockedCase{"grad_of_rows", 1100, 1029, 1104, false, false, false, 2500 << 10},
                                         BlockedCase{"grad_of_table", 1029, 136, 544, true, false, false, 100 << 10}),
                         [](const testing::TestParamInfo<BlockedCase>& info) { return info.param.name; });

}  // namespace
}  // namespace mpc::test
