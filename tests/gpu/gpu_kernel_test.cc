// Every case of the table, in every storage type, on the GPU of this machine: with the vendor's libraries and with the
// project's own kernels alone. Skipped where there is none.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "kernels/cuda/kernel.h"
#include "kernels/state_hash.h"
#include "tests/gpu/gpu_kernel_device.h"
#include "tests/kernels/kernel_checks.h"

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

}  // namespace
}  // namespace mpc::test
