#include "tests/compiler/codegen/region_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/dialect/attribute_conversion.h"
#include "tests/compiler/codegen/compiled_region.h"
#include "tests/compiler/op_case_module.h"
#include "tests/kernels/acceptance.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/error_bounds.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

using Bits = std::vector<std::uint8_t>;
using Order = CompiledRegion::Order;
using reference::Tensor;

TensorSpec SpecOf(mlir::Value value) { return toTensorSpec(mlir::cast<mlir::RankedTensorType>(value.getType())); }

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

class RegionCheck {
 public:
  RegionCheck(FusionOp fusion, const CompiledRegion& region) : fusion_(fusion), region_(region) {
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
    codegen::RegionPlan plan = llvm::cantFail(codegen::RegionPlan::of(fusion_));
    int found = 0;
    for (unsigned output = 0; output < yielded_.size(); ++output) {
      for (unsigned input = 0; input < inputs_.size(); ++input) {
        if (!codegen::mayAlias(fusion_, plan, output, input)) continue;
        ++found;
        EXPECT_EQ(Run(Order::kForward, std::pair(output, input)), outputs_) << output << " over " << input;
      }
    }
    if (expected >= 0) {
      EXPECT_EQ(found, expected);
    }
  }

  void ExpectOperations() {
    for (auto [argument, bits] : llvm::zip_equal(body().getArguments(), inputs_)) known_[argument] = bits;
    for (mlir::Operation& op : body().without_terminator()) {
      SCOPED_TRACE(op.getName().getStringRef().str());
      if (mlir::isa<ReshapeOp>(op)) {
        known_[op.getResult(0)] = known_[op.getOperand(0)];
      } else if (mlir::cast<FusibleOpInterface>(op).getReductions().empty()) {
        ExpectKernelBits(op);
      } else {
        ExpectWithinBounds(op);
      }
    }
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

  const Bits* Yielded(mlir::Value value) const {
    for (auto [yielded, bits] : llvm::zip_equal(yielded_, outputs_)) {
      if (yielded == value) return &bits;
    }
    return nullptr;
  }

  static Tensor AsTensor(mlir::Value value, const Bits& bits) {
    return reference::FromStorage(SpecOf(value), bits.data());
  }

  std::vector<const void*> Operands(mlir::Operation& op) {
    std::vector<const void*> operands;
    for (mlir::Value operand : op.getOperands()) {
      EXPECT_TRUE(known_.contains(operand)) << "the test yields too little";
      operands.push_back(known_[operand].data());
    }
    return operands;
  }

  void ExpectKernelBits(mlir::Operation& op) {
    KernelSpec spec;
    spec.name = op.getName().stripDialect().str();
    spec.attributes = kernelAttributes(&op);
    for (mlir::Value operand : op.getOperands()) spec.inputs.push_back(SpecOf(operand));
    for (mlir::Value result : op.getResults()) spec.outputs.push_back(SpecOf(result));
    auto kernel = CpuKernels().Create(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<Bits> results;
    std::vector<void*> outputs;
    for (const TensorSpec& output : spec.outputs) outputs.push_back(results.emplace_back(output.bytes()).data());
    std::vector<double> workspace((*kernel)->workspace_bytes() / sizeof(double) + 1);
    ASSERT_TRUE((*kernel)->Run(Operands(op).data(), outputs.data(), workspace.data()).ok());
    for (auto [result, bits] : llvm::zip_equal(op.getResults(), results)) {
      known_[result] = bits;
      if (const Bits* actual = Yielded(result)) {
        EXPECT_EQ(*actual, bits);
      }
    }
  }

  void ExpectWithinBounds(mlir::Operation& op) {
    op_cases::OpCase op_case;
    op_case.op = op.getName().stripDialect().str();
    op_case.attributes = kernelAttributes(&op);
    std::vector<Tensor> inputs, exact;
    Operands(op);
    for (mlir::Value operand : op.getOperands()) {
      inputs.push_back(AsTensor(operand, known_[operand]));
      op_case.operands.push_back({SpecOf(operand)});
    }
    for (mlir::Value result : op.getResults()) {
      op_case.results.push_back(SpecOf(result));
      exact.push_back({SpecOf(result), std::vector<double>(static_cast<std::size_t>(SpecOf(result).num_elements()))});
    }
    reference::Find(op_case.op)(op_case.attributes, inputs, absl::MakeSpan(exact));
    const auto errors = ArithmeticErrors(op_case, inputs, exact);
    for (auto [r, result] : llvm::enumerate(op.getResults())) {
      const Bits* bits = Yielded(result);
      if (bits == nullptr) continue;
      known_[result] = *bits;
      const Tensor actual = AsTensor(result, *bits);
      for (std::size_t i = 0; i < actual.values.size(); ++i) {
        const std::optional<double> error = errors[r] ? std::optional((*errors[r])[i]) : std::nullopt;
        ASSERT_TRUE(Accepts(actual.spec.dtype, actual.values[i], exact[r].values[i], error))
            << "result " << r << " [" << i << "]: " << actual.values[i] << ", exactly " << exact[r].values[i]
            << ", arithmetic error bound " << error.value_or(0);
      }
    }
  }

  FusionOp fusion_;
  const CompiledRegion& region_;
  std::vector<Bits> inputs_;
  llvm::SmallVector<mlir::Value> yielded_;
  std::vector<Bits> outputs_;
  llvm::DenseMap<mlir::Value, Bits> known_;
};

}  // namespace

void ExpectRegionIsItsOperations(std::string_view text, const codegen::CodeTarget& target, int aliases) {
  auto context = makeContext();
  auto module = parseModule(*context, text);
  ASSERT_TRUE(module) << text;
  FusionOp fusion;
  module->walk([&](FusionOp op) { fusion = op; });
  ASSERT_TRUE(fusion);
  auto region = CompiledRegion::Create(fusion, target);
  ASSERT_TRUE(region.ok()) << region.status();
  RegionCheck check(fusion, **region);
  check.ExpectOrdersAgree();
  check.ExpectAliasesChangeNothing(aliases);
  check.ExpectOperations();
}

}  // namespace mpc::test
