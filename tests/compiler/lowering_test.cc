// What lowering makes of derived state, and what it asks of a device.
#include "compiler/lowering/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/flat_updates.h"
#include "runtime/predicated_updates.h"
#include "runtime/program_check.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const runtime::Device& Cpu() { return **runtime::GetDevice("cpu"); }

absl::StatusOr<runtime::Program> Lower(std::string_view text, const runtime::Device& device = Cpu(),
                                       const runtime::PlanOptions& options = {}) {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = ParseModule(*context, text);
  EXPECT_TRUE(module);
  if (!module) return absl::InternalError("the test's module does not parse");
  absl::StatusOr<runtime::Program> program =
      compiler::lowerToProgram(*module->getOps<mlir::func::FuncOp>().begin(), device, options);
  const absl::Status check = program.ok() ? runtime::CheckProgram(*program) : absl::OkStatus();
  EXPECT_TRUE(check.ok()) << check;
  return program;
}

// A step in which `body` follows the update.
std::string Step(const std::string& body = "") {
  return R"(
func.func @step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v">},
                %s: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}, %rate: tensor<f32>)
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "v">},
        tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16">}, tensor<4xf16>) attributes {mpc.step} {
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
  EXPECT_TRUE(program->step().copies.empty());
  const runtime::Instruction& momentum = program->step().instructions.at(1);
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
  ASSERT_EQ(program->step().copies.size(), 1u);
  EXPECT_THAT(program->step().copies[0].reason, HasSubstr("mpc.relu reads the old value after the update"));
}

// State that the step's result cannot be written over has a copy, and the reason for it.
TEST(Lowering, WhyAStateIsCopied) {
  const std::pair<std::string, std::string> cases[] = {
      {R"(%w1 = mpc.add %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          %u1, %v1 = mpc.momentum %u, %v, %g, %rate
              : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>))",
       "mpc.add is no in-place update"},
      {R"(%x, %v1 = mpc.momentum %u, %v, %g, %rate
              : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
          %w1, %u1 = mpc.momentum %v1, %x, %g, %rate
              : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>))",
       "mpc.momentum does not update this state"},
      {R"(%w1, %u1 = mpc.momentum %w, %u, %w, %rate
              : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
          %x, %v1 = mpc.momentum %g, %v, %g, %rate
              : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>))",
       "mpc.momentum reads the old value twice"},
      {R"(%v1, %w1 = mpc.momentum %v, %w, %g, %rate
              : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
          %u1 = mpc.reshape %w1 {shape = array<i64: 4>} : (tensor<4xf32>) -> tensor<4xf32>)",
       "the new value is a view or a constant"},
  };
  for (const auto& [body, reason] : cases) {
    const absl::StatusOr<runtime::Program> program = Lower(R"(
func.func @step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                %u: tensor<4xf32> {mpc.state = #mpc.state<slot, "u">},
                %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v">}, %g: tensor<4xf32>, %rate: tensor<f32>)
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "u">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "v">}) attributes {mpc.step} {
  )" + body + R"(
  return %w1, %u1, %v1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
})");
    ASSERT_TRUE(program.ok()) << reason << ": " << program.status();
    std::string reasons;
    for (const runtime::ValueCopy& copy : program->step().copies) reasons += copy.reason + "; ";
    EXPECT_THAT(reasons, HasSubstr(reason));
  }
}

