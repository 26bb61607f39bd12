// Kernels that the CPU chooses by measuring them, kept in the Program and in a file of choices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/kernel_key.h"
#include "runtime/choice_cache.h"
#include "runtime/choose_kernels.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/kernel_timing.h"
#include "runtime/program_binding.h"
#include "runtime/program_file.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const TensorSpec kImage{DType::kF32, {2, 10, 9, 32}};
const TensorSpec kWeight{DType::kF32, {32, 32, 3, 3}};

/// Two convolutions of one spec, and relu, which has one kernel.
Program Convolutions() {
  ProgramBuilder builder("step");
  const ValueId x = builder.Input("x", kImage);
  const ValueId weight = builder.Input("weight", kWeight);
  const ValueId first = builder.Temporary(kImage);
  const ValueId positive = builder.Temporary(kImage);
  const ValueId second = builder.Temporary(kImage);
  const Attributes same{{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}};
  const CpuDevice device;
  builder.Call("conv2d", {x, weight}, {first}, same, &device);
  builder.Call("relu", {first}, {positive}, {}, &device);
  builder.Call("conv2d", {positive, weight}, {second}, same, &device);
  builder.Output("y", second);
  return builder.program;
}

KernelSpec ConvolutionSpec() {
  const Program program = Convolutions();
  return *MakeKernelSpec(program, program.instructions[0]);
}

std::vector<float> Numbers(const TensorSpec& spec) {
  std::vector<float> numbers(static_cast<std::size_t>(spec.num_elements()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7919 % 1009) / 1009.0f - 0.5f;
  return numbers;
}

absl::StatusOr<std::vector<float>> ResultOf(const Program& program) {
  const CpuDevice device;
  const auto executable = device.Load(std::make_shared<const Program>(program), StateStore());
  if (!executable.ok()) return executable.status();
  const std::vector<float> x = Numbers(kImage);
  const std::vector<float> weight = Numbers(kWeight);
  const std::vector<absl::Span<const std::uint8_t>> inputs = {BytesOf(x), BytesOf(weight)};
  if (absl::Status status = (*executable)->Run(inputs); !status.ok()) return status;
  return ValuesOf<float>((*executable)->output(0));
}

class CpuTuning : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + "/mpc_cpu_choices_" + std::to_string(::getpid());
};

TEST_F(CpuTuning, KeepsInTheProgramWhatWasFastest) {
  const CpuDevice device;
  Program program = Convolutions();
  ASSERT_TRUE(ChooseKernels(device, {.tune = true}, program).ok());
  ASSERT_THAT(program.choices, SizeIs(1)) << "one for both convolutions, none for relu";
  EXPECT_EQ(program.choices[0].first, KernelKey(ConvolutionSpec()));
  EXPECT_THAT(cpu::CandidateChoices(ConvolutionSpec()), Contains(program.choices[0].second));
  EXPECT_TRUE(ResultOf(program).ok());
}

TEST_F(CpuTuning, SaysWhatWasMeasuredOnceForEachSpec) {
  const CpuDevice device;
  const Program program = Convolutions();
  const auto plan = device.Plan(program, program.instructions[0], {.tune = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const std::string& choice : cpu::CandidateChoices(ConvolutionSpec())) {
    EXPECT_THAT(plan->times, HasSubstr(choice + " "));
  }
  Program chosen = program;
  chosen.choices = {plan->choice};
  const auto again = device.Plan(chosen, program.instructions[2], {.tune = true});
  EXPECT_EQ(again->choice, plan->choice);
  EXPECT_EQ(again->times, "");
}

TEST_F(CpuTuning, WithoutItRulesChooseAndNothingIsKept) {
  const CpuDevice device;
  const Program program = Convolutions();
  for (const Instruction& instruction : program.instructions) {
    const auto plan = device.Plan(program, instruction);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(plan->choice.first, IsEmpty());
    EXPECT_THAT(plan->times, IsEmpty());
  }
}

TEST_F(CpuTuning, EqualChoicesGiveEqualBitsAlsoFromAFile) {
  for (const std::string& choice : cpu::CandidateChoices(ConvolutionSpec(), {.allow_winograd = true})) {
    SCOPED_TRACE(choice);
    Program program = Convolutions();
    program.choices = {{KernelKey(ConvolutionSpec()), choice}};
    // A program that was planned with its choice keeps it.
    const CpuDevice device;
    for (Instruction& instruction : program.instructions) {
      const auto plan = device.Plan(program, instruction);
      ASSERT_TRUE(plan.ok()) << plan.status();
      instruction.workspace_offset = program.arena_bytes;
      instruction.workspace_bytes = plan->workspace_bytes;
      program.arena_bytes += AlignedBuffer::Padded(plan->workspace_bytes);
    }
    const auto result = ResultOf(program);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto bytes = SerializePackage({{}, {program}, {}, {}});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto package = ParsePackage(*bytes, "memory");
    ASSERT_TRUE(package.ok()) << package.status();
    EXPECT_EQ(package->programs[0].choices, program.choices);
    EXPECT_EQ(*ResultOf(package->programs[0]), *result);
  }
}

TEST_F(CpuTuning, AChoiceThatThisProcessorDoesNotOfferIsRefused) {
  Program program = Convolutions();
  program.choices = {{KernelKey(ConvolutionSpec()), "f32 abacus"}};
  const absl::Status status = ResultOf(program).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step, instruction 0 (conv2d in test)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"f32 abacus\""));
}

