// Every case of the table, in every storage type: the CUDA kernels, run in the emulation, against the reference. One
// operation alone, and one claim of it:
//   cuda_kernel_test --gtest_filter='*/softmax'
//   cuda_kernel_test --gtest_filter='*MatchesReference*/softmax'
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cuda/kernel.h"
#include "kernels/state_hash.h"
#include "tests/cuda/emulated_kernel_device.h"
#include "tests/cuda_emulation/emulator.h"
#include "tests/kernels/attention_checks.h"
#include "tests/kernels/gradient_scaling_checks.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

std::vector<std::string> CudaKernelNames() {
  std::vector<std::string> names;
  for (std::string_view name : cuda::KernelNames()) {
    // No operation: map_kernels_test has its claims.
    if (name != kStateHash) names.emplace_back(name);
  }
  return names;
}

class CudaKernel : public testing::TestWithParam<std::string> {
 protected:
  ~CudaKernel() override { emulation::SetOptions({}); }
};

TEST_P(CudaKernel, MatchesReferenceWithinDerivedBounds) { ExpectMatchesReference(EmulatedKernels(), GetParam()); }

TEST_P(CudaKernel, AnyOrderOfThreadsGivesEqualBits) {
  ExpectEqualRunsGiveEqualBits(EmulatedKernels(), GetParam(), /*runs=*/3,
                               [](int run) { emulation::SetOptions({static_cast<std::uint64_t>(run)}); });
}

TEST_P(CudaKernel, SharedStorageGivesTheBitsOfSeparateStorage) {
  ExpectSharedStorageChangesNothing(EmulatedKernels(), GetParam());
}

TEST_P(CudaKernel, UnusedResultsChangeNoOther) { ExpectUnusedResultsChangeNoOther(EmulatedKernels(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Ops, CudaKernel, testing::ValuesIn(CudaKernelNames()),
                         [](const auto& info) { return info.param; });

class CudaStateUpdate : public CudaKernel {};

TEST_P(CudaStateUpdate, InPlaceGivesTheBitsOfOutOfPlace) {
  ExpectInPlaceGivesTheBitsOfOutOfPlace(EmulatedKernels(), GetParam());
}

TEST_P(CudaStateUpdate, FalsePredicateLeavesStateBitsUnchanged) {
  ExpectFalsePredicateLeavesStateBitsUnchanged(EmulatedKernels(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaStateUpdate, testing::ValuesIn(StateUpdates()),
                         [](const auto& info) { return info.param; });

TEST(CudaPackedAttention, GivesTheBitsOfAttention) { ExpectPackedAttentionGivesTheBitsOfAttention(EmulatedKernels()); }

TEST(CudaSort, TakesNoMoreWorkspaceThanThereIs) {
  cuda::KernelContext context = EmulatedContext();
  const TensorSpec x{DType::kF32, {30, 5000, 40}};
  const KernelSpec sort{"sort", {x}, {x, {DType::kI32, x.shape}}, {}, {{"axis", std::int64_t{1}}}};
  // 8,192 keys of 8 bytes a line.
  constexpr std::size_t kLine = 8192 * 8;
  for (const std::size_t lines : {std::size_t{1}, std::size_t{39}, std::size_t{100}, std::size_t{264}}) {
    context.workspace_cap = lines * kLine + 100;
    const auto kernel = EmulatedKernelsIn(context)->Create(sort);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_LE((*kernel)->workspace_bytes(), context.workspace_cap);
    EXPECT_GE((*kernel)->workspace_bytes(), lines / 40 * 40 * kLine);
  }
  // A line that does not fit is sorted all the same.
  context.workspace_cap = 0;
  for (const char* op : {"sort", "top_k"}) ExpectMatchesReference(*EmulatedKernelsIn(context), op);
}

TEST(CudaRelu, GivesNoNegativeZero) { ExpectReluGivesNoNegativeZero(EmulatedKernels()); }

TEST(CudaOptimizers, UnscaleAndClipAsTheOperationsOfTheirOwn) {
  for (const char* op : {"sgd", "momentum", "adam", "adam_weight_decay", "adamw", "lamb"}) {
    ExpectFoldedScalingGivesTheBitsOfSeparateOperations(EmulatedKernels(), op);
  }
}

TEST(CudaKernels, EveryReferenceOperationHasOne) {
  const std::vector<std::string_view> references = reference::Names();
  EXPECT_EQ(CudaKernelNames(), std::vector<std::string>(references.begin(), references.end()));
}

}  // namespace
}  // namespace mpc::test
