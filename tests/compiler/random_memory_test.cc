// Random training steps keep their bits where values are computed again and where operations move, and moving them
// never raises the peak.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "compiler/dialect/operation_attributes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/memory/memory_schedule.h"
#include "passes/passes.h"
#include "tests/compiler/random_step.h"

namespace mpc::test {
namespace {

using reference::Tensor;

constexpr std::uint64_t kGraphs = 300;

void ExpectSameResults(const std::map<std::string, Tensor>& expected, compiler::Module& module) {
  const std::map<std::string, Tensor> actual = Results(module);
  ASSERT_EQ(expected.size(), actual.size());
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    ASSERT_TRUE(SameBits(value, actual.at(name))) << name << "\n" << module.Print();
  }
}

unsigned RecomputedIn(mlir::func::FuncOp step) {
  unsigned count = 0;
  step.walk([&](mlir::Operation* op) { count += dialectOf(op).getRecomputedAttrHelper().isAttrPresent(op); });
  return count;
}

TEST(RandomMemory, RecomputationKeepsTheBits) {
  unsigned recomputed = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compiler::Module module = FinalStep(seed, /*fusion=*/seed % 2 == 0);
    const std::map<std::string, Tensor> expected = Results(module);
    mlir::func::FuncOp step = StepOf(module);
    mlir::PassManager manager(step.getContext());
    // Few, many, and then whole Cells.
    RecomputePassOptions options;
    options.candidates = 1 + static_cast<std::int64_t>(seed % 40);
    manager.addNestedPass<mlir::func::FuncOp>(createRecomputePass(options));
    ASSERT_TRUE(succeeded(manager.run(step->getParentOfType<mlir::ModuleOp>())));
    recomputed += RecomputedIn(step);
    ExpectSameResults(expected, module);
  }
  // The comparison says something.
  EXPECT_GT(recomputed, kGraphs);
}

TEST(RandomMemory, AnotherOrderKeepsTheBitsAndLowersThePeak) {
  unsigned moved = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compiler::Module module = FinalStep(seed, /*fusion=*/seed % 2 == 0);
    const std::map<std::string, Tensor> expected = Results(module);
    mlir::Block& body = StepOf(module).getBody().front();
    const std::int64_t before = MemorySchedule(body, {}).peakBytes();
    MemorySchedule schedule(body, {});
    const bool improved = schedule.improve();
    EXPECT_EQ(improved, schedule.peakBytes() < before);
    if (!improved) continue;
    ++moved;
    schedule.apply();
    ASSERT_TRUE(succeeded(mlir::verify(StepOf(module))));
    MemorySchedule again(body, {});
    EXPECT_EQ(again.peakBytes(), schedule.peakBytes());
    EXPECT_FALSE(again.improve());
    ExpectSameResults(expected, module);
  }
  EXPECT_GT(moved, kGraphs / 20);
}

}  // namespace
}  // namespace mpc::test
