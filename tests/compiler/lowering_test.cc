// What lowering makes of derived state, and what it asks of a device.
#include "compiler/lowering/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/program_check.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using ::testing::HasSubstr;

const runtime::Device& Cpu() { return **runtime::GetDevice("cpu"); }

absl::StatusOr<runtime::Program> Lower(std::string_view text, const runtime::Device& device = Cpu()) {
  const std::unique_ptr<mlir::MLIRContext> context = makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = parseModule(*context, text);
  EXPECT_TRUE(module);
  if (!module) return absl::InternalError("the test's module does not parse");
  absl::StatusOr<runtime::Program> program =
      compiler::lowerToProgram(*module->getOps<mlir::func::FuncOp>().begin(), device);
  const absl::Status check = program.ok() ? runtime::CheckProgram(*program) : absl::OkStatus();
  EXPECT_TRUE(check.ok()) << check;
  return program;
}

// A step in which `body` follows the update.
std::string Step(const std::string& body = "", const std::string& shadow = "w.f16") {
  return R"(
func.func @step(%w: tensor<4xf32> {mpc.name = "w", mpc.role = "parameter"},
                %v: tensor<4xf32> {mpc.name = "v", mpc.role = "slot"},
                %s: tensor<4xf16> {mpc.name = ")" +
         shadow + R"(", mpc.role = "derived"}, %rate: tensor<f32>)
    -> (tensor<4xf32> {mpc.name = "w", mpc.role = "parameter"}, tensor<4xf32> {mpc.name = "v", mpc.role = "slot"},
        tensor<4xf16> {mpc.name = ")" +
         shadow + R"(", mpc.role = "derived"}, tensor<4xf16>) {
  %g = mpc.neg %s : (tensor<4xf16>) -> tensor<4xf16>
  %w1, %v1, %s1 = mpc.momentum %w, %v, %g, %rate {shadow = "f16"}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>))" +
         (body.empty() ? "  %y = mpc.relu %g : (tensor<4xf16>) -> tensor<4xf16>" : body) + R"(
  return %w1, %v1, %s1, %y : tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<4xf16>
})";
}

TEST(Lowering, AnOptimizerWritesTheShadowInPlace) {
  const absl::StatusOr<runtime::Program> program = Lower(Step());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->state_copies.empty());
  const runtime::Instruction& momentum = program->instructions.at(1);
  ASSERT_EQ(momentum.kernel, "momentum");
  const runtime::Value& shadow = program->values[momentum.outputs.at(2)];
  ASSERT_EQ(shadow.storage, runtime::Storage::kState);
  EXPECT_EQ(program->state[shadow.index].name, "w.f16");
  EXPECT_TRUE(program->state[shadow.index].written);
}

TEST(Lowering, DerivedStateHasTheCastThatRebuildsIt) {
  const absl::StatusOr<runtime::Program> program = Lower(Step());
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->refreshes.size(), 1u);
  const runtime::StateRefresh& refresh = program->refreshes[0];
  EXPECT_EQ(program->state[refresh.derived].name, "w.f16");
  EXPECT_EQ(program->state[refresh.source].name, "w");
  EXPECT_EQ(refresh.instruction.kernel, "cast");
}

TEST(Lowering, AReaderOfTheOldShadowBehindTheUpdateMakesACopy) {
  const absl::StatusOr<runtime::Program> program = Lower(Step("  %y = mpc.relu %s : (tensor<4xf16>) -> tensor<4xf16>"));
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->state_copies.size(), 1u);
  EXPECT_THAT(program->state_copies[0].reason, HasSubstr("mpc.relu reads the old value after the update"));
}

TEST(Lowering, DerivedStateThatNothingUpdatesIsReadOnly) {
  const absl::StatusOr<runtime::Program> program = Lower(R"(
func.func @predict(%w: tensor<4xf32> {mpc.name = "w", mpc.role = "parameter"},
                   %s: tensor<4xbf16> {mpc.name = "w.bf16", mpc.role = "derived"}) -> tensor<4xbf16> {
  %y = mpc.neg %s : (tensor<4xbf16>) -> tensor<4xbf16>
  return %y : tensor<4xbf16>
})");
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->refreshes.size(), 1u);
  EXPECT_FALSE(program->state[program->refreshes[0].derived].written);
}

TEST(Lowering, DerivedStateIsNamedAfterItsSourceAndType) {
  for (const char* name : {"u.f16", "w.bf16", "w", "f16"}) {
    const absl::Status status = Lower(Step("", name)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST(Lowering, WithoutAKernelItSaysWhyNoRegionDoesInstead) {
  const absl::StatusOr<runtime::Program> program = Lower(R"(
func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = mpc.softmax %x {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
})");
  EXPECT_THAT(program.status().message(),
              HasSubstr("a region cannot hold it: mpc.softmax: its axis 0 is not the last"));
}

// The CPU, which counts plannings.
class CountingDevice : public runtime::Device {
 public:
  std::string_view name() const override { return "cpu"; }
  absl::StatusOr<runtime::InstructionPlan> Plan(const runtime::Program& program,
                                                const runtime::Instruction& instruction,
                                                const runtime::PlanOptions& options) const override {
    EXPECT_EQ(ended, 0);
    ++planned;
    return Cpu().Plan(program, instruction, options);
  }
  absl::Status EndPlanning(const runtime::PlanOptions&) const override {
    ++ended;
    return end_of_planning;
  }
  bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const override {
    return Cpu().MayAlias(kernel, output, input);
  }
  absl::StatusOr<std::unique_ptr<runtime::Executable>> Load(std::shared_ptr<const runtime::Program>,
                                                            const runtime::StateStore&,
                                                            const runtime::LoadOptions&) const override {
    return absl::UnimplementedError("nothing runs here");
  }

  mutable int planned = 0, ended = 0;
  absl::Status end_of_planning;
};

TEST(Lowering, PlanningEndsOnceAfterEveryInstruction) {
  CountingDevice device;
  const absl::StatusOr<runtime::Program> program = Lower(Step(), device);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_GE(device.planned, 3);
  EXPECT_EQ(device.ended, 1);
  CountingDevice full;
  full.end_of_planning = absl::PermissionDeniedError("no place for choices");
  EXPECT_EQ(Lower(Step(), full).status(), full.end_of_planning);
}

}  // namespace
}  // namespace mpc
