// What leaves a step as an output, or becomes another state, is the value that the step's IR says: not what an update
// in place has made of it since.
#include <gtest/gtest.h>

#include "compiler/lowering/lowering.h"
#include "runtime/program_check.h"
#include "tests/compiler/op_case_module.h"
#include "tests/runtime/program_builder.h"

namespace mpc {
namespace {

/// What two counters, 10 and 20 at first, are after one step, and the step's outputs.
struct Outcome {
  std::int32_t a = 0, b = 0;
  std::vector<std::int32_t> outputs;
};

std::shared_ptr<runtime::StateEntry> Counter(runtime::StateStore& store, const std::string& name, std::int32_t value) {
  auto entry = std::make_shared<runtime::StateEntry>(name, Role::kStep, TensorSpec{DType::kI32, {}});
  EXPECT_TRUE(entry->Write(runtime::BytesOf(std::vector<std::int32_t>{value})).ok());
  EXPECT_TRUE(store.Add(entry).ok());
  return entry;
}

/// Runs a step with the counters %a and %b; `body` ends with its return, `outputs` are the types behind the state.
Outcome RunStep(const std::string& body, const std::string& outputs = "") {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      ParseModule(*context, R"(
func.func @step(%a: tensor<i32> {mpc.state = #mpc.state<step, "a">}, %b: tensor<i32> {mpc.state = #mpc.state<step, "b">})
    -> (tensor<i32> {mpc.state = #mpc.state<step, "a">}, tensor<i32> {mpc.state = #mpc.state<step, "b">})" +
                                outputs + ") attributes {mpc.step} {\n" + body + "}");
  EXPECT_TRUE(module);
  if (!module) return {};
  const runtime::Device& cpu = **runtime::GetDevice("cpu");
  absl::StatusOr<runtime::Program> program =
      compiler::lowerToProgram(*module->getOps<mlir::func::FuncOp>().begin(), cpu);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  const absl::Status check = runtime::CheckProgram(*program);
  EXPECT_TRUE(check.ok()) << check;
  runtime::StateStore store;
  const auto a = Counter(store, "a", 10), b = Counter(store, "b", 20);
  auto executable = cpu.Load(std::make_shared<const runtime::Program>(*program), store);
  EXPECT_TRUE(executable.ok()) << executable.status();
  if (!executable.ok()) return {};
  EXPECT_TRUE((*executable)->Run({}).ok());
  Outcome outcome{*static_cast<const std::int32_t*>(a->data()), *static_cast<const std::int32_t*>(b->data()), {}};
  for (std::size_t i = 0; i < program->outputs.size(); ++i) {
    for (std::int32_t value : runtime::ValuesOf<std::int32_t>((*executable)->output(i)))
      outcome.outputs.push_back(value);
  }
  return outcome;
}

TEST(OldState, IsSwapped) {
  const Outcome outcome = RunStep("  return %b, %a : tensor<i32>, tensor<i32>\n");
  EXPECT_EQ(outcome.a, 20);
  EXPECT_EQ(outcome.b, 10);
}

TEST(OldState, BecomesAnotherStateWhileItIsUpdated) {
  const Outcome outcome = RunStep(R"(
  %next = mpc.increment %a : (tensor<i32>) -> tensor<i32>
  return %next, %a : tensor<i32>, tensor<i32>
)");
  EXPECT_EQ(outcome.a, 11);
  EXPECT_EQ(outcome.b, 10);
}

TEST(OldState, BecomesAnotherStateThroughAView) {
  const Outcome outcome = RunStep(R"(
  %next = mpc.increment %a : (tensor<i32>) -> tensor<i32>
  %row = mpc.reshape %a {shape = array<i64: 1>} : (tensor<i32>) -> tensor<1xi32>
  %old = mpc.reshape %row {shape = array<i64>} : (tensor<1xi32>) -> tensor<i32>
  return %next, %old : tensor<i32>, tensor<i32>
)");
  EXPECT_EQ(outcome.a, 11);
  EXPECT_EQ(outcome.b, 10);
}

TEST(OldState, IsAnOutputAsItWas) {
  const Outcome outcome = RunStep(R"(
  %next = mpc.increment %a : (tensor<i32>) -> tensor<i32>
  %row = mpc.reshape %a {shape = array<i64: 1>} : (tensor<i32>) -> tensor<1xi32>
  return %next, %b, %a, %row : tensor<i32>, tensor<i32>, tensor<i32>, tensor<1xi32>
)",
                                  ", tensor<i32>, tensor<1xi32>");
  EXPECT_EQ(outcome.a, 11);
  EXPECT_EQ(outcome.outputs, (std::vector<std::int32_t>{10, 10}));
}

TEST(OldState, GivesWayToANewValueThatIsAnOutput) {
  const Outcome outcome = RunStep(R"(
  %next = mpc.increment %a : (tensor<i32>) -> tensor<i32>
  return %next, %next, %next : tensor<i32>, tensor<i32>, tensor<i32>
)",
                                  ", tensor<i32>");
  EXPECT_EQ(outcome.a, 11);
  EXPECT_EQ(outcome.b, 11);
  EXPECT_EQ(outcome.outputs, (std::vector<std::int32_t>{11}));
}

}  // namespace
}  // namespace mpc