// One value that becomes two states is in one of them.
TEST(Lowering, AValueIsOneStateInPlace) {
  const absl::StatusOr<runtime::Program> program = Lower(R"(
func.func @step(%a: tensor<i32> {mpc.state = #mpc.state<step, "a">}, %b: tensor<i32> {mpc.state = #mpc.state<step, "b">})
    -> (tensor<i32> {mpc.state = #mpc.state<step, "a">}, tensor<i32> {mpc.state = #mpc.state<step, "b">}) attributes {mpc.step} {
  %a1 = mpc.increment %a : (tensor<i32>) -> tensor<i32>
  return %a1, %a1 : tensor<i32>, tensor<i32>
})");
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->step().copies.size(), 1u);
  EXPECT_THAT(program->step().copies[0].reason, HasSubstr("the new value becomes several states"));
}

// A kernel may write over an operand that it reads once.
TEST(Lowering, AnOperandThatIsReadTwiceIsNotOverwritten) {
  const auto arena_bytes = [](const std::string& operands) {
    const absl::StatusOr<runtime::Program> program = Lower(R"(
func.func @step(%x: tensor<256xf32> {mpc.state = #mpc.state<parameter, "x">},
                %v: tensor<256xf32> {mpc.state = #mpc.state<slot, "v">}) -> tensor<256xf32> attributes {mpc.step} {
  %a = mpc.neg %x : (tensor<256xf32>) -> tensor<256xf32>
  %b = mpc.sub )" + operands + R"( : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %b : tensor<256xf32>
})");
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? program->arena_bytes : 0;
  };
  EXPECT_EQ(arena_bytes("%a, %v"), 1024u);
  EXPECT_EQ(arena_bytes("%a, %a"), 2048u);
}

TEST(Lowering, DerivedStateThatNothingUpdatesIsReadOnly) {
  const absl::StatusOr<runtime::Program> program = Lower(R"(
func.func @predict(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                   %s: tensor<4xbf16> {mpc.state = #mpc.state<derived, "w.bf16", of = "w">}) -> tensor<4xbf16> attributes {mpc.step} {
  %y = mpc.neg %s : (tensor<4xbf16>) -> tensor<4xbf16>
  return %y : tensor<4xbf16>
})");
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->refreshes.size(), 1u);
  EXPECT_FALSE(program->state[program->refreshes[0].derived].written);
}

TEST(Lowering, DerivedStateIsRebuiltFromItsOwnerWhateverItsName) {
  const absl::StatusOr<runtime::Program> program = Lower(R"(
func.func @predict(%v: tensor<4xf32> {mpc.state = #mpc.state<parameter, "v">},
                   %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                   %s: tensor<4xbf16> {mpc.state = #mpc.state<derived, "v.f16", of = "w">}) -> tensor<4xbf16> attributes {mpc.step} {
  %y = mpc.relu %s : (tensor<4xbf16>) -> tensor<4xbf16>
  return %y : tensor<4xbf16>
})");
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->refreshes.size(), 1u);
  EXPECT_EQ(program->state[program->refreshes[0].derived].name, "v.f16");
  EXPECT_EQ(program->state[program->refreshes[0].source].name, "w");
}

/// A step whose results are `constants`, given as "dense<0.0> : tensor<4xf32>".
std::string Constants(const std::vector<std::string>& constants) {
  std::string body, names, types;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const std::string type = constants[i].substr(constants[i].find("tensor"));
    const std::string name = "%c" + std::to_string(i);
    body += "  " + name + " = mpc.constant {value = " + constants[i] + "} : () -> " + type + "\n";
    names += (i > 0 ? ", " : "") + name;
    types += (i > 0 ? ", " : "") + type;
  }
  return "func.func @f() -> (" + types + ") {\n" + body + "  return " + names + " : " + types + "\n}";
}

std::vector<std::size_t> OffsetsOfOutputs(const runtime::Program& program) {
  std::vector<std::size_t> offsets;
  for (const runtime::NamedValue& output : program.outputs) offsets.push_back(program.values[output.value].offset);
  return offsets;
}

TEST(Lowering, AConstantOfOneElementIsFilledAndHasNoBytesInTheProgram) {
  const absl::StatusOr<runtime::Program> program =
      Lower(Constants({"dense<0.0> : tensor<50257x768xf32>", "dense<[1.0, 2.0]> : tensor<2xf32>"}));
  ASSERT_TRUE(program.ok()) << program.status();
  const std::size_t table = std::size_t{50257} * 768 * 4;
  EXPECT_EQ(program->constants.size(), 64u);
  ASSERT_EQ(program->fills.size(), 1u);
  EXPECT_EQ(program->fills[0].bytes, table);
  EXPECT_EQ(program->fills[0].element, std::vector<std::uint8_t>(4, 0));
  EXPECT_THAT(OffsetsOfOutputs(*program), ElementsAre(64, 0));
  EXPECT_EQ(program->constant_bytes(), table + 64);
  EXPECT_EQ(program->planned_bytes(), program->arena_bytes + table + 64);
}

TEST(Lowering, FillsOfOneElementShareTheirMemory) {
  const absl::StatusOr<runtime::Program> program =
      Lower(Constants({"dense<0.0> : tensor<100xf32>", "dense<1.0> : tensor<50xf16>", "dense<0.0> : tensor<5x60xf32>",
                       "dense<1.0> : tensor<50xf32>", "dense<true> : tensor<65xi1>"}));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->constants.empty());
  ASSERT_EQ(program->fills.size(), 4u);
  EXPECT_THAT(OffsetsOfOutputs(*program), ElementsAre(0, 1216, 0, 1344, 1600));
  EXPECT_EQ(program->fills[0].bytes, 1216u);
  EXPECT_THAT(program->fills[1].element, ElementsAre(0x00, 0x3c));
  EXPECT_THAT(program->fills[2].element, ElementsAre(0x00, 0x00, 0x80, 0x3f));
  EXPECT_THAT(program->fills[3].element, ElementsAre(1));
}

TEST(Lowering, AConstantOfOneLineIsGiven) {
  const absl::StatusOr<runtime::Program> program =
      Lower(Constants({"dense<1.0> : tensor<f32>", "dense<1.0> : tensor<16xf32>", "dense<true> : tensor<3xi1>",
                       "dense<[true, false]> : tensor<2xi1>"}));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->fills.empty());
  EXPECT_THAT(OffsetsOfOutputs(*program), ElementsAre(0, 64, 128, 192));
  EXPECT_EQ(program->constants[67], 0x3f);
  EXPECT_EQ(program->constants[127], 0x3f);
  EXPECT_EQ(program->constants[130], 1);
  EXPECT_EQ(program->constants[131], 0);
  EXPECT_EQ(program->constants[192], 1);
  EXPECT_EQ(program->constants[193], 0);
}

/// A convolution %y with the parameter "s", then `body`.
std::string Convolution(const std::string& results, const std::string& body) {
  return R"(
func.func @f(%s: tensor<24x24x3x3xf32> {mpc.state = #mpc.state<parameter, "s">}, %x: tensor<2x9x7x24xf32>) -> ()" +
         results + R"() attributes {mpc.step} {
  %y = mpc.conv2d %x, %s {data_format = "NHWC", pad_mode = "same"} : (tensor<2x9x7x24xf32>, tensor<24x24x3x3xf32>)
      -> tensor<2x9x7x24xf32>
)" + body +
         "\n}";
}

std::vector<std::string> KernelsOf(const runtime::Program& program) {
  std::vector<std::string> kernels;
  for (const runtime::Instruction& instruction : program.step().instructions) kernels.push_back(instruction.kernel);
  return kernels;
}

TEST(Lowering, WeightsThatAStepUpdatesArePackedInEveryRun) {
  const absl::StatusOr<runtime::Program> program =
      Lower(Convolution(R"(tensor<2x9x7x24xf32>, tensor<24x24x3x3xf32> {mpc.state = #mpc.state<parameter, "s">})",
                        R"(  %z = mpc.relu %y : (tensor<2x9x7x24xf32>) -> tensor<2x9x7x24xf32>
  %n = mpc.neg %s : (tensor<24x24x3x3xf32>) -> tensor<24x24x3x3xf32>
  return %z, %n : tensor<2x9x7x24xf32>, tensor<24x24x3x3xf32>)"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(KernelsOf(*program), ElementsAre("pack_weight", "conv2d", "relu", "neg"));
  EXPECT_TRUE(program->refreshes.empty());
  const runtime::Instruction &pack = program->step().instructions[0], &convolution = program->step().instructions[1];
  EXPECT_EQ(convolution.inputs[1], pack.outputs[0]);
  EXPECT_EQ(program->state[program->values[pack.inputs[0]].index].name, "s");
  EXPECT_EQ(program->values[pack.outputs[0]].storage, runtime::Storage::kTemporary);
}

TEST(Lowering, WeightsThatAStepOnlyReadsArePackedOnce) {
  const absl::StatusOr<runtime::Program> program = Lower(Convolution(
      "tensor<2x9x7x24xf32>, tensor<2x9x7x24xf32>",
      R"(  %z = mpc.conv2d %y, %s {data_format = "NHWC", pad_mode = "same"} : (tensor<2x9x7x24xf32>, tensor<24x24x3x3xf32>)
      -> tensor<2x9x7x24xf32>
  return %y, %z : tensor<2x9x7x24xf32>, tensor<2x9x7x24xf32>)"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(KernelsOf(*program), ElementsAre("conv2d", "conv2d"));
  ASSERT_EQ(program->refreshes.size(), 1u) << "both read one packing";
  const runtime::StateRefresh& refresh = program->refreshes[0];
  EXPECT_EQ(refresh.instruction.kernel, "pack_weight");
  EXPECT_EQ(program->state[refresh.source].name, "s");
  EXPECT_EQ(program->state[refresh.derived].role, Role::kDerived);
  EXPECT_THAT(program->state[refresh.derived].name, StartsWith("s.packed.f32."));
  for (const runtime::Instruction& convolution : program->step().instructions) {
    EXPECT_EQ(convolution.inputs[1], refresh.instruction.outputs[0]);
  }
}

TEST(Lowering, WeightsOfAccumulatedStepsArePackedWhenTheyWereUpdated) {
  const std::string weight = "tensor<24x24x3x3xf32>", image = "tensor<2x9x7x24xf32>";
  const auto state = [&](const std::string& is) { return weight + " {mpc.state = #mpc.state<" + is + ">}"; };
  const std::string convolve = "mpc.conv2d %x, %w {data_format = \"NHWC\", pad_mode = \"same\"} : (" + image + ", " +
                               weight + ") -> " + image + "\n";
  const std::string states = state("parameter, \"w\"") + ", %v: " + state("slot, \"v\", of = \"w\"") +
                             ", %a: " + state("accumulator, \"a\", of = \"w\"");
  const absl::StatusOr<runtime::Program> program = Lower(
      "func.func @f(%x: " + image + ", %g: " + weight + ", %r: tensor<f32>, %p: tensor<i1>, %w: " + states + ") -> (" +
      image + ", " + state("parameter, \"w\"") + ", " + state("slot, \"v\"") + ", " + state("accumulator, \"a\"") +
      ") attributes {mpc.step} {\n%y = " + convolve + "%w1, %v1 = mpc.momentum %w, %v, %g, %r, %p : (" + weight + ", " +
      weight + ", " + weight + ", tensor<f32>, tensor<i1>) -> (" + weight + ", " + weight +
      ")\n%a1 = mpc.add %a, %g : (" + weight + ", " + weight + ") -> " + weight +
      "\nreturn %y, %w1, %v1, %a1 : " + image + ", " + weight + ", " + weight + ", " + weight + "\n}");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(KernelsOf(*program), ElementsAre("conv2d", "momentum", "add"));
  ASSERT_EQ(program->refreshes.size(), 1u);
  EXPECT_THAT(program->state[program->refreshes[0].derived].name, StartsWith("w.packed.f32."));
}

TEST(Lowering, PackedWeightsAreNoStateWhereMemoryIsShort) {
  runtime::PlanOptions options;
  options.keep_packed_weights = false;
  const absl::StatusOr<runtime::Program> program =
      Lower(Convolution("tensor<2x9x7x24xf32>", "  return %y : tensor<2x9x7x24xf32>"), Cpu(), options);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(KernelsOf(*program), ElementsAre("pack_weight", "conv2d"));
  EXPECT_TRUE(program->refreshes.empty());
}

TEST(Lowering, PackingFollowsTheLowCopyBehindWhatRebuildsThat) {
  const absl::StatusOr<runtime::Program> program = Lower(R"(
func.func @predict(%x: tensor<2x9x7x24xf16>, %w: tensor<24x24x3x3xf32> {mpc.state = #mpc.state<parameter, "w">},
                   %s: tensor<24x24x3x3xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}) -> tensor<2x9x7x24xf16> attributes {mpc.step} {
  %y = mpc.conv2d %x, %s {data_format = "NHWC", pad_mode = "same"} : (tensor<2x9x7x24xf16>, tensor<24x24x3x3xf16>)
      -> tensor<2x9x7x24xf16>
  return %y : tensor<2x9x7x24xf16>
})");
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->refreshes.size(), 2u);
  EXPECT_EQ(program->refreshes[0].instruction.kernel, "cast");
  EXPECT_EQ(program->refreshes[1].instruction.kernel, "pack_weight");
  EXPECT_EQ(program->refreshes[1].source, program->refreshes[0].derived);
  EXPECT_GE(program->arena_bytes, program->refreshes[1].instruction.workspace_bytes);
  runtime::Program early = *program;
  std::swap(early.refreshes[0], early.refreshes[1]);
  EXPECT_THAT(std::string(runtime::CheckProgram(early).message()),
              HasSubstr("reads derived state \"w.f16\" before it is rebuilt"));
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

// Two updates with a shared rate. The gradient of %b is made first.
constexpr std::string_view kTwoUpdates = R"(
func.func @step(%a: tensor<6xf32> {mpc.state = #mpc.state<parameter, "a">},
                %va: tensor<6xf32> {mpc.state = #mpc.state<slot, "va">},
                %b: tensor<2x70xf32> {mpc.state = #mpc.state<parameter, "b">},
                %vb: tensor<2x70xf32> {mpc.state = #mpc.state<slot, "vb">}, %rate: tensor<f32>)
    -> (tensor<6xf32> {mpc.state = #mpc.state<parameter, "a">}, tensor<6xf32> {mpc.state = #mpc.state<slot, "va">},
        tensor<2x70xf32> {mpc.state = #mpc.state<parameter, "b">},
        tensor<2x70xf32> {mpc.state = #mpc.state<slot, "vb">}) attributes {mpc.step} {
  %gb = mpc.exp %b : (tensor<2x70xf32>) -> tensor<2x70xf32>
  %ga = mpc.exp %a : (tensor<6xf32>) -> tensor<6xf32>
  %a1, %va1 = mpc.momentum %a, %va, %ga, %rate {mpc.flat_group = 0 : i64}
      : (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<6xf32>, tensor<6xf32>)
  %b1, %vb1 = mpc.momentum %b, %vb, %gb, %rate {mpc.flat_group = 0 : i64}
      : (tensor<2x70xf32>, tensor<2x70xf32>, tensor<2x70xf32>, tensor<f32>) -> (tensor<2x70xf32>, tensor<2x70xf32>)
  return %a1, %va1, %b1, %vb1 : tensor<6xf32>, tensor<6xf32>, tensor<2x70xf32>, tensor<2x70xf32>
})";

TEST(Lowering, GradientsOfUpdatesThatAgreeLieInOneBuffer) {
  const absl::StatusOr<runtime::Program> program = Lower(kTwoUpdates);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->flat_updates.size(), 1u);
  EXPECT_EQ(program->flat_updates[0].first, 2u);
  EXPECT_THAT(program->flat_updates[0].offsets, ElementsAre(160, 0)) << "in the order of their lives";
  const auto gradient = [&](std::size_t i) {
    return program->values[program->step().instructions.at(i).inputs.at(2)].offset;
  };
  EXPECT_EQ(gradient(2), gradient(3) + 4 * 160);
}

TEST(Lowering, UpdatesOfNoOneGroupAreNotFlat) {
  for (const char* other : {"", "{mpc.flat_group = 1 : i64}"}) {
    std::string text(kTwoUpdates);
    text.replace(text.rfind("{mpc.flat_group = 0 : i64}"), std::string("{mpc.flat_group = 0 : i64}").size(), other);
    const absl::StatusOr<runtime::Program> program = Lower(text);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_TRUE(program->flat_updates.empty()) << text;
  }
}

TEST(Lowering, ElementwiseUpdatesAreThoseThatTheRuntimeTakesTogether) {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  int found = 0;
  for (const mlir::RegisteredOperationName& name : context->getRegisteredOperationsByDialect("mpc")) {
    const bool elementwise = name.hasTrait<HasProperty<Property::ElementwiseUpdate>::Impl>();
    EXPECT_EQ(elementwise, runtime::IsElementwiseUpdate(name.stripDialect().str())) << name.getStringRef().str();
    found += elementwise;
  }
  EXPECT_EQ(found, 5);
}

// Lowering asks for predicates before there are instructions, so that the runtime cannot answer for it.
TEST(Lowering, OptimizersAreThoseWhosePredicatesTheRuntimeFinds) {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  int found = 0;
  for (const mlir::RegisteredOperationName& name : context->getRegisteredOperationsByDialect("mpc")) {
    const bool is_optimizer = name.hasInterface<OptimizerOpInterface>();
    EXPECT_EQ(is_optimizer, runtime::IsOptimizer(name.stripDialect().str())) << name.getStringRef().str();
    found += is_optimizer;
  }
  EXPECT_EQ(found, 6);
}

// Each group of updates begins at a line of its own in the buffer that they share.
TEST(Lowering, GradientsOfSeveralGroupsLieInOneBuffer) {
  const auto of_each = [](const std::vector<std::string>& names, const std::string& pattern, const char* between) {
    return absl::StrJoin(names, between, [&](std::string* out, const std::string& name) {
      absl::StrAppend(out, absl::StrReplaceAll(pattern, {{"$", name}}));
    });
  };
  const std::vector<std::string> plain = {"a", "b"}, decaying = {"c", "d"}, all = {"a", "b", "c", "d"};
  const std::string states =
      R"(tensor<6xf32> {mpc.state = #mpc.state<parameter, "$">}, @tensor<6xf32> {mpc.state = #mpc.state<slot, "v$">})";
  const std::string momentum =
      "%$1, %v$1 = mpc.momentum %$, %v$, %g$, %rate @: (tensor<6xf32>, tensor<6xf32>, "
      "tensor<6xf32>, tensor<f32>) -> (tensor<6xf32>, tensor<6xf32>)";
  const auto with = [](const std::string& pattern, const char* text) {
    return absl::StrReplaceAll(pattern, {{"@", text}});
  };
  const absl::StatusOr<runtime::Program> program = Lower(absl::StrCat(
      "func.func @step(", of_each(all, "%$: " + with(states, "%v$: "), ", "), ", %rate: tensor<f32>) -> (",
      of_each(all, with(states, ""), ", "), ") attributes {mpc.step} {\n",
      of_each(all, "%g$ = mpc.exp %$ : (tensor<6xf32>) -> tensor<6xf32>", "\n"), "\n",
      of_each(plain, with(momentum, "{mpc.flat_group = 0 : i64} "), "\n"), "\n",
      of_each(decaying, with(momentum, "{mpc.flat_group = 1 : i64, weight_decay = 0.1 : f32} "), "\n"), "\nreturn ",
      of_each(all, "%$1, %v$1", ", "), " : ", of_each(all, "tensor<6xf32>, tensor<6xf32>", ", "), "\n}"));
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->flat_updates.size(), 2u);
  for (const runtime::FlatUpdate& update : program->flat_updates) EXPECT_EQ(update.offsets.size(), 2u);
}

TEST(Lowering, FlatBuffersMayMakeTheArenaLargerWhereThatIsAllowed) {
  const auto lower = [](double share) {
    runtime::PlanOptions options;
    options.flat_share = share;
    const absl::StatusOr<runtime::Program> program = Lower(kTwoUpdates, Cpu(), options);
    EXPECT_TRUE(program.ok()) << program.status();
    return program.value_or(runtime::Program());
  };
  const std::size_t least = lower(-1).arena_bytes;
  EXPECT_GT(lower(0.005).arena_bytes, least) << "padding";
  for (double share : {0.0, -1.0}) {
    EXPECT_TRUE(lower(share).flat_updates.empty()) << share;
    EXPECT_EQ(lower(share).arena_bytes, least) << share;
  }
}

}  // namespace
}  // namespace mpc
