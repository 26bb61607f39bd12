#include "tests/cuda/step_by_operations.h"

#include <gtest/gtest.h>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/module/module_impl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/compiler/operation_case.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

using mlir::func::FuncOp;
using reference::Tensor;

class StepByOperations {
 public:
  StepByOperations(const KernelDevice& device, FuncOp step, const NamedBytes& state,
                   const std::vector<mpc::Tensor>& inputs)
      : device_(device), step_(step), state_(state), inputs_(inputs) {}

  NamedBytes Run() {
    for (mlir::BlockArgument argument : step_.getArguments()) values_[argument] = ArgumentValue(argument);
    for (mlir::Operation& op : step_.getBody().front().without_terminator()) {
      if (testing::Test::HasFatalFailure()) return {};
      RunOperation(op);
    }
    return Results();
  }

 private:
  Tensor ArgumentValue(mlir::BlockArgument argument) {
    const StateAttr described = stateOf(argument);
    const bool is_low_copy = described.getRole() == Role::kDerived;
    // The low copy of a parameter is that parameter, rounded.
    const std::string name = (is_low_copy ? described.getOf() : described.getName()).str();
    const TensorSpec spec = SpecOf(argument);
    if (described.getRole() == Role::kInput) {
      const mpc::Tensor& input = inputs_[next_input_++];
      EXPECT_EQ(input.bytes().size(), spec.bytes()) << name;
      return reference::FromStorage(spec, input.bytes().data());
    }
    const auto stored = state_.find(name);
    EXPECT_NE(stored, state_.end()) << name;
    if (stored == state_.end()) return {spec, std::vector<double>(static_cast<std::size_t>(spec.num_elements()))};
    Tensor value =
        reference::FromStorage(is_low_copy ? TensorSpec{DType::kF32, spec.shape} : spec, stored->second.data());
    value.spec = spec;
    for (double& element : value.values) element = reference::RoundTo(spec.dtype, element);
    return value;
  }

  void RunOperation(mlir::Operation& op) {
    std::vector<Tensor> inputs;
    for (mlir::Value operand : op.getOperands()) inputs.push_back(values_.at(operand));
    std::vector<Tensor> exact = ExactResults(op, inputs);
    if (mlir::isa<ConstantOp>(op)) {
      values_[op.getResult(0)] = exact[0];
      return;
    }
    const auto bits = RunKernel(device_, CaseOf(op), DType::kF32, inputs);
    ASSERT_TRUE(bits.ok()) << op.getName().getStringRef().str() << ": " << bits.status();
    std::vector<const Tensor*> actual;
    for (auto [r, result] : llvm::enumerate(op.getResults())) {
      values_[result] = reference::FromStorage(SpecOf(result), (*bits)[r].data());
    }
    for (mlir::Value result : op.getResults()) actual.push_back(&values_.at(result));
    ExpectWithinBounds(op, inputs, exact, actual);
  }

  NamedBytes Results() {
    NamedBytes results;
    for (mlir::OpOperand& returned : step_.getBody().front().getTerminator()->getOpOperands()) {
      const std::string name = resultName(step_, returned.getOperandNumber()).str();
      if (!state_.contains(name)) continue;
      const Tensor& value = values_.at(returned.get());
      std::vector<std::uint8_t>& bytes = results[name];
      bytes.resize(value.spec.bytes());
      reference::ToStorage(value, bytes.data());
    }
    return results;
  }

  const KernelDevice& device_;
  FuncOp step_;
  const NamedBytes& state_;
  const std::vector<mpc::Tensor>& inputs_;
  std::size_t next_input_ = 0;
  llvm::DenseMap<mlir::Value, Tensor> values_;
};

}  // namespace

NamedBytes RunByOperations(const KernelDevice& device, const compiler::Module& final_ir, const NamedBytes& state,
                           const std::vector<mpc::Tensor>& inputs) {
  auto step = final_ir.impl().module.get().lookupSymbol<FuncOp>("train_step");
  EXPECT_TRUE(step) << final_ir.Print();
  return step ? StepByOperations(device, step, state, inputs).Run() : NamedBytes();
}

}  // namespace mpc::test
