// Functions that a step calls, from IR to what both executors run: beside the interpreter, and what becomes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/dialect/target_model.h"
#include "compiler/driver/compiler.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/lowering/lowering.h"
#include "compiler/module/parse_module.h"
#include "runtime/choose_kernels.h"
#include "runtime/program_file.h"
#include "tests/compiler/op_case_module.h"
#include "tests/cuda/network_device.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/runtime/program_audit.h"
#include "tests/runtime/program_builder.h"

namespace mpc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A module whose function @forward takes tensors of f32.
struct Case {
  std::string name;
  std::string text;
  std::vector<std::vector<std::int64_t>> inputs;  ///< shapes
};

void PrintTo(const Case& each, std::ostream* stream) { *stream << each.name; }

// A temporary of the body lies in the arena of the step; the second argument is the same in every call.
constexpr char kGeometric[] = R"(
func.func private @step(%x: tensor<5x7xf32>, %r: tensor<7xf32>) -> tensor<5x7xf32> attributes {mpc.sequence} {
  %0 = mpc.mul %x, %r : (tensor<5x7xf32>, tensor<7xf32>) -> tensor<5x7xf32>
  %1 = mpc.neg %0 : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %2 = mpc.add %1, %x : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  return %2 : tensor<5x7xf32>
}
func.func @forward(%x: tensor<5x7xf32>, %r: tensor<7xf32>) -> (tensor<5x7xf32>, tensor<5x7xf32>) {
  %a = mpc.neg %x : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %y = mpc.repeat @step(%a, %r) {count = 5 : i64} : (tensor<5x7xf32>, tensor<7xf32>) -> tensor<5x7xf32>
  %z = mpc.add %y, %x : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  return %z, %a : tensor<5x7xf32>, tensor<5x7xf32>
})";

// Old values that change places, one that stays, one that becomes an argument.
constexpr char kFibonacci[] = R"(
func.func private @next(%a: tensor<9xf32>, %b: tensor<9xf32>, %same: tensor<9xf32>, %late: tensor<9xf32>,
                        %first: tensor<9xf32>)
    -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) attributes {mpc.sequence} {
  %sum = mpc.add %a, %b : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
  return %b, %sum, %same, %first : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
}
func.func @forward(%a: tensor<9xf32>, %b: tensor<9xf32>)
    -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
  %r:4 = mpc.repeat @next(%a, %b, %a, %b, %a) {count = 7 : i64}
      : (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>)
     -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
})";

