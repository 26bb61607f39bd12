#include "tests/compiler/codegen/fusion_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/fusion_aliasing.h"
#include "tests/compiler/codegen/compiled_fusion.h"
#include "tests/compiler/codegen/operation_check.h"
#include "tests/compiler/op_case_module.h"
#include "tests/compiler/operation_case.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

using Order = CompiledFusion::Order;
using reference::Tensor;

// Integers are classes, of which there are at least ten where a test has any.
Bits Draw(const TensorSpec& spec, std::mt19937& generator) {
  std::normal_distribution<double> normal;
  Tensor tensor{spec, {}};
  for (std::int64_t i = 0; i < spec.num_elements(); ++i) {
    const double drawn = normal(generator);
    const double value = spec.dtype == DType::kBool ? (drawn > 0 ? 1 : 0) : IsFloating(spec.dtype) ? drawn : i % 10;
    tensor.values.push_back(reference::RoundTo(spec.dtype, value));
  }
  Bits bits(spec.bytes());
  reference::ToStorage(tensor, bits.data());
  return bits;
}

class FusionCheck {
 public:
  FusionCheck(FusionOp fusion, const CompiledFusion& region) : fusion_(fusion), region_(region) {
    std::mt19937 generator(1);
    for (mlir::Value argument : body().getArguments()) inputs_.push_back(Draw(SpecOf(argument), generator));
    yielded_ = llvm::to_vector(body().getTerminator()->getOperands());
  }

  void ExpectOrdersAgree() {
    outputs_ = Run(Order::kForward);
    EXPECT_EQ(Run(Order::kReverse), outputs_) << "in reverse";
    EXPECT_EQ(Run(Order::kTwoThreads), outputs_) << "on two threads";
  }

  void ExpectAliasesChangeNothing(int expected) {
    codegen::FusionPlan plan = llvm::cantFail(codegen::FusionPlan::create(fusion_));
    const codegen::FusionAliasing aliasing(fusion_, plan);
    int found = 0;
    for (unsigned output = 0; output < yielded_.size(); ++output) {
      for (unsigned input = 0; input < inputs_.size(); ++input) {
        if (!aliasing.mayAlias(output, input)) continue;
        ++found;
        EXPECT_EQ(Run(Order::kForward, std::pair(output, input)), outputs_) << output << " over " << input;
      }
    }
    if (expected >= 0) {
      EXPECT_EQ(found, expected);
    }
  }

  void ExpectItsOperations() {
    EXPECT_EQ(ExpectOperations(fusion_, inputs_, outputs_), 0) << "the test yields too little";
  }

 private:
  mlir::Block& body() { return fusion_.getBody().front(); }

  std::vector<Bits> Run(Order order, std::optional<std::pair<unsigned, unsigned>> alias = std::nullopt) {
    std::vector<GuardedBuffer> buffers;
    for (const Bits& input : inputs_) {
      buffers.emplace_back(input.size());
      std::memcpy(buffers.back().data(), input.data(), input.size());
    }
    for (mlir::Value value : yielded_) buffers.emplace_back(SpecOf(value).bytes());
    GuardedBuffer workspace(region_.workspace_bytes());
    std::vector<void*> operands;
    for (GuardedBuffer& buffer : buffers) operands.push_back(buffer.data());
    if (alias) operands[inputs_.size() + alias->first] = buffers[alias->second].data();
    region_.Run(operands.data(), workspace.data(), order);

    EXPECT_TRUE(workspace.GuardIntact());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_TRUE(buffers[i].GuardIntact()) << "buffer " << i;
      const bool is_input = i < inputs_.size() && (!alias || alias->second != i);
      if (is_input) {
        EXPECT_EQ(buffers[i].Bits(), inputs_[i]) << "input " << i;
      }
    }
    std::vector<Bits> outputs;
    for (std::size_t i = 0; i < yielded_.size(); ++i) {
      const bool aliased = alias && alias->first == i;
      outputs.push_back(buffers[aliased ? alias->second : inputs_.size() + i].Bits());
    }
    return outputs;
  }

  FusionOp fusion_;
  const CompiledFusion& region_;
  std::vector<Bits> inputs_;
  llvm::SmallVector<mlir::Value> yielded_;
  std::vector<Bits> outputs_;
};

}  // namespace

void ExpectRegionIsItsOperations(std::string_view text, const codegen::CodeTarget& target, int aliases) {
  auto module = ParseModule(ThreadContext(), text);
  ASSERT_TRUE(module) << text;
  FusionOp fusion;
  module->walk([&](FusionOp op) { fusion = op; });
  ASSERT_TRUE(fusion);
  auto region = CompiledFusion::Create(fusion, target);
  ASSERT_TRUE(region.ok()) << region.status();
  FusionCheck check(fusion, **region);
  check.ExpectOrdersAgree();
  check.ExpectAliasesChangeNothing(aliases);
  check.ExpectItsOperations();
}

}  // namespace mpc::test
