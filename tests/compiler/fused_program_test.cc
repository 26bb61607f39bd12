// Functions with regions, from IR to a step: beside the interpreter, in place, saved and run without the compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "compiler/driver/compiler.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/lowering/lowering.h"
#include "compiler/module/parse_module.h"
#include "kernels/cpu/kernel.h"
#include "runtime/program_check.h"
#include "runtime/program_file.h"
#include "tests/compiler/op_case_module.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/runtime/program_builder.h"

namespace mpc {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const runtime::Device& Cpu() { return **runtime::GetDevice("cpu"); }

/// The Program of the first function of `text`, compiled without a cache.
absl::StatusOr<runtime::Program> Lower(const std::string& text) {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = ParseModule(*context, text);
  if (!module) return absl::InternalError("the test's module does not parse");
  const mlir::func::FuncOp function = *module->getOps<mlir::func::FuncOp>().begin();
  llvm::Expected<codegen::GeneratedCode> code =
      codegen::generateCode(function, llvm::cantFail(codegen::hostTarget()), {"", 1});
  if (!code) return absl::InternalError(llvm::toString(code.takeError()));
  absl::StatusOr<runtime::Program> program = compiler::lowerToProgram(function, Cpu(), {}, std::move(*code));
  if (program.ok()) {
    const absl::Status check = runtime::CheckProgram(*program);
    EXPECT_TRUE(check.ok()) << check;
  }
  return program;
}

std::vector<float> Numbers(std::size_t count, float first) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + 0.37f * static_cast<float>((i * 29) % 41) - 7;
  return values;
}

reference::Tensor TensorOf(const TensorSpec& spec, const std::vector<float>& values) {
  return {spec, std::vector<double>(values.begin(), values.end())};
}

/// A bias, an activation and a residual in one region; what goes out of it is used inside the function and outside.
constexpr char kForward[] = R"(
func.func @forward(%x: tensor<32x84xf32> {mpc.state = #mpc.state<input, "x">}, %b: tensor<84xf32> {mpc.state = #mpc.state<input, "b">})
    -> (tensor<32x84xf32>, tensor<32x84xf32>) {
  %n = mpc.neg %x : (tensor<32x84xf32>) -> tensor<32x84xf32>
  %y, %s = mpc.fusion(%n, %b) {
  ^bb0(%a: tensor<32x84xf32>, %c: tensor<84xf32>):
    %0 = mpc.add %a, %c : (tensor<32x84xf32>, tensor<84xf32>) -> tensor<32x84xf32>
    %1 = mpc.relu %0 : (tensor<32x84xf32>) -> tensor<32x84xf32>
    %2 = mpc.mul %1, %a : (tensor<32x84xf32>, tensor<32x84xf32>) -> tensor<32x84xf32>
    mpc.yield %2, %0 : tensor<32x84xf32>, tensor<32x84xf32>
  } : (tensor<32x84xf32>, tensor<84xf32>) -> (tensor<32x84xf32>, tensor<32x84xf32>)
  %z = mpc.relu %y : (tensor<32x84xf32>) -> tensor<32x84xf32>
  return %z, %s : tensor<32x84xf32>, tensor<32x84xf32>
})";

const TensorSpec kMatrix{DType::kF32, {32, 84}};
const TensorSpec kBias{DType::kF32, {84}};

std::vector<reference::Tensor> Interpret(const std::string& text, const std::vector<reference::Tensor>& inputs) {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = ParseModule(*context, text);
  return interpret(*module->getOps<mlir::func::FuncOp>().begin(), inputs).value();
}

/// The outputs of one run.
std::vector<std::vector<float>> RunOnce(const runtime::Program& program,
                                        const std::vector<std::vector<float>>& inputs) {
  auto executable = Cpu().Load(std::make_shared<const runtime::Program>(program), runtime::StateStore());
  EXPECT_TRUE(executable.ok()) << executable.status();
  if (!executable.ok()) return {};
  std::vector<absl::Span<const std::uint8_t>> bytes;
  for (const std::vector<float>& input : inputs) bytes.push_back(runtime::BytesOf(input));
  EXPECT_TRUE((*executable)->Run(bytes).ok());
  std::vector<std::vector<float>> outputs;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    outputs.push_back(runtime::ValuesOf<float>((*executable)->output(i)));
  }
  return outputs;
}