TEST_F(CpuTuning, IsReadFromTheFileOfAnEarlierRunWhichMayBeDamaged) {
  Program program = Convolutions();
  ASSERT_TRUE(ChooseKernels(CpuDevice(), {.tune = true, .choice_cache = path_}, program).ok());
  const std::string key = KernelKey(ConvolutionSpec()) + " on " + MeasuredOn();
  const MeasuredChoice kept = ChoiceCache(path_).Find(key);
  EXPECT_EQ(kept.choice, program.choices[0].second);

  // Without measuring; the other candidate shows where the choice comes from.
  const std::vector<std::string> candidates = cpu::CandidateChoices(ConvolutionSpec());
  const std::string other = *std::find_if(candidates.begin(), candidates.end(),
                                          [&](const std::string& choice) { return choice != kept.choice; });
  ChoiceCache file(path_);
  file.Set(key, {other, "by hand"});
  ASSERT_TRUE(file.Write().ok());
  program = Convolutions();
  ASSERT_TRUE(ChooseKernels(CpuDevice(), {.choice_cache = path_}, program).ok());
  EXPECT_EQ(program.choices[0].second, other);

  std::ofstream(path_, std::ios::trunc) << "mpc kernel choices 2 damaged\n" << key << "\tf32 abacus\t\n";
  program = Convolutions();
  ASSERT_TRUE(ChooseKernels(CpuDevice(), {.tune = true, .choice_cache = path_}, program).ok());
  EXPECT_THAT(candidates, Contains(program.choices[0].second));
  EXPECT_EQ(ChoiceCache(path_).Find(key).choice, program.choices[0].second);
}

TEST_F(CpuTuning, TakesWinogradOnlyWhereItIsAllowed) {
  const auto has_winograd = Contains(HasSubstr("winograd"));
  EXPECT_THAT(cpu::CandidateChoices(ConvolutionSpec()), Not(has_winograd));
  if (!testing::Value(cpu::CandidateChoices(ConvolutionSpec(), {.allow_winograd = true}), has_winograd)) {
    GTEST_SKIP() << "oneDNN has it for AVX-512 alone";
  }
  const CpuDevice device;
  const Program program = Convolutions();
  const auto tuned = device.Plan(program, program.instructions[0], {.tune = true});
  EXPECT_THAT(tuned->times, Not(HasSubstr("winograd")));
  const auto allowed = device.Plan(program, program.instructions[0], {.tune = true, .allow_winograd = true});
  EXPECT_THAT(allowed->times, HasSubstr("winograd"));
  const auto by_rule = device.Plan(program, program.instructions[0], {.allow_winograd = true});
  EXPECT_THAT(by_rule->choice.second, HasSubstr("winograd")) << "kept, since rules alone would not choose it";
}

TEST(TimeKernel, RunsOnRandomNumbersAndOnIndicesInRange) {
  class Reader : public cpu::Kernel {
   public:
    void Run(const cpu::KernelOperands& operands) override {
      const auto* numbers = static_cast<const float*>(operands.inputs[0]);
      const auto* indices = static_cast<const std::int32_t*>(operands.inputs[1]);
      numbers_.assign(numbers, numbers + 41);
      indices_.assign(indices, indices + 9);
    }
    std::vector<float> numbers_;
    std::vector<std::int32_t> indices_;
  };
  Reader reader;
  const auto time = TimeKernel({"gather", {{DType::kF32, {41}}, {DType::kI32, {9}}}, {}, {}, {}}, reader);
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_GE(*time, 0);
  EXPECT_THAT(reader.numbers_, Each(testing::AllOf(testing::Ge(-1.0f), testing::Lt(1.0f))));
  EXPECT_THAT(reader.numbers_, Contains(testing::Lt(-0.5f)));
  EXPECT_THAT(reader.numbers_, Contains(testing::Gt(0.5f)));
  EXPECT_THAT(reader.indices_, Each(0));
}

}  // namespace
}  // namespace mpc::runtime
