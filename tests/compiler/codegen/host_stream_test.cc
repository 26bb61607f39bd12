// Results that are stored around the caches: which they are, and that this changes no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/fusion_emitter.h"
#include "compiler/codegen/object_code.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "tests/compiler/codegen/compiled_fusion.h"
#include "tests/compiler/codegen/fusion_run.h"

namespace mpc::test {
namespace {

/// Of the stores of a region's code, those around the caches and the others that take a whole vector.
struct Stores {
  int streamed = 0;
  int kept = 0;
  int fences = 0;
};

Stores StoresOf(const FusionCase& region, const codegen::CodeTarget& target) {
  const ParsedFusion parsed(region);
  EXPECT_TRUE(parsed.fusion) << region.text();
  llvm::LLVMContext context;
  llvm::Module module("region", context);
  auto code = codegen::emitFusion(parsed.fusion, "region", target, module);
  EXPECT_TRUE(static_cast<bool>(code)) << llvm::toString(code.takeError());
  Stores stores;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
        const bool is_vector = store->getValueOperand()->getType()->isVectorTy();
        const bool streamed = store->hasMetadata(llvm::LLVMContext::MD_nontemporal);
        stores.streamed += streamed;
        stores.kept += is_vector && !streamed;
        if (streamed) {
          const std::uint64_t bits = store->getValueOperand()->getType()->getPrimitiveSizeInBits();
          EXPECT_EQ(store->getAlign().value(), std::min<std::uint64_t>(64, bits / 8)) << "buffers begin at cache lines";
          EXPECT_FALSE(llvm::isa<llvm::TruncInst>(store->getValueOperand())) << "LLVM would forget how it is stored";
        }
      } else if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
        stores.fences += call->getIntrinsicID() == llvm::Intrinsic::x86_sse_sfence;
      }
    }
  }
  return stores;
}

// `op` of elements of type `type` and another operand.
FusionCase Elementwise(const std::string& op, std::int64_t rows, std::int64_t columns, std::int64_t other_columns,
                       const std::string& type) {
  const std::string whole = absl::StrCat("tensor<", rows, "x", columns, "x", type, ">");
  const std::string other = absl::StrCat("tensor<", rows, "x", other_columns, "x", type, ">");
  FusionCase region;
  region.name = op;
  region.operands = {{whole}, {other}};
  region.body = absl::StrCat("    %r0 = mpc.", op, " %a0, %a1 : (", whole, ", ", other, ") -> ", whole, "\n");
  region.results = {whole};
  return region;
}

FusionCase Sum(std::int64_t rows, std::int64_t columns, const std::string& type) {
  return Elementwise("add", rows, columns, columns, type);
}

// One value a row, so that rows stay rows.
FusionCase RowScale(std::int64_t rows, std::int64_t columns, const std::string& type) {
  return Elementwise("mul", rows, columns, 1, type);
}

// A last-level cache that holds a result of 256 x 4096 elements and none of 4096 x 4096.
codegen::CodeTarget CachingTarget() {
  codegen::CodeTarget target = HostTarget();
  target.cache_bytes = 32 << 20;
  return target;
}

TEST(HostStream, TakesWhatMovesMoreThanTheLastLevelCacheHolds) {
  const codegen::CodeTarget target = CachingTarget();
  for (const char* type : {"f32", "bf16"}) {
    SCOPED_TRACE(type);
    const Stores large = StoresOf(Sum(4096, 4096, type), target);
    EXPECT_GT(large.streamed, 0);
    EXPECT_EQ(large.kept, 0) << "rows are made of vectors";
    EXPECT_EQ(large.fences, 1) << "before another thread may be told of them";
    const Stores small = StoresOf(Sum(256, 4096, type), target);
    EXPECT_EQ(small.streamed, 0);
    EXPECT_GT(small.kept, 0);
    EXPECT_EQ(small.fences, 0);
  }
}

// A vector of 16-bit elements is two of f32.
TEST(HostStream, AlignsWideStoresAsBuffersAre) {
  const std::string low = "tensor<4096x4096xbf16>", wide = "tensor<4096x4096xf32>";
  FusionCase region;
  region.name = "cast";
  region.operands = {{low}};
  region.body = absl::StrCat("    %r0 = mpc.cast %a0 : (", low, ") -> ", wide, "\n");
  region.results = {wide};
  EXPECT_GT(StoresOf(region, CachingTarget()).streamed, 0);
}

// GPT-2's vocabulary: no row but the first begins at a cache line.
TEST(HostStream, ShiftsRowsThatBeginAnywhere) {
  const codegen::CodeTarget target = CachingTarget();
  for (const char* type : {"f32", "f16", "bf16"}) {
    EXPECT_EQ(StoresOf(RowScale(1024, 50257, type), target).streamed > 0, target.vector_bits == 512) << type;
  }
}

// `op` of two inputs, stored and then normalised.
FusionCase ThenLayerNorm(const std::string& op) {
  const std::string whole = "tensor<64x4096xf32>", row = "tensor<64xf32>", column = "tensor<4096xf32>";
  FusionCase region;
  region.name = op + "_layer_norm";
  region.operands = {{whole}, {whole}, {column}};
  region.body = absl::StrCat("    %r0 = mpc.", op, " %a0, %a1 : (", whole, ", ", whole, ") -> ", whole,
                             "\n    %r1, %m, %i = mpc.layer_norm %r0, %a2, %a2 {epsilon = 1.0e-5 : f32} : (", whole,
                             ", ", column, ", ", column, ") -> (", whole, ", ", row, ", ", row, ")\n");
  region.results = {whole, whole};
  return region;
}

TEST(HostStream, KeepsWhatALaterPhaseReadsBack) {
  const Stores stores = StoresOf(ThenLayerNorm("div"), StreamedTarget());
  EXPECT_GT(stores.streamed, 0) << "the normalised rows";
  EXPECT_GT(stores.kept, 0) << "the quotients, which two phases read again";
}

TEST(HostStream, AddsAgainWhatItStoresLast) {
  const Stores stores = StoresOf(ThenLayerNorm("add"), StreamedTarget());
  EXPECT_GT(stores.streamed, 1);
  EXPECT_EQ(stores.kept, 0);
}

// Rows of every offset, of whole vectors and of less than what is shifted.
TEST(HostStream, ChangesNoBit) {
  for (const auto& [rows, columns] : {std::pair{137, 65}, {20, 128}, {33, 1037}, {3, 20001}}) {
    for (const char* type : {"f32", "f16", "bf16"}) {
      for (const auto& make : {ElementwiseRegions, ReducingRegions}) {
        for (const FusionCase& region : make(rows, columns, type)) {
          SCOPED_TRACE(region.name);
          const ParsedFusion parsed(region);
          if (!parsed.fusion) continue;
          std::vector<std::vector<reference::Tensor>> results;
          for (const codegen::CodeTarget& target : {HostTarget(), StreamedTarget()}) {
            auto compiled = CompiledFusion::Create(parsed.fusion, target);
            ASSERT_TRUE(compiled.ok()) << compiled.status();
            FusionOperands operands(region, parsed.fusion);
            std::vector<double> workspace((*compiled)->workspace_bytes() / sizeof(double) + 1);
            (*compiled)->Run(operands.pointers(), workspace.data());
            operands.ExpectNothingElseWritten();
            results.push_back(operands.Results());
          }
          ExpectEqualBits(results[1], results[0]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace mpc::test