TEST(FusedProgram, ComputesWhatTheInterpreterDoes) {
  const absl::StatusOr<runtime::Program> program = Lower(kForward);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_THAT(program->step().instructions, SizeIs(3));
  EXPECT_THAT(program->step().instructions[1].kernel, HasSubstr("generated."));
  const std::vector<float> x = Numbers(32 * 84, 0), b = Numbers(84, 2);
  const std::vector<reference::Tensor> expected = Interpret(kForward, {TensorOf(kMatrix, x), TensorOf(kBias, b)});
  const std::vector<std::vector<float>> results = RunOnce(*program, {x, b});
  ASSERT_THAT(results, SizeIs(2));
  // Additions and products of two f32, each rounded once: the reference rounds the same.
  for (std::size_t output = 0; output < 2; ++output) {
    for (std::size_t i = 0; i < results[output].size(); ++i) {
      ASSERT_EQ(results[output][i], static_cast<float>(expected[output].values[i])) << output << " " << i;
    }
  }
}

TEST(FusedProgram, GivesTheSameBitsOnOneAndTwoThreads) {
  const runtime::Program program = Lower(kForward).value();
  const std::vector<float> x = Numbers(32 * 84, 0), b = Numbers(84, 2);
  const int threads = cpu::NumThreads();
  cpu::SetNumThreads(1);
  const auto alone = RunOnce(program, {x, b});
  cpu::SetNumThreads(2);
  EXPECT_EQ(RunOnce(program, {x, b}), alone);
  cpu::SetNumThreads(threads);
}

