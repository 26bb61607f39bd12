#include "runtime/choose_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/program_check.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// Wants `workspace` bytes for "mul" and nothing for others; tuning finds "fast".
class ChoosyDevice : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  absl::StatusOr<InstructionPlan> Plan(const Program& program, const Instruction& instruction,
                                       const PlanOptions& options) const override {
    if (instruction.kernel == "unheard_of") return absl::NotFoundError("no such kernel");
    for (const auto& [key, value] : program.choices) {
      if (key == instruction.kernel) return InstructionPlan{0, {key, value}};
    }
    if (instruction.kernel != "mul") return InstructionPlan{};
    return InstructionPlan{workspace, {"mul", options.tune ? "fast" : "plain"}};
  }
  bool MayAlias(std::string_view, std::size_t, std::size_t) const override { return false; }
  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const Program>, const StateStore&,
                                                   const LoadOptions&) const override {
    return absl::UnimplementedError("not here");
  }

  absl::Status EndPlanning(const PlanOptions&) const override {
    ++plannings;
    return end_of_planning;
  }

  std::size_t workspace = 0;
  absl::Status end_of_planning;
  mutable int plannings = 0;
};

/// A sequence of which an instruction wants a workspace.
Program Repeating() {
  ProgramBuilder builder("step");
  const TensorSpec row = {DType::kF32, {4}};
  const ValueId x = builder.Input("x", row);
  const ValueId y = builder.Temporary(row);
  builder.Repeat(2, {x}, {y}, {{"mul", {y, x}, {y}, {}, 0, 0, "test"}});
  builder.Output("y", y);
  return builder.program;
}

Program Compiled() {
  ProgramBuilder builder("step");
  const TensorSpec row = {DType::kF32, {4}};
  const ValueId weight = builder.State("weight", row, false);
  builder.Derived(weight, DType::kF16, false);
  const ValueId input = builder.Input("x", row);
  const ValueId product = builder.Temporary(row);
  const ValueId sum = builder.Temporary(row);
  builder.Call("mul", {input, weight}, {product});
  builder.Call("add", {product, input}, {sum});
  builder.Output("y", sum);
  builder.program.step().instructions[0].workspace_offset = 0;
  builder.program.step().instructions[0].workspace_bytes = 64;
  builder.program.choices = {{"mul", "plain"}, {"rate.bytes_per_second", "1e9"}};
  return builder.program;
}

TEST(ChooseKernels, ReplacesChoicesAndKeepsWhatIsNoKernels) {
  Program program = Compiled();
  ASSERT_TRUE(ChooseKernels(ChoosyDevice(), {.tune = true}, program).ok());
  EXPECT_THAT(program.choices, ElementsAre(Pair("mul", "fast"), Pair("rate.bytes_per_second", "1e9")));
  EXPECT_EQ(program.arena_bytes, Compiled().arena_bytes);
  EXPECT_EQ(program.step().instructions[0].workspace_bytes, 0u);
}

TEST(ChooseKernels, LargerWorkspacesLieBehindTheArena) {
  ChoosyDevice device;
  device.workspace = 1000;
  Program program = Compiled();
  ASSERT_TRUE(ChooseKernels(device, {.tune = true}, program).ok());
  EXPECT_EQ(program.step().instructions[0].workspace_offset, AlignedBuffer::Padded(Compiled().arena_bytes));
  EXPECT_EQ(program.step().instructions[0].workspace_bytes, 1000u);
  EXPECT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  device.workspace = 32;
  program = Compiled();
  ASSERT_TRUE(ChooseKernels(device, {.tune = true}, program).ok());
  EXPECT_EQ(program.step().instructions[0].workspace_offset, Compiled().step().instructions[0].workspace_offset);
  EXPECT_EQ(program.arena_bytes, Compiled().arena_bytes);
}

TEST(ChooseKernels, ErrorsNameTheInstructionAndChangeNothing) {
  Program program = Compiled();
  program.step().instructions[1].kernel = "unheard_of";
  const absl::Status status = ChooseKernels(ChoosyDevice(), {.tune = true}, program);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step, instruction 1 (unheard_of in test)"));
  EXPECT_EQ(program.choices[0].second, "plain");
}

TEST(ChooseKernels, ChoosesInSequencesToo) {
  ChoosyDevice device;
  device.workspace = 1000;
  const auto expect_room = [&](const Program& program) {
    const Instruction& product = program.sequences[1].instructions[0];
    EXPECT_EQ(product.workspace_bytes, 1000u);
    EXPECT_EQ(product.workspace_offset, AlignedBuffer::Padded(Repeating().arena_bytes));
    EXPECT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  };
  Program chosen = Repeating();
  ASSERT_TRUE(ChooseKernels(device, {.tune = true}, chosen).ok());
  EXPECT_THAT(chosen.choices, ElementsAre(Pair("mul", "fast")));
  expect_room(chosen);
  Program enlarged = Repeating();
  ASSERT_TRUE(EnlargeWorkspaces(device, enlarged).ok());
  expect_room(enlarged);
  Program unknown = Repeating();
  unknown.sequences[1].instructions[0].kernel = "unheard_of";
  for (const absl::Status& status : {ChooseKernels(device, {}, unknown), EnlargeWorkspaces(device, unknown)}) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("step, sequence 1 (@body), instruction 0 (unheard_of in test)"));
  }
}

TEST(ChooseKernels, EndsThePlanningOnce) {
  ChoosyDevice device;
  Program program = Compiled();
  ASSERT_TRUE(ChooseKernels(device, {.tune = true}, program).ok());
  EXPECT_EQ(device.plannings, 1);
  device.end_of_planning = absl::PermissionDeniedError("no place for choices");
  program = Compiled();
  const absl::Status status = ChooseKernels(device, {.tune = true}, program);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step: no place for choices"));
  EXPECT_EQ(program.choices[0].second, "plain") << "as it was";
}

}  // namespace
}  // namespace mpc::runtime
