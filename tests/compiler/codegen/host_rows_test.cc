// What the host does with a row beyond its phases: an element that has a label is stepped over elsewhere, and the terms
// of a softmax are computed once.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/fusion_emitter.h"
#include "llvm/IR/IntrinsicInst.h"
#include "tests/compiler/codegen/compiled_fusion.h"
#include "tests/compiler/codegen/fusion_run.h"

namespace mpc::test {
namespace {

using Floats = std::vector<float>;

// Whole vectors of both widths, a tail, one vector and less.
constexpr int kClasses[] = {64, 41, 16, 5};

FusionCase LossWithGradient(int rows, int classes) {
  const std::string logits = absl::StrCat("tensor<", rows, "x", classes, "xf32>");
  const std::string row = absl::StrCat("tensor<", rows, "xf32>"), labels = absl::StrCat("tensor<", rows, "xi32>");
  FusionCase region;
  region.name = "loss_with_gradient";
  region.operands = {{logits}, {labels}, {row}};
  region.body = absl::StrCat("    %r0, %r1 = mpc.softmax_cross_entropy %a0, %a1 {reduction = \"none\"} : (", logits,
                             ", ", labels, ") -> (", row, ", ", row, ")\n",
                             "    %r2 = mpc.softmax_cross_entropy_grad %a2, %a0, %a1, %r1 {reduction = \"none\"} : (",
                             row, ", ", logits, ", ", labels, ", ", row, ") -> ", logits, "\n");
  region.results = {row, row, logits};
  return region;
}

struct LossResults {
  Floats loss, log_sum_exp, gradient;
};

// Row r has the label r + first_label; its cotangent is 1.
LossResults RunLoss(const CompiledFusion& compiled, const Floats& logits, int rows, int first_label) {
  std::vector<std::int32_t> labels(rows);
  for (int r = 0; r < rows; ++r) labels[r] = r + first_label;
  const Floats ones(rows, 1.0f);
  LossResults results{Floats(rows), Floats(rows), Floats(logits.size())};
  std::vector<std::pair<const void*, std::size_t>> inputs = {
      {logits.data(), logits.size() * 4}, {labels.data(), labels.size() * 4}, {ones.data(), ones.size() * 4}};
  std::vector<GuardedBuffer> buffers;
  for (const auto& [data, bytes] : inputs) std::memcpy(buffers.emplace_back(bytes).data(), data, bytes);
  for (const Floats* result : {&results.loss, &results.log_sum_exp, &results.gradient}) {
    buffers.emplace_back(result->size() * sizeof(float));
  }
  std::vector<void*> operands;
  for (GuardedBuffer& buffer : buffers) operands.push_back(buffer.data());
  std::vector<double> workspace(compiled.workspace_bytes() / sizeof(double) + 1);
  compiled.Run(operands.data(), workspace.data());
  for (const GuardedBuffer& buffer : buffers) EXPECT_TRUE(buffer.GuardsAreWhole());
  std::size_t next = inputs.size();
  for (Floats* result : {&results.loss, &results.log_sum_exp, &results.gradient}) {
    std::memcpy(result->data(), buffers[next++].data(), result->size() * sizeof(float));
  }
  return results;
}

// Each class is the label of a row; two rows on either side have one that is no class.
TEST(HostRows, TheLabelIsFoundWhereverItIs) {
  for (const codegen::CodeTarget& target : {HostTarget(), NarrowTarget(), StreamedTarget()}) {
    for (const int classes : kClasses) {
      SCOPED_TRACE(classes);
      const int rows = classes + 4;
      const FusionCase region = LossWithGradient(rows, classes);
      const ParsedFusion parsed(region);
      ASSERT_TRUE(parsed.fusion);
      auto compiled = CompiledFusion::Create(parsed.fusion, target);
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      Floats logits(rows * classes);
      for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = 0.01f * static_cast<float>(i * 7919 % 701);
      const LossResults ours = RunLoss(**compiled, logits, rows, -2);
      // Without a label the gradient is the softmax.
      const LossResults none = RunLoss(**compiled, logits, rows, classes);
      for (int r = 0; r < rows; ++r) {
        const int label = r - 2;
        const bool is_class = label >= 0 && label < classes;
        if (is_class) {
          EXPECT_EQ(ours.loss[r], ours.log_sum_exp[r] - logits[r * classes + label]) << r;
        } else {
          EXPECT_TRUE(std::isnan(ours.loss[r])) << r;
        }
        for (int c = 0; c < classes; ++c) {
          const int i = r * classes + c;
          ASSERT_EQ(ours.gradient[i], c == label ? none.gradient[i] - 1 : none.gradient[i]) << r << ", " << c;
        }
      }
    }
  }
}

FusionCase SoftmaxRegion(const std::string& whole) {
  FusionCase region;
  region.name = "softmax";
  region.operands = {{whole}};
  region.body = absl::StrCat("    %r0 = mpc.softmax %a0 {axis = -1 : i64} : (", whole, ") -> ", whole, "\n");
  region.results = {whole};
  return region;
}

// Blocks that store around the caches, which the last phase alone does, and those of them that compute exponentials.
struct LastPhase {
  int blocks = 0;
  int with_exponentials = 0;
};

LastPhase LastPhaseOfSoftmax(int columns, const std::string& type) {
  const FusionCase region = SoftmaxRegion(absl::StrCat("tensor<64x", columns, "x", type, ">"));
  const ParsedFusion parsed(region);
  EXPECT_TRUE(parsed.fusion) << region.text();
  llvm::LLVMContext context;
  llvm::Module module("region", context);
  auto code = codegen::emitFusion(parsed.fusion, "region", StreamedTarget(), module);
  EXPECT_TRUE(static_cast<bool>(code)) << llvm::toString(code.takeError());
  LastPhase phase;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      bool streams = false, computes = false;
      for (llvm::Instruction& instruction : block) {
        streams |= instruction.hasMetadata(llvm::LLVMContext::MD_nontemporal);
        const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        computes |= call && call->getIntrinsicID() == llvm::Intrinsic::fma;
      }
      phase.blocks += streams;
      phase.with_exponentials += streams && computes;
    }
  }
  return phase;
}