/// A gradient of two uses and one of a library, checked and normed in one pass over both, or where the first is made.
std::string StepEnd(const std::string& body) {
  return R"(
func.func @step(%scale: tensor<f32> {mpc.state = #mpc.state<input, "scale">},
                %loss: tensor<f32> {mpc.state = #mpc.state<input, "loss">},
                %a: tensor<32x84xf32> {mpc.state = #mpc.state<input, "a">},
                %b: tensor<32x84xf32> {mpc.state = #mpc.state<input, "b">},
                %c: tensor<84xf32> {mpc.state = #mpc.state<input, "c">}) -> (tensor<i32>, tensor<f32>) {
)" + body +
         "return %bad, %norm : tensor<i32>, tensor<f32>\n}";
}
const std::string& Grouped() {
  static const auto* const text = new std::string(StepEnd(R"(
  %g = mpc.sum_n %a, %b : (tensor<32x84xf32>, tensor<32x84xf32>) -> tensor<32x84xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %g, %c
      : (tensor<f32>, tensor<f32>, tensor<32x84xf32>, tensor<84xf32>) -> (tensor<i1>, tensor<i32>)
  %norm = mpc.global_norm %scale, %g, %c {unscale = true}
      : (tensor<f32>, tensor<32x84xf32>, tensor<84xf32>) -> tensor<f32>
)"));
  return *text;
}
const std::string& InTheRegion() {
  static const auto* const text = new std::string(StepEnd(R"(
  %flag, %sum = mpc.fusion(%a, %b, %scale) {
  ^bb0(%0: tensor<32x84xf32>, %1: tensor<32x84xf32>, %2: tensor<f32>):
    %g = mpc.sum_n %0, %1 : (tensor<32x84xf32>, tensor<32x84xf32>) -> tensor<32x84xf32>
    %f = mpc.check_finite %g, %2 : (tensor<32x84xf32>, tensor<f32>) -> tensor<i1>
    %s = mpc.sum_of_squares %g, %2 : (tensor<32x84xf32>, tensor<f32>) -> tensor<f64>
    mpc.yield %f, %s : tensor<i1>, tensor<f64>
  } : (tensor<32x84xf32>, tensor<32x84xf32>, tensor<f32>) -> (tensor<i1>, tensor<f64>)
  %finite, %bad = mpc.all_finite %scale, %loss, %flag, %c
      : (tensor<f32>, tensor<f32>, tensor<i1>, tensor<84xf32>) -> (tensor<i1>, tensor<i32>)
  %norm = mpc.global_norm %scale, %c, %sum {unscale = true, sums = 1}
      : (tensor<f32>, tensor<84xf32>, tensor<f64>) -> tensor<f32>
)"));
  return *text;
}

TEST(FusedProgram, AGradientIsCheckedWhereItIsMadeAsInThePassOverAll) {
  const runtime::Program grouped = Lower(Grouped()).value(), region = Lower(InTheRegion()).value();
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  struct Step {
    float scale, loss, of_a, of_c;  ///< one element of each gradient
    std::int32_t first_bad;
  };
  for (const Step& step : {Step{1024, 1, 1, 1, -1}, Step{1024, kNaN, 1, 1, -2}, Step{1024, 1, kInfinity, 1, 0},
                           Step{1024, kNaN, kNaN, kNaN, 0}, Step{1024, 1, 1, -kInfinity, 1},
                           Step{0.25f, 1, 3e38f, 1, 0}, Step{1, 1, 3e38f, 1, -1}}) {
    std::vector<float> a = Numbers(32 * 84, 0), c = Numbers(84, 2);
    a[1234] = step.of_a;
    c[83] = step.of_c;
    const std::vector<std::vector<float>> inputs = {{step.scale}, {step.loss}, a, Numbers(32 * 84, 1), c};
    const auto one = RunOnce(grouped, inputs), other = RunOnce(region, inputs);
    EXPECT_EQ(std::bit_cast<std::int32_t>(one[0][0]), step.first_bad);
    EXPECT_EQ(std::bit_cast<std::int32_t>(other[0][0]), step.first_bad);
    // Sums in f64 differ by far less than half an ulp of f32, to which both norms are rounded. Squares that overflow
    // f32 are summed.
    const float bound = 0x1p-23f * one[1][0];
    EXPECT_EQ(std::isfinite(one[1][0]), step.first_bad < 0);
    EXPECT_EQ(std::isfinite(other[1][0]), step.first_bad < 0);
    if (std::isfinite(one[1][0])) {
      EXPECT_NEAR(one[1][0], other[1][0], bound);
    }
  }
}

TEST(FusedProgram, NeedsTheProcessorThatItsCodeIsFor) {
  const runtime::Program program = Lower(kForward).value();
  EXPECT_EQ(program.required_cpu_features, codegen::requiredCpuFeatures(llvm::cantFail(codegen::hostTarget())));
  const runtime::Program plain = Lower(
                                     "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                                     "  %y = mpc.neg %x : (tensor<4xf32>) -> tensor<4xf32>\n"
                                     "  return %y : tensor<4xf32>\n}")
                                     .value();
  EXPECT_EQ(plain.required_cpu_features, (std::vector<std::string>{"avx2", "fma", "f16c"}));
}

TEST(FusedProgram, WritesOverAnInputThatDies) {
  const runtime::Program program = Lower(kForward).value();
  const runtime::Instruction& region = program.step().instructions[1];
  const auto offset = [&](runtime::ValueId id) { return program.values[id].offset; };
  EXPECT_EQ(region.attributes.GetInts("aliases").size(), 2u);
  EXPECT_TRUE(offset(region.outputs[0]) == offset(region.inputs[0]) ||
              offset(region.outputs[1]) == offset(region.inputs[0]));
}

/// A step whose region is the update of a state, with `extra` behind it.
std::string Update(const std::string& extra = "") {
  return R"(
func.func @step(%w: tensor<64xf32> {mpc.state = #mpc.state<parameter, "w">}, %g: tensor<64xf32> {mpc.state = #mpc.state<input, "g">})
    -> (tensor<64xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<64xf32>) attributes {mpc.step} {
  %w1 = mpc.fusion(%w, %g) {
  ^bb0(%a: tensor<64xf32>, %c: tensor<64xf32>):
    %0 = mpc.relu %c : (tensor<64xf32>) -> tensor<64xf32>
    %1 = mpc.add %a, %0 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    mpc.yield %1 : tensor<64xf32>
  } : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
)" + (extra.empty() ? "  %y = mpc.neg %g : (tensor<64xf32>) -> tensor<64xf32>\n" : extra) +
         "  return %w1, %y : tensor<64xf32>, tensor<64xf32>\n}";
}

TEST(FusedProgram, UpdatesStateInPlace) {
  const absl::StatusOr<runtime::Program> program = Lower(Update());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->step().copies.empty());
  runtime::StateStore store;
  const std::vector<float> w = Numbers(64, 1), g = Numbers(64, 0);
  auto entry = runtime::AddEntry(store, "w", w);
  auto executable = Cpu().Load(std::make_shared<const runtime::Program>(*program), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  for (int step = 0; step < 2; ++step) ASSERT_TRUE((*executable)->Run({runtime::BytesOf(g)}).ok());
  const std::vector<float> updated = runtime::FloatsOf(*entry);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float step = std::max(0.0f, g[i]);
    EXPECT_EQ(updated[i], w[i] + step + step) << i;
  }
}

TEST(FusedProgram, CopiesStateThatIsReadAfterItsUpdate) {
  const absl::StatusOr<runtime::Program> program =
      Lower(Update("  %y = mpc.neg %w : (tensor<64xf32>) -> tensor<64xf32>\n"));
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_THAT(program->step().copies, SizeIs(1));
  EXPECT_THAT(program->step().copies[0].reason, HasSubstr("mpc.neg reads the old value after the update"));
}

compiler::CompileResult CompileForward(const std::string& cache_dir) {
  compiler::CompileOptions options;
  options.function = "forward";
  options.cache_dir = cache_dir;
  return compiler::Compile(compiler::ParseModule(kForward).value(), options).value();
}

TEST(FusedProgram, SaysWhatGeneratingTookAndWhatTheCacheGave) {
  const mpc::testing::TemporaryFolder folder;
  const compiler::CompileResult first = CompileForward(folder / "cache");
  EXPECT_EQ(first.code.regions, 1u);
  EXPECT_EQ(first.code.distinct, 1u);
  EXPECT_EQ(first.code.from_cache, 0u);
  const auto seconds = [](const compiler::CompileResult& result, const std::string& name) {
    for (const compiler::PhaseTime& phase : result.phases) {
      if (phase.name == name) return phase.seconds;
    }
    return -1.0;
  };
  EXPECT_GT(seconds(first, "optimise"), 0);
  EXPECT_GE(seconds(first, "code generation"), seconds(first, "assemble"));
  const compiler::CompileResult second = CompileForward(folder / "cache");
  EXPECT_EQ(second.code.from_cache, 1u);
  EXPECT_EQ(seconds(second, "optimise"), 0);
  EXPECT_EQ(second.program.code[0].bytes, first.program.code[0].bytes);
  EXPECT_EQ(CompileForward("off").code.from_cache, 0u);
}

TEST(FusedProgram, RunsFromAFileWithTheSameBits) {
  runtime::Program program = CompileForward("off").program;
  const std::vector<float> x = Numbers(32 * 84, 0), b = Numbers(84, 2);
  const auto expected = RunOnce(program, {x, b});
  runtime::Package package;
  package.programs.push_back(program);
  EXPECT_THAT(std::string(runtime::CheckPackage(package).message()), HasSubstr("\"object\", which is never saved"));
  ASSERT_TRUE(compiler::LinkGeneratedCode(package.programs[0]).ok());
  const mpc::testing::TemporaryFolder folder;
  ASSERT_TRUE(runtime::WriteProgramFile(folder / "net.mpcx", package).ok());
  const absl::StatusOr<runtime::Package> read = runtime::ReadProgramFile(folder / "net.mpcx");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(read->programs[0].code, SizeIs(1));
  EXPECT_EQ(read->programs[0].code[0].format, "elf");
  EXPECT_EQ(RunOnce(read->programs[0], {x, b}), expected);
  // Again: nothing is left to link.
  runtime::Program again = read->programs[0];
  ASSERT_TRUE(compiler::LinkGeneratedCode(again).ok());
  EXPECT_EQ(again.code[0].bytes, read->programs[0].code[0].bytes);
}

TEST(FusedProgram, WithDamagedCodeIsRefused) {
  runtime::Program program = CompileForward("off").program;
  ASSERT_TRUE(compiler::LinkGeneratedCode(program).ok());
  program.code[0].bytes.resize(200);
  const auto executable = Cpu().Load(std::make_shared<const runtime::Program>(program), runtime::StateStore());
  EXPECT_EQ(executable.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(executable.status().message()), HasSubstr("program \"forward\": code \"forward\": "));
}

}  // namespace
}  // namespace mpc
