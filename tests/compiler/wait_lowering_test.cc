// What lowering makes of sums that other operations run beside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/lowering/lowering.h"
#include "runtime/program_check.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kWaits = R"(
  %old = mpc.all_reduce_wait %of_state : tensor<256xf32>
  %sum = mpc.all_reduce_wait %of_temporary : tensor<256xf32>)";

/// A step that sums the old %w and a temporary. `early` and `late` stand before and after the rest of the step.
absl::StatusOr<runtime::Program> Lower(const std::string& early, const std::string& late) {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = ParseModule(*context, R"(
func.func @step(%w: tensor<256xf32> {mpc.state = #mpc.state<parameter, "w">},
                %v: tensor<256xf32> {mpc.state = #mpc.state<slot, "v">}, %rate: tensor<f32>)
    -> (tensor<256xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<256xf32> {mpc.state = #mpc.state<slot, "v">},
        tensor<256xf32>, tensor<256xf32>) attributes {mpc.step} {
  %a = mpc.neg %w : tensor<256xf32>
  %of_state = mpc.all_reduce_start %w : tensor<256xf32>
  %of_temporary = mpc.all_reduce_start %a : tensor<256xf32>)" + early + R"(
  %g = mpc.neg %v : tensor<256xf32>
  %w1, %v1 = mpc.momentum %w, %v, %g, %rate
      : (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<f32>) -> (tensor<256xf32>, tensor<256xf32>))" +
                                                                       late + R"(
  return %w1, %v1, %old, %sum : tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>
})");
  EXPECT_TRUE(module);
  if (!module) return absl::InternalError("the test's module does not parse");
  absl::StatusOr<runtime::Program> program =
      compiler::lowerToProgram(*module->getOps<mlir::func::FuncOp>().begin(), **runtime::GetDevice("cpu"), {});
  const absl::Status check = program.ok() ? runtime::CheckProgram(*program) : absl::OkStatus();
  EXPECT_TRUE(check.ok()) << check;
  return program;
}

// The bytes of the arena at which an instruction writes its first result.
std::size_t WrittenAt(const runtime::Program& program, std::size_t instruction) {
  return program.values[program.step().instructions.at(instruction).outputs.at(0)].offset;
}

TEST(WaitLowering, AWaitIsAViewOfWhatItsStartWrites) {
  const absl::StatusOr<runtime::Program> program = Lower(kWaits, "");
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<std::string> kernels;
  for (const runtime::Instruction& instruction : program->step().instructions) kernels.push_back(instruction.kernel);
  EXPECT_THAT(kernels, ElementsAre("neg", "all_reduce", "all_reduce", "neg", "momentum"));
  EXPECT_EQ(program->values[program->outputs.at(0).value].offset, WrittenAt(*program, 1));
  EXPECT_EQ(program->values[program->outputs.at(1).value].offset, WrittenAt(*program, 2));
}

// %g, of instruction 3, may lie where %a, of instruction 0, lay as soon as nothing reads that.
TEST(WaitLowering, WhatAStartReadsKeepsItsPlaceUntilTheWait) {
  const absl::StatusOr<runtime::Program> early = Lower(kWaits, ""), late = Lower("", kWaits);
  ASSERT_TRUE(early.ok() && late.ok()) << early.status() << late.status();
  EXPECT_EQ(WrittenAt(*early, 3), WrittenAt(*early, 0));
  EXPECT_NE(WrittenAt(*late, 3), WrittenAt(*late, 0));
  EXPECT_EQ(late->arena_bytes, early->arena_bytes + 2 * 1024) << "%a, and %w1, which is not in place";
}

TEST(WaitLowering, StateIsNotUpdatedInPlaceBeforeTheWait) {
  const absl::StatusOr<runtime::Program> early = Lower(kWaits, ""), late = Lower("", kWaits);
  ASSERT_TRUE(early.ok() && late.ok()) << early.status() << late.status();
  EXPECT_TRUE(early->step().copies.empty());
  ASSERT_EQ(late->step().copies.size(), 1u);
  EXPECT_THAT(late->step().copies[0].reason, HasSubstr("mpc.all_reduce_wait reads the old value after the update"));
}

}  // namespace
}  // namespace mpc