// Calls in calls, twice the same function, views of arguments and of results, constants, a result that nothing reads.
constexpr char kNested[] = R"(
func.func private @inner(%x: tensor<12xf32>, %w: tensor<3x4xf32>) -> tensor<12xf32> attributes {mpc.sequence} {
  %half = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %m = mpc.reshape %x {shape = array<i64: 3, 4>} : (tensor<12xf32>) -> tensor<3x4xf32>
  %p = mpc.mul %m, %w : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %h = mpc.mul %p, %half : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %y = mpc.reshape %h {shape = array<i64: 12>} : (tensor<3x4xf32>) -> tensor<12xf32>
  return %y : tensor<12xf32>
}
func.func private @outer(%x: tensor<12xf32>, %count: tensor<12xf32>, %v: tensor<12xf32>)
    -> (tensor<12xf32>, tensor<12xf32>) attributes {mpc.sequence} {
  %one = mpc.constant {value = dense<1.0> : tensor<12xf32>} : () -> tensor<12xf32>
  %w = mpc.reshape %v {shape = array<i64: 3, 4>} : (tensor<12xf32>) -> tensor<3x4xf32>
  %y = mpc.repeat @inner(%x, %w) {count = 2 : i64} : (tensor<12xf32>, tensor<3x4xf32>) -> tensor<12xf32>
  %z = mpc.add %y, %count : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  %n = mpc.add %count, %one : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  return %z, %n : tensor<12xf32>, tensor<12xf32>
}
func.func @forward(%x: tensor<12xf32>, %v: tensor<12xf32>) -> (tensor<12xf32>, tensor<12xf32>) {
  %zero = mpc.constant {value = dense<0.0> : tensor<12xf32>} : () -> tensor<12xf32>
  %m = mpc.reshape %v {shape = array<i64: 3, 4>} : (tensor<12xf32>) -> tensor<3x4xf32>
  %a:2 = mpc.repeat @outer(%x, %zero, %v) {count = 3 : i64}
      : (tensor<12xf32>, tensor<12xf32>, tensor<12xf32>) -> (tensor<12xf32>, tensor<12xf32>)
  %b = mpc.repeat @inner(%a#0, %m) {count = 1 : i64} : (tensor<12xf32>, tensor<3x4xf32>) -> tensor<12xf32>
  %c:2 = mpc.repeat @outer(%b, %a#1, %x) {count = 2 : i64}
      : (tensor<12xf32>, tensor<12xf32>, tensor<12xf32>) -> (tensor<12xf32>, tensor<12xf32>)
  return %c#0, %b : tensor<12xf32>, tensor<12xf32>
})";

// What nobody reads of a call is written all the same, since the body carries it.
constexpr char kUnread[] = R"(
func.func private @count(%n: tensor<3xf32>, %x: tensor<3xf32>, %by: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
    attributes {mpc.sequence} {
  %n1 = mpc.add %n, %by : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %x1 = mpc.mul %x, %n1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %n1, %x1 : tensor<3xf32>, tensor<3xf32>
}
func.func @forward(%x: tensor<3xf32>, %by: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %a = mpc.neg %x : (tensor<3xf32>) -> tensor<3xf32>
  %r:2 = mpc.repeat @count(%by, %a, %by) {count = 3 : i64}
      : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  %unread:2 = mpc.repeat @count(%r#1, %by, %x) {count = 2 : i64}
      : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  %y = mpc.add %r#1, %a : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y, %r#1 : tensor<3xf32>, tensor<3xf32>
})";

// Calls in calls beside a larger value, in front of which they do not lie.
constexpr char kBesides[] = R"(
func.func private @inner(%x: tensor<12xf32>, %s: tensor<f32>) -> tensor<12xf32> attributes {mpc.sequence} {
  %a = mpc.mul %x, %s : (tensor<12xf32>, tensor<f32>) -> tensor<12xf32>
  %b = mpc.neg %x : (tensor<12xf32>) -> tensor<12xf32>
  %c = mpc.add %b, %a : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  %d = mpc.mul %c, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  return %d : tensor<12xf32>
}
func.func private @outer(%x: tensor<12xf32>, %s: tensor<f32>) -> tensor<12xf32> attributes {mpc.sequence} {
  %n = mpc.neg %x : (tensor<12xf32>) -> tensor<12xf32>
  %y = mpc.repeat @inner(%n, %s) {count = 2 : i64} : (tensor<12xf32>, tensor<f32>) -> tensor<12xf32>
  %z = mpc.add %y, %n : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  return %z : tensor<12xf32>
}
func.func @forward(%x: tensor<12xf32>, %large: tensor<16x16xf32>) -> (tensor<12xf32>, tensor<16x16xf32>) {
  %n = mpc.neg %large : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %s = mpc.reduce_max %n {axes = array<i64: 0, 1>} : (tensor<16x16xf32>) -> tensor<f32>
  %y = mpc.repeat @outer(%x, %s) {count = 2 : i64} : (tensor<12xf32>, tensor<f32>) -> tensor<12xf32>
  return %y, %n : tensor<12xf32>, tensor<16x16xf32>
})";

class Sequences : public ::testing::TestWithParam<Case> {};

std::vector<float> Numbers(std::int64_t count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>((i * 29 + 7) % 13) + first;
  return values;
}

std::vector<std::vector<float>> InputsOf(const Case& each) {
  std::vector<std::vector<float>> inputs;
  for (const std::vector<std::int64_t>& shape : each.inputs) {
    inputs.push_back(Numbers(TensorSpec{DType::kF32, shape}.num_elements(), -1.5f + static_cast<float>(inputs.size())));
  }
  return inputs;
}

std::vector<std::vector<float>> Interpret(const Case& each) {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = ParseModule(*context, each.text);
  std::vector<reference::Tensor> inputs;
  for (const std::vector<float>& values : InputsOf(each)) {
    inputs.push_back({{DType::kF32, each.inputs[inputs.size()]}, {values.begin(), values.end()}});
  }
  const std::vector<reference::Tensor> results =
      interpret(module->lookupSymbol<mlir::func::FuncOp>("forward"), inputs).value();
  std::vector<std::vector<float>> outputs;
  for (const reference::Tensor& tensor : results) outputs.emplace_back(tensor.values.begin(), tensor.values.end());
  return outputs;
}

runtime::Program Compile(const std::string& text, const std::string& device, bool fusion) {
  compiler::CompileOptions options;
  options.function = "forward";
  options.device = device;
  options.fusion = fusion;
  options.cache_dir = "off";
  runtime::Program program = compiler::Compile(compiler::ParseModule(text).value(), options).value().program;
  EXPECT_THAT(runtime::AuditProgram(program, **runtime::GetDevice(device)), IsEmpty());
  return program;
}

std::vector<std::vector<float>> OutputsOf(const runtime::Executable& executable) {
  std::vector<std::vector<float>> outputs;
  for (std::size_t i = 0; i < executable.program().outputs.size(); ++i) {
    outputs.push_back(runtime::ValuesOf<float>(executable.output(i)));
  }
  return outputs;
}

/// The outputs of the second of two runs, which begins with what the first has left.
std::vector<std::vector<float>> OutputsOfTwoRuns(const runtime::Program& program, const Case& each) {
  const runtime::Device& device = **runtime::GetDevice(program.device);
  auto executable = device.Load(std::make_shared<const runtime::Program>(program), runtime::StateStore());
  EXPECT_TRUE(executable.ok()) << executable.status();
  if (!executable.ok()) return {};
  const std::vector<std::vector<float>> inputs = InputsOf(each);
  std::vector<absl::Span<const std::uint8_t>> bytes;
  for (const std::vector<float>& input : inputs) bytes.push_back(runtime::BytesOf(input));
  EXPECT_TRUE((*executable)->Run(bytes).ok());
  const absl::StatusOr<std::vector<runtime::InstructionTime>> times = (*executable)->RunTimed(bytes);
  EXPECT_TRUE(times.ok()) << times.status();
  if (times.ok()) {
    EXPECT_THAT(*times, SizeIs(program.step().instructions.size())) << "one time a call of the step";
  }
  return OutputsOf(**executable);
}

// Sums and products of two f32, each rounded once: the reference rounds the same.
TEST_P(Sequences, RunOnTheCpuAsTheInterpreterSays) {
  const std::vector<std::vector<float>> expected = Interpret(GetParam());
  for (const bool fusion : {false, true}) {
    const runtime::Program program = Compile(GetParam().text, "cpu", fusion);
    EXPECT_GT(program.sequences.size(), 1u);
    EXPECT_EQ(OutputsOfTwoRuns(program, GetParam()), expected) << "fusion " << fusion;
  }
}

TEST_P(Sequences, RunOnAGpuAsTheInterpreterSays) {
  ASSERT_TRUE(test::NetworkDeviceStatus().ok()) << test::NetworkDeviceStatus();
  EXPECT_EQ(OutputsOfTwoRuns(Compile(GetParam().text, "cuda", false), GetParam()), Interpret(GetParam()));
  EXPECT_THAT(test::NetworkDeviceProblems(), IsEmpty());
}

TEST_P(Sequences, RunFromAFile) {
  runtime::Package package;
  package.programs.push_back(Compile(GetParam().text, "cpu", true));
  ASSERT_TRUE(compiler::LinkGeneratedCode(package.programs[0]).ok());
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(runtime::WriteProgramFile(folder / "net.mpcx", package).ok());
  const absl::StatusOr<runtime::Package> read = runtime::ReadProgramFile(folder / "net.mpcx");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(OutputsOfTwoRuns(read->programs[0], GetParam()), Interpret(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Calls, Sequences,
                         ::testing::Values(Case{"Geometric", kGeometric, {{5, 7}, {7}}},
                                           Case{"Fibonacci", kFibonacci, {{9}, {9}}},
                                           Case{"Nested", kNested, {{12}, {12}}}, Case{"Unread", kUnread, {{3}, {3}}},
                                           Case{"Besides", kBesides, {{12}, {16, 16}}}),
                         [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST(Sequence, LiesInTheWorkspaceOfItsCall) {
  const runtime::Program program = Compile(kGeometric, "cpu", false);
  ASSERT_THAT(program.sequences, SizeIs(2));
  EXPECT_EQ(program.sequences[1].name, "step");
  const runtime::Instruction& call = program.step().instructions[1];
  ASSERT_EQ(call.kernel, "repeat");
  EXPECT_EQ(call.sequence, 1);
  EXPECT_EQ(call.attributes.GetInt(runtime::kRepeatCount), 5);
  // The product alone: its negation is written over it, and the sum over the old value, which is the result.
  EXPECT_EQ(call.workspace_bytes, 192u);
  const std::vector<runtime::Instruction>& body = program.sequences[1].instructions;
  ASSERT_THAT(body, SizeIs(3));
  EXPECT_THAT(program.sequences[1].copies, IsEmpty());
  const auto offset = [&](runtime::ValueId id) { return program.values[id].offset; };
  EXPECT_EQ(offset(body[0].outputs[0]), call.workspace_offset);
  EXPECT_EQ(offset(body[1].outputs[0]), call.workspace_offset);
  EXPECT_EQ(offset(body[2].outputs[0]), offset(call.outputs[0]));
}

TEST(Sequence, CopiesWhatItCannotUpdateInPlace) {
  const runtime::Program program = Compile(kFibonacci, "cpu", false);
  const std::vector<runtime::ValueCopy>& copies = program.sequences[1].copies;
  ASSERT_THAT(copies, SizeIs(2)) << "the value that stays and the sum, which is written over %b, need none";
  for (const runtime::ValueCopy& copy : copies) EXPECT_THAT(copy.reason, HasSubstr("another state or an input"));
}

TEST(Sequence, CopiesWhatIsReadTwice) {
  const runtime::Program program = Compile(R"(
func.func private @double(%x: tensor<3xf32>) -> tensor<3xf32> attributes {mpc.sequence} {
  %y = mpc.add %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func @forward(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = mpc.repeat @double(%x) {count = 2 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
})",
                                           "cpu", false);
  ASSERT_THAT(program.sequences[1].copies, SizeIs(1));
  EXPECT_THAT(program.sequences[1].copies[0].reason, HasSubstr("mpc.add reads the old value twice"));
}

// A sequence's workspace, and that of what it calls, move with the call.
TEST(Sequence, MovesBehindLargerValues) {
  const runtime::Program program = Compile(kBesides, "cpu", false);
  ASSERT_THAT(program.sequences, SizeIs(3));
  const auto call_of = [](const runtime::Sequence& sequence) {
    for (const runtime::Instruction& each : sequence.instructions) {
      if (each.sequence != 0) return each;
    }
    return runtime::Instruction();
  };
  const runtime::Instruction outer = call_of(program.step()), inner = call_of(program.sequences[1]);
  EXPECT_GT(outer.workspace_offset, 0u);
  EXPECT_GE(inner.workspace_offset, outer.workspace_offset);
  EXPECT_LE(inner.workspace_offset + inner.workspace_bytes, outer.workspace_offset + outer.workspace_bytes);
  for (const runtime::Instruction& each : program.sequences[2].instructions) {
    const runtime::Value& result = program.values[each.outputs[0]];
    const bool is_carried = result.offset == program.values[inner.outputs[0]].offset;
    EXPECT_TRUE(is_carried || (result.offset >= inner.workspace_offset &&
                               result.offset < inner.workspace_offset + inner.workspace_bytes));
  }
}

// What the schedule counts on is what lowering needs, copies of old values aside.
TEST(Sequence, IsCountedByTheTarget) {
  for (const char* text : {kGeometric, kNested}) {
    const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
    mlir::OwningOpRef<mlir::ModuleOp> module = ParseModule(*context, text);
    const auto forward = module->lookupSymbol<mlir::func::FuncOp>("forward");
    llvm::FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(forward);
    ASSERT_TRUE(mlir::succeeded(target));
    const auto workspace = [&](mlir::Operation* op) { return (*target)->kernelPlan(op).workspaceBytes; };
    const absl::StatusOr<runtime::Program> program = compiler::lowerToProgram(forward, **runtime::GetDevice("cpu"));
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ((*target)->arenaBytes(forward, workspace, SIZE_MAX), program->arena_bytes);
  }
}

absl::Status CompileError(const std::string& text, const std::string& function = "forward") {
  compiler::CompileOptions options;
  options.function = function;
  return compiler::Compile(compiler::ParseModule(text).value(), options).status();
}

TEST(Sequence, IsNoProgramByItself) {
  const absl::Status status = CompileError(kGeometric, "step");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("@step is a sequence; a step that calls it becomes a Program"));
}

/// @f0 is the identity, each @f<i> repeats the one before it, `calls` times over, and @forward the last.
std::string Tower(int height, int calls, std::int64_t count) {
  std::string text = R"(
func.func private @f0(%x: tensor<1xf32>) -> tensor<1xf32> attributes {mpc.sequence} {
  return %x : tensor<1xf32>
})";
  for (int i = 1; i <= height; ++i) {
    const std::string head = i == height ? "func.func @forward(" : absl::StrCat("func.func private @f", i, "(");
    absl::StrAppend(&text, "\n", head, "%x0: tensor<1xf32>) -> tensor<1xf32>",
                    i == height ? "" : " attributes {mpc.sequence}", " {\n");
    for (int call = 0; call < calls; ++call) {
      absl::StrAppend(&text, "  %x", call + 1, " = mpc.repeat @f", i - 1, "(%x", call, ") {count = ", count,
                      " : i64} : (tensor<1xf32>) -> tensor<1xf32>\n");
    }
    absl::StrAppend(&text, "  return %x", calls, " : tensor<1xf32>\n}");
  }
  return text;
}

TEST(Sequence, IsRefusedBeyondTheLimitsOfAProgram) {
  EXPECT_TRUE(CompileError(Tower(64, 1, 1)).ok()) << CompileError(Tower(64, 1, 1));
  EXPECT_THAT(std::string(CompileError(Tower(65, 1, 1)).message()),
              HasSubstr("the call of @f0 makes sequences lie deeper than 64, the most that a Program has"));
  EXPECT_THAT(std::string(CompileError(Tower(12, 2, 1)).message()), HasSubstr("makes more sequences than 4096"));
  EXPECT_TRUE(CompileError(Tower(2, 1, 1023)).ok()) << "1023 runs of the one, 1023 of the other in each";
  EXPECT_THAT(std::string(CompileError(Tower(2, 1, 1024)).message()),
              HasSubstr("the call of @f0 makes sequences run more often in a step than 1048576"));
  // What is refused is not looked at in all its depth before.
  EXPECT_THAT(std::string(CompileError(Tower(40, 2, 1)).message()), HasSubstr("makes more sequences than 4096"));
}

// Other threads want other workspaces and packed weights.
TEST(Sequence, IsPlannedAgainForOtherThreads) {
  const Case each = {"Nested", kNested, {{12}, {12}}};
  runtime::Program program = Compile(each.text, "cpu", false);
  const runtime::Device& cpu = **runtime::GetDevice("cpu");
  ASSERT_TRUE(runtime::EnlargeWorkspaces(cpu, program).ok());
  ASSERT_TRUE(runtime::RepackWeights(cpu, program).ok());
  EXPECT_EQ(OutputsOfTwoRuns(program, each), Interpret(each));
}

// Values of a sequence are measured by what it returns.
TEST(Sequence, IsMeasuredAsOneOperation) {
  compiler::CompileOptions options;
  options.function = "forward";
  options.instrument = true;
  const auto result = compiler::Compile(compiler::ParseModule(kGeometric).value(), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->program.sequences, SizeIs(2));
}

// State goes in as an argument of every call, and out by a copy.
TEST(Sequence, ReadsStateAndBecomesState) {
  const std::string text = R"(
func.func private @decay(%w: tensor<6xf32>, %g: tensor<6xf32>) -> tensor<6xf32> attributes {mpc.sequence} {
  %0 = mpc.add %w, %g : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
func.func @forward(%w: tensor<6xf32> {mpc.state = #mpc.state<parameter, "w">},
                   %g: tensor<6xf32> {mpc.state = #mpc.state<parameter, "g">})
    -> (tensor<6xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<6xf32>) attributes {mpc.step} {
  %w1 = mpc.repeat @decay(%w, %g) {count = 3 : i64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %y = mpc.neg %w : (tensor<6xf32>) -> tensor<6xf32>
  return %w1, %y : tensor<6xf32>, tensor<6xf32>
})";
  ASSERT_TRUE(test::NetworkDeviceStatus().ok());
  for (const std::string device : {"cpu", "cuda"}) {
    const runtime::Program program = Compile(text, device, false);
    ASSERT_THAT(program.step().copies, SizeIs(1));
    runtime::StateStore store;
    const std::vector<float> w = Numbers(6, 1), g = Numbers(6, -0.5f);
    auto entry = runtime::AddEntry(store, "w", w);
    runtime::AddEntry(store, "g", g);
    auto executable = (*runtime::GetDevice(device))->Load(std::make_shared<const runtime::Program>(program), store);
    ASSERT_TRUE(executable.ok()) << executable.status();
    for (int step = 0; step < 2; ++step) ASSERT_TRUE((*executable)->Run({}).ok());
    ASSERT_TRUE(entry->FetchToHost().ok());
    const std::vector<float> y = OutputsOf(**executable)[0], updated = runtime::FloatsOf(*entry);
    for (std::size_t i = 0; i < w.size(); ++i) {
      float expected = w[i];
      for (int call = 0; call < 3; ++call) expected += g[i];
      EXPECT_EQ(y[i], -expected) << device << " " << i;
      for (int call = 0; call < 3; ++call) expected += g[i];
      EXPECT_EQ(updated[i], expected) << device << " " << i;
    }
  }
}

// The weights of a product that a sequence calls again and again are packed once, before the step.
TEST(Sequence, MultipliesByWeightsThatAreState) {
  const std::string text = R"(
func.func private @layer(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {mpc.sequence} {
  %0 = mpc.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = mpc.relu %0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
func.func @forward(%x: tensor<64x64xf32>, %w: tensor<64x64xf32> {mpc.state = #mpc.state<parameter, "w">})
    -> tensor<64x64xf32> attributes {mpc.step} {
  %y = mpc.repeat @layer(%x, %w) {count = 2 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
})";
  for (const std::string device : {"cpu", "cuda"}) {
    ASSERT_TRUE(test::NetworkDeviceStatus().ok());
    const runtime::Program program = Compile(text, device, false);
    // Zeros and ones, so that sums are exact: a permutation moves the columns of x twice.
    std::vector<float> w(64 * 64, 0), x = Numbers(64 * 64, 0.5f);
    for (std::size_t row = 0; row < 64; ++row) w[row * 64 + (5 * row + 3) % 64] = 1;
    runtime::StateStore store;
    for (const runtime::StateBinding& binding : program.state) {
      auto entry = std::make_shared<runtime::StateEntry>(binding.name, binding.role, binding.spec);
      if (binding.name == "w") {
        ASSERT_TRUE(entry->Write(runtime::BytesOf(w)).ok());
      }
      ASSERT_TRUE(store.Add(entry).ok());
    }
    auto executable = (*runtime::GetDevice(device))->Load(std::make_shared<const runtime::Program>(program), store);
    ASSERT_TRUE(executable.ok()) << executable.status();
    ASSERT_TRUE((*executable)->Run({runtime::BytesOf(x)}).ok());
    const std::vector<float> y = OutputsOf(**executable)[0];
    for (std::size_t row = 0; row < 64; ++row) {
      for (std::size_t column = 0; column < 64; ++column) {
        const std::size_t moved = (5 * ((5 * column + 3) % 64) + 3) % 64;
        ASSERT_EQ(y[row * 64 + moved], x[row * 64 + column]) << device << " " << row << " " << column;
      }
    }
  }
}

}  // namespace
}  // namespace mpc
