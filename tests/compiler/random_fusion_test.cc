// Random training steps compute with regions, as the IR says them, what they do without. That generated code does what
// the regions say is another test's: codegen/random_regions_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/compiler/random_step.h"

namespace mpc::test {
namespace {

using reference::Tensor;

constexpr std::uint64_t kGraphs = 1000;

TEST(RandomFusion, StepsKeepTheirBits) {
  std::uint64_t regions = 0, operations = 0, finite_losses = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compiler::Module alone = FinalStep(seed, /*fusion=*/false), fused = FinalStep(seed, /*fusion=*/true);
    const std::map<std::string, Tensor> expected = Results(alone), actual = Results(fused);
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(expected.size(), actual.size());
    for (const auto& [name, value] : expected) {
      ASSERT_TRUE(actual.contains(name)) << name;
      ASSERT_TRUE(SameBits(value, actual.at(name))) << name << "\n" << alone.Print() << fused.Print();
    }
    finite_losses += std::isfinite(expected.at("loss").values[0]);
    for (FusionOp fusion : RegionsOf(fused)) {
      ++regions;
      operations += fusion.getBody().front().getOperations().size() - 1;
    }
  }
  // The comparison says something: losses are numbers, and regions are many and hold several operations.
  EXPECT_GT(finite_losses, kGraphs * 9 / 10);
  EXPECT_GT(regions, 2 * kGraphs);
  EXPECT_GT(operations, 3 * regions);
}

}  // namespace
}  // namespace mpc::test
