// How a region is visited: what is fetched ahead of the next row, and where vectors come in pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/fusion_emitter.h"
#include "compiler/codegen/host_schedule.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "tests/compiler/codegen/compiled_fusion.h"
#include "tests/compiler/codegen/fusion_run.h"

namespace mpc::test {
namespace {

/// Of a region's code: instructions that fetch ahead, and the loops that have any.
struct Fetches {
  int instructions = 0;
  std::set<const llvm::BasicBlock*> loops;
};

/// `operation` with its attributes, over `rows` rows of 4096.
Fetches FetchesOf(const std::string& operation, const std::string& type, int rows = 64) {
  FusionCase region;
  const std::string whole = absl::StrCat("tensor<", rows, "x4096x", type, ">");
  region.name = "region";
  region.operands = {{whole}};
  const std::size_t name_end = std::min(operation.find(' '), operation.size());
  region.body = absl::StrCat("    %r0 = mpc.", operation.substr(0, name_end), " %a0", operation.substr(name_end),
                             " : (", whole, ") -> ", whole, "\n");
  region.results = {whole};
  const ParsedFusion parsed(region);
  EXPECT_TRUE(parsed.fusion) << region.text();
  llvm::LLVMContext context;
  llvm::Module module("region", context);
  auto code = codegen::emitFusion(parsed.fusion, "region", StreamedTarget(), module);
  EXPECT_TRUE(static_cast<bool>(code)) << llvm::toString(code.takeError());
  Fetches fetches;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (!call || call->getIntrinsicID() != llvm::Intrinsic::prefetch) continue;
      ++fetches.instructions;
      fetches.loops.insert(call->getParent());
    }
  }
  return fetches;
}

// Largest, sum, results: the second loop has four vectors of f32, which are half of four cache lines or, in 16 bits,
// of two; the third one vector.
TEST(HostPhases, FetchHalfOfTheRowBelowEach) {
  if (HostTarget().vector_bits != 512) GTEST_SKIP() << "vectors are not cache lines";
  const Fetches wide = FetchesOf("softmax {axis = -1 : i64}", "f32");
  EXPECT_EQ(wide.loops.size(), 2u);
  EXPECT_EQ(wide.instructions, 2 + 1);
  const Fetches low = FetchesOf("softmax {axis = -1 : i64}", "bf16");
  EXPECT_EQ(low.loops.size(), 2u);
  EXPECT_EQ(low.instructions, 1 + 1);
}

// One phase: a cache line of what is read for each that is computed, where there is more than a core's cache holds.
TEST(HostPhases, FetchAheadWhereThereIsOne) {
  if (HostTarget().vector_bits != 512) GTEST_SKIP() << "vectors are not cache lines";
  EXPECT_EQ(FetchesOf("tanh", "f32").instructions, 2) << "two vectors are computed together";
  EXPECT_EQ(FetchesOf("tanh", "bf16", 128).instructions, 1) << "which are one line";
  EXPECT_EQ(FetchesOf("tanh", "f32", 16).instructions, 0) << "half a MiB";
  EXPECT_EQ(FetchesOf("tanh", "bf16").instructions, 0) << "one MiB, read and written";
}

// Lanes of a region that adds the columns of the sum of `inputs` tensors, 1 or 2.
unsigned LanesOfColumnSums(int inputs, const std::string& type) {
  FusionCase region;
  const std::string whole = absl::StrCat("tensor<4096x64x", type, ">"), column = absl::StrCat("tensor<64x", type, ">");
  region.name = "column_sums";
  for (int i = 0; i < inputs; ++i) region.operands.push_back({whole});
  region.body = absl::StrCat("    %s = mpc.add %a0, %a", inputs - 1, " : (", whole, ", ", whole, ") -> ", whole,
                             "\n    %r0 = mpc.reduce_sum %s {axes = array<i64: 0>} : (", whole, ") -> ", column, "\n");
  region.results = {column};
  const ParsedFusion parsed(region);
  EXPECT_TRUE(parsed.fusion) << region.text();
  const codegen::FusionPlan plan = llvm::cantFail(codegen::FusionPlan::create(parsed.fusion));
  return codegen::HostSchedule::create(parsed.fusion, plan, HostTarget()).lanes;
}

TEST(HostPhases, VisitsToColumnsComeInPairsWhereTheyReadFewPlaces) {
  if (HostTarget().vector_bits != 512) GTEST_SKIP() << "pairs hide what narrower vectors do not have";
  EXPECT_EQ(LanesOfColumnSums(1, "f32"), 32u);
  EXPECT_EQ(LanesOfColumnSums(2, "f32"), 16u);
  EXPECT_EQ(LanesOfColumnSums(2, "bf16"), 32u);
}

}  // namespace
}  // namespace mpc::test
