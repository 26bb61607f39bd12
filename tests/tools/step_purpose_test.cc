// The purposes that mpc-bench and traces give to kernels, against what the operations say of themselves: an operation
// that nobody has thought of fails here.
#include "tools/support/step_purpose.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "compiler/dialect/dialect.h"
#include "tests/compiler/op_case_module.h"
#include "tests/op_cases/op_case.h"

namespace mpc::tools {
namespace {

StepPurpose PurposeOfKernel(const std::string& kernel, const std::string& scope) {
  runtime::Program program;
  program.values.push_back({{DType::kF32, {8}}});
  runtime::Instruction instruction;
  instruction.kernel = kernel;
  instruction.scope = scope;
  instruction.inputs = {0};
  return PurposeOf(program, instruction);
}

/// Calls `visit` with an instance of each operation that has a case, which is each that has a kernel.
template <typename Visitor>
void ForEachOperation(Visitor&& visit) {
  const auto context = makeContext();
  std::set<std::string> seen;
  for (const op_cases::OpCase& op_case : op_cases::AllOpCases()) {
    if (!seen.insert(op_case.op).second) continue;
    auto module = forwardModule(*context, op_case, DType::kF32);
    bool is_there = false;
    module->walk([&](mlir::Operation* op) {
      if (op->getName().stripDialect() != op_case.op) return;
      is_there = true;
      visit(op, op_case.op);
    });
    EXPECT_TRUE(is_there) << op_case.op;
  }
}

bool IsGradient(const std::string& name) { return name.find("_grad") != std::string::npos; }

TEST(StepPurpose, OfStateUpdatesIsUpdate) {
  ForEachOperation([](mlir::Operation* op, const std::string& name) {
    if (!op->hasTrait<StateUpdate>()) return;
    // Optimizers know where they stand, whatever kernel they became; other updates stand anywhere.
    const bool is_optimizer = mlir::isa<OptimizerOpInterface>(op);
    EXPECT_EQ(PurposeOfKernel(name, is_optimizer ? "optimizer/fc1" : "lenet5/bn1"), StepPurpose::kUpdate) << name;
  });
}

// What AMP assigns a precision, and its gradients, is of the network.
TEST(StepPurpose, OfTheNetworkIsCompute) {
  ForEachOperation([](mlir::Operation* op, const std::string& name) {
    auto amp = mlir::dyn_cast<AmpOpInterface>(op);
    const bool is_assigned = amp && amp.getAmpClass() != AmpClass::Exempt;
    if (!is_assigned && !(IsGradient(name) && !op->hasTrait<StateUpdate>())) return;
    EXPECT_EQ(PurposeOfKernel(name, "lenet5/fc1"), StepPurpose::kCompute) << name;
  });
}

// AMP leaves alone what belongs to the step. Each has a purpose, but for what the network has of the kind.
TEST(StepPurpose, IsKnownOfEveryOtherOperation) {
  std::set<std::string> of_the_network = {"constant",          "random",    "cast", "conv2d_statistics",
                                          "tensor_statistics", "all_reduce"};
  ForEachOperation([&](mlir::Operation* op, const std::string& name) {
    auto amp = mlir::dyn_cast<AmpOpInterface>(op);
    if (!amp || amp.getAmpClass() != AmpClass::Exempt || IsGradient(name) || op->hasTrait<StateUpdate>()) return;
    const bool is_compute = PurposeOfKernel(name, "lenet5/fc1") == StepPurpose::kCompute;
    EXPECT_EQ(is_compute, of_the_network.count(name) == 1)
        << name << ": is it for the network, or what is it for? See tools/support/step_purpose.cc";
  });
}

TEST(StepPurpose, OfAChoiceBetweenStatesIsSkip) {
  runtime::Program program;
  program.values.push_back({{DType::kBool, {}}});
  program.values.push_back({{DType::kBool, {8}}});
  runtime::Instruction instruction;
  instruction.kernel = "select";
  instruction.inputs = {0};
  EXPECT_EQ(PurposeOf(program, instruction), StepPurpose::kSkip);
  instruction.inputs = {1};
  EXPECT_EQ(PurposeOf(program, instruction), StepPurpose::kCompute) << "an element-wise choice is the network's";
}

}  // namespace
}  // namespace mpc::tools
