// Regions of random training steps compute what their operations do.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/interpreter/interpreter.h"
#include "compiler/module_impl.h"
#include "passes/fusion/unfuse.h"
#include "tests/compiler/isolated_region.h"
#include "tests/compiler/random_graph.h"
#include "tests/compiler/random_step.h"

namespace mpc::test {
namespace {

using reference::Tensor;

constexpr std::uint64_t kGraphs = 1000;

/// A step at its setting, at the end of the passes. Every fifth has images, too.
compiler::Module FinalStep(std::uint64_t seed, bool fusion) {
  compiler::Module module = seed % 5 == 4 ? MakeRandomGraph(seed) : MakeRandomFusibleGraph(seed);
  mlir::ScopedDiagnosticHandler quiet(module.impl().context.get(), [](mlir::Diagnostic& diagnostic) {
    return mlir::success(diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error);
  });
  // seed / 5: levels and kinds of graphs meet in every way.
  EXPECT_TRUE(
      mlir::succeeded(RunPipeline(*module.impl().module, SettingOf(seed / 5), /*layout=*/seed % 2 == 0, fusion)));
  return module;
}

std::vector<FusionOp> RegionsOf(compiler::Module& module) {
  std::vector<FusionOp> regions;
  for (FusionOp fusion : StepOf(module).getOps<FusionOp>()) regions.push_back(fusion);
  return regions;
}

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

/// What is asked of a region that stands alone, on values that reach every branch of its operations.
void CheckRegion(const IsolatedRegion& region, std::uint64_t seed) {
  const std::vector<Tensor> inputs = region.RandomInputs(seed);
  const absl::StatusOr<std::vector<Tensor>> fused = interpret(region.function(), inputs);
  ASSERT_TRUE(fused.ok()) << fused.status();
  IsolatedRegion apart(region.fusion());
  unfuse(apart.fusion());
  const absl::StatusOr<std::vector<Tensor>> expected = interpret(apart.function(), inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (std::size_t i = 0; i < expected->size(); ++i) EXPECT_TRUE(SameBits((*expected)[i], (*fused)[i])) << i;
}

TEST(RandomFusion, RegionsComputeWhatTheirOperationsDo) {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compiler::Module fused = FinalStep(seed, /*fusion=*/true);
    for (FusionOp fusion : RegionsOf(fused)) CheckRegion(IsolatedRegion(fusion), seed);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace mpc::test
