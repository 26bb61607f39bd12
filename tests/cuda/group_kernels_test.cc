// Many instructions in one launch give the bits of one launch each, whatever their shapes, however many there are.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda/kernel.h"
#include "tests/cuda/emulated_kernel_device.h"
#include "tests/kernels/group_checks.h"

namespace mpc::test {
namespace {

std::vector<std::string> GroupedNames() {
  std::vector<std::string> names;
  for (std::string_view name : cuda::KernelNames()) {
    if (cuda::MayGroup(name)) names.emplace_back(name);
  }
  return names;
}

class GroupKernel : public testing::TestWithParam<std::string> {};

TEST_P(GroupKernel, GivesTheBitsOfSingleLaunches) {
  ExpectGroupsGiveTheBitsOfSingleKernels(EmulatedKernels(), GetParam());
}

TEST_P(GroupKernel, TakesMoreTensorsThanOneLaunchHolds) { ExpectAGroupTakes(EmulatedKernels(), GetParam(), 150); }

INSTANTIATE_TEST_SUITE_P(Ops, GroupKernel, testing::ValuesIn(GroupedNames()),
                         [](const auto& info) { return info.param; });

TEST(GroupKernels, OfOptimizersAndAccumulationExist) {
  for (const char* op : {"sgd", "momentum", "adam", "adam_weight_decay", "adamw", "lamb", "accumulate_gradient"}) {
    EXPECT_TRUE(cuda::MayGroup(op)) << op;
  }
  EXPECT_FALSE(cuda::CreateGroupKernel({}, EmulatedContext()).ok());
}

}  // namespace
}  // namespace mpc::test
