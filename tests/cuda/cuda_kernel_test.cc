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
