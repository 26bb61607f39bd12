// The GPU form of regions, run thread by thread on the host: it computes what the host's form does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/codegen/fusion_aliasing.h"
#include "tests/compiler/codegen/compiled_fusion.h"
#include "tests/compiler/codegen/emulated_fusion.h"
#include "tests/compiler/codegen/fusion_run.h"

namespace mpc::test {
namespace {

struct Shape {
  std::int64_t rows, columns;
};

// What one kind of region has to get right: vectors that rows are made of or not, rows of a few threads, of a warp, of
// a block, and too long for its registers; rows of one block and of many.
const std::vector<Shape>& Shapes() {
  static const auto* const shapes = new std::vector<Shape>{{2, 3},    {5, 7},    {32, 10},  {33, 84},   {17, 129},
                                                           {700, 24}, {2, 1000}, {3, 2051}, {2, 20000}, {2500, 3}};
  return *shapes;
}

constexpr const char* kTypes[] = {"f32", "f16", "bf16"};
constexpr std::uint64_t kSeeds[] = {0, 1, 77};

template <typename MakeCases, typename Check>
void ForEachRegion(const MakeCases& make, const Check& check) {
  for (const Shape& shape : Shapes()) {
    for (const char* type : kTypes) {
      for (const FusionCase& region : make(shape.rows, shape.columns, type)) {
        SCOPED_TRACE(region.name);
        check(region);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

std::vector<reference::Tensor> RunOnHost(const FusionCase& region, FusionOp fusion) {
  auto compiled = CompiledFusion::Create(fusion, HostTarget());
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return {};
  FusionOperands operands(region, fusion);
  GuardedBuffer workspace((*compiled)->workspace_bytes());
  (*compiled)->Run(operands.pointers(), workspace.data());
  return operands.Results();
}

std::vector<reference::Tensor> RunEmulated(const EmulatedFusion& compiled, FusionOperands& operands,
                                           std::uint64_t seed) {
  GuardedBuffer workspace(compiled.workspace_bytes());
  const absl::Status status = compiled.Run(operands.pointers(), workspace.data(), seed);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(workspace.GuardsAreWhole());
  operands.ExpectNothingElseWritten();
  return operands.Results();
}

void ExpectTheHostsResultsInEveryOrder(const FusionCase& region, const codegen::CodeTarget& target) {
  const ParsedFusion parsed(region);
  ASSERT_TRUE(parsed.fusion);
  const auto compiled = EmulatedFusion::Create(parsed.fusion, target);
  ASSERT_TRUE(compiled.ok()) << compiled.status() << "\n" << region.text();
  std::vector<reference::Tensor> first;
  for (std::uint64_t seed : kSeeds) {
    FusionOperands operands(region, parsed.fusion);
    const std::vector<reference::Tensor> results = RunEmulated(**compiled, operands, seed);
    if (first.empty()) first = results;
    ASSERT_NO_FATAL_FAILURE(ExpectEqualBits(results, first)) << "seed " << seed;
  }
  ASSERT_NO_FATAL_FAILURE(ExpectWithinBounds(region, first, RunOnHost(region, parsed.fusion)));
}

void ExpectTheHostsResults(const FusionCase& region) { ExpectTheHostsResultsInEveryOrder(region, EmulatedTarget()); }

TEST(GpuFusion, ElementsHaveTheBitsOfTheHost) { ForEachRegion(ElementwiseRegions, ExpectTheHostsResults); }

TEST(GpuFusion, ReductionsAreTheHostsButForTheOrderOfSums) { ForEachRegion(ReducingRegions, ExpectTheHostsResults); }

// Rows that begin anywhere in a vector, in registers and staged in shared memory, several of them a block. The space is
// a whole number of vectors, or of pairs.
TEST(GpuFusion, RowsThatAreNotAlignedHaveAnEdge) {
  codegen::CodeTarget target = EmulatedTarget();
  target.multiprocessors = 1;
  for (const Shape& shape : {Shape{8, 1001}, Shape{6, 1001}, Shape{33, 1000}, Shape{8, 257}, Shape{32, 16385},
                             Shape{20, 129}, Shape{17, 129}}) {
    for (const char* type : kTypes) {
      for (const FusionCase& region : ReducingRegions(shape.rows, shape.columns, type)) {
        const bool is_long = shape.columns > 16384;
        if (is_long && region.name.find("loss_and_gradient") == std::string::npos &&
            region.name.find("residual_layer_norm") == std::string::npos &&
            region.name.find("row_sum") == std::string::npos)
          continue;
        SCOPED_TRACE(region.name);
        ASSERT_NO_FATAL_FAILURE(ExpectTheHostsResultsInEveryOrder(region, target));
      }
    }
  }
}

// In bf16 both the row and the sums of its columns are in shared memory; in f32 of long rows the sums are in the
// workspace. An odd row has no vectors. Of the shortest rows two blocks fit a multiprocessor.
TEST(GpuFusion, LongRowsSumTheirColumns) {
  codegen::CodeTarget target = EmulatedTarget();
  target.multiprocessors = 2;
  for (const std::int64_t columns : {16392, 16390, 16385, 8208}) {
    for (const char* type : {"f32", "bf16"}) {
      for (const FusionCase& region : ReducingRegions(9, columns, type)) {
        if (region.name.find("layer_norm_grad") == std::string::npos) continue;
        SCOPED_TRACE(region.name);
        ASSERT_NO_FATAL_FAILURE(ExpectTheHostsResultsInEveryOrder(region, target));
      }
    }
  }
}

// Two rows of bf16 fit the shared memory of a multiprocessor, one of f32 is read again.
TEST(GpuFusion, LongRowsAreReadOnceWhereSharedMemoryHoldsThem) {
  const auto shared_bytes = [](const std::string& type, std::int64_t columns) {
    for (const FusionCase& region : ReducingRegions(8, columns, type)) {
      if (region.name.find("loss_and_gradient") == std::string::npos) continue;
      const ParsedFusion parsed(region);
      auto compiled = EmulatedFusion::Create(parsed.fusion, EmulatedTarget());
      EXPECT_TRUE(compiled.ok()) << compiled.status();
      return (*compiled)->stages().front().shared_bytes;
    }
    return 0u;
  };
  EXPECT_GT(shared_bytes("bf16", 50257), 2 * 50256u);
  EXPECT_LT(shared_bytes("bf16", 50257), 114u << 10);
  EXPECT_LT(shared_bytes("f32", 60000), 1024u);
}

TEST(GpuFusion, ResultsMayLieWhereOperandsDid) {
  const auto check = [](const FusionCase& region) {
    const ParsedFusion parsed(region);
    ASSERT_TRUE(parsed.fusion);
    auto plan = codegen::FusionPlan::create(parsed.fusion);
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    const auto compiled = EmulatedFusion::Create(parsed.fusion, EmulatedTarget());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    FusionOperands apart(region, parsed.fusion);
    const std::vector<reference::Tensor> expected = RunEmulated(**compiled, apart, 1);
    FusionOp fusion = parsed.fusion;
    const codegen::FusionAliasing aliasing(fusion, *plan);
    for (unsigned output = 0; output < fusion->getNumResults(); ++output) {
      for (unsigned input = 0; input < fusion->getNumOperands(); ++input) {
        if (!aliasing.mayAlias(output, input)) continue;
        FusionOperands shared(region, fusion);
        shared.Share(output, input);
        ASSERT_NO_FATAL_FAILURE(ExpectEqualBits(RunEmulated(**compiled, shared, 1), expected))
            << "result " << output << " over operand " << input;
      }
    }
  };
  for (const Shape& shape : {Shape{33, 84}, Shape{700, 24}, Shape{2, 20000}}) {
    for (const auto& make : {ElementwiseRegions, ReducingRegions}) {
      for (const FusionCase& region : make(shape.rows, shape.columns, "f32")) {
        SCOPED_TRACE(region.name);
        check(region);
      }
    }
  }
  // Rows and the sums of their columns are in shared memory.
  for (const FusionCase& region : ReducingRegions(9, 16392, "bf16")) {
    SCOPED_TRACE(region.name);
    check(region);
  }
}

}  // namespace
}  // namespace mpc::test