TEST(HostRows, SoftmaxComputesItsExponentialsOnce) {
  for (const char* type : {"f32", "bf16"}) {
    const LastPhase kept = LastPhaseOfSoftmax(4096, type), again = LastPhaseOfSoftmax(32768, type);
    EXPECT_GT(kept.blocks, 0) << type;
    EXPECT_EQ(kept.with_exponentials, 0) << type;
    EXPECT_EQ(again.with_exponentials, again.blocks) << "rows that are too long to be kept: " << type;
  }
}

/// The softmax of two rows whose element c is `value(c)`.
Floats SoftmaxOfTwoRows(int columns, const std::function<float(int)>& value) {
  const std::string whole = absl::StrCat("tensor<2x", columns, "xf32>");
  const FusionCase region = SoftmaxRegion(whole);
  const ParsedFusion parsed(region);
  auto compiled = CompiledFusion::Create(parsed.fusion, HostTarget());
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  GuardedBuffer x(2 * columns * sizeof(float)), y(2 * columns * sizeof(float));
  for (int i = 0; i < 2 * columns; ++i) static_cast<float*>(x.data())[i] = value(i % columns);
  void* operands[] = {x.data(), y.data()};
  (*compiled)->Run(operands, nullptr);
  EXPECT_TRUE(y.GuardsAreWhole());
  const float* first = static_cast<const float*>(y.data());
  return Floats(first, first + 2 * columns);
}

// Rows of a length up to which terms are kept, with a tail, and longer ones that begin with the same elements: what is
// not 0 lies where both add it in one order.
TEST(HostRows, KeptTermsAreThoseComputedAgain) {
  constexpr int kShort = 16 * 1024 - 3, kLong = kShort + 64;
  const auto value = [](int c) {
    if (c == 0) return 0.0f;
    return c < kShort && c % 64 == 5 ? -1 - 0.01f * static_cast<float>(c / 64) : -100.0f;
  };
  const Floats kept = SoftmaxOfTwoRows(kShort, value), again = SoftmaxOfTwoRows(kLong, value);
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < kShort; ++c) ASSERT_EQ(kept[r * kShort + c], again[r * kLong + c]) << r << ", " << c;
  }
}

}  // namespace
}  // namespace mpc::test
