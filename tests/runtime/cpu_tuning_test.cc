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
#include "runtime/physical_memory.h"
#include "runtime/program_check.h"
#include "runtime/program_file.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

const TensorSpec kImage{DType::kF32, {2, 10, 9, 32}};
const TensorSpec kWeight{DType::kF32, {32, 32, 3, 3}};

const Attributes kSame{{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}};

KernelSpec ConvolutionSpec() { return {"conv2d", {kImage, kWeight}, {kImage}, {true}, kSame}; }

/// Two convolutions of one spec, and relu, which has one kernel. `choice`: of the convolutions; "": as rules have it.
Program Convolutions(bool packed = false, const std::string& choice = "") {
  ProgramBuilder builder("step");
  if (!choice.empty()) builder.program.choices = {{KernelKey(ConvolutionSpec()), choice}};
  const ValueId x = builder.Input("x", kImage);
  const ValueId weight = builder.Input("weight", kWeight);
  const ValueId first = builder.Temporary(kImage);
  const ValueId positive = builder.Temporary(kImage);
  const ValueId second = builder.Temporary(kImage);
  const CpuDevice device;
  const auto convolve = [&](ValueId from, ValueId to) {
    if (packed) return builder.CallPacked("conv2d", {from, weight}, {to}, kSame, device);
    builder.Call("conv2d", {from, weight}, {to}, kSame, &device);
  };
  convolve(x, first);
  builder.Call("relu", {first}, {positive}, {}, &device);
  convolve(positive, second);
  builder.Output("y", second);
  return builder.program;
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
  const auto plan = device.Plan(program, program.step().instructions[0], {.tune = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const std::string& choice : cpu::CandidateChoices(ConvolutionSpec())) {
    EXPECT_THAT(plan->times, HasSubstr(choice + " "));
  }
  Program chosen = program;
  chosen.choices = {plan->choice};
  const auto again = device.Plan(chosen, program.step().instructions[2], {.tune = true});
  EXPECT_EQ(again->choice, plan->choice);
  EXPECT_EQ(again->times, "");
}

TEST_F(CpuTuning, WithoutItRulesChooseAndNothingIsKept) {
  const CpuDevice device;
  const Program program = Convolutions();
  for (const Instruction& instruction : program.step().instructions) {
    const auto plan = device.Plan(program, instruction);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(plan->choice.first, IsEmpty());
    EXPECT_THAT(plan->times, IsEmpty());
  }
}

TEST_F(CpuTuning, EqualChoicesGiveEqualBitsAlsoFromAFile) {
  for (const std::string& choice : cpu::CandidateChoices(ConvolutionSpec(), {.allow_winograd = true})) {
    SCOPED_TRACE(choice);
    const Program program = Convolutions(/*packed=*/false, choice);
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

TEST_F(CpuTuning, PackedWeightsAreUnpackedForAnotherChoice) {
  const Program packed = Convolutions(/*packed=*/true);
  ASSERT_EQ(packed.step().instructions.size(), 5u);
  EXPECT_EQ(*ResultOf(packed), *ResultOf(Convolutions()));
  // What the cache says is taken without measuring.
  const std::string key = KernelKey(ConvolutionSpec()) + " on " + MeasuredOn();
  for (const std::string& choice : cpu::CandidateChoices(ConvolutionSpec())) {
    SCOPED_TRACE(choice);
    std::filesystem::remove(path_);
    ChoiceCache cache(path_);
    cache.Set(key, {choice, ""});
    ASSERT_TRUE(cache.Write().ok());
    Program chosen = packed;
    ASSERT_TRUE(ChooseKernels(CpuDevice(), {.choice_cache = path_}, chosen).ok());
    ASSERT_TRUE(CheckProgram(chosen).ok()) << CheckProgram(chosen);
    EXPECT_THAT(chosen.choices, ElementsAre(Pair(KernelKey(ConvolutionSpec()), choice)));
    EXPECT_THAT(chosen.step().instructions.back().attributes.GetString("packed_for", choice), Eq(choice));
    EXPECT_EQ(*ResultOf(chosen), *ResultOf(Convolutions(/*packed=*/false, choice)));
    const auto bytes = SerializePackage({{}, {chosen}, {}, {}});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto package = ParsePackage(*bytes, "memory");
    ASSERT_TRUE(package.ok()) << package.status();
    EXPECT_EQ(*ResultOf(package->programs[0]), *ResultOf(chosen));
  }
}

/// Two convolutions with one weight that the program only reads, packed as `options` say, and the state that they need.
class KeptWeights : public CpuTuning {
 protected:
  void SetUp() override {
    CpuTuning::SetUp();
    ProgramBuilder builder("predict");
    const ValueId x = builder.Input("x", kImage);
    const ValueId weight = builder.State("weight", kWeight, false);
    builder.Derived(weight, DType::kBF16, false);
    const ValueId first = builder.Temporary(kImage), second = builder.Temporary(kImage);
    const CpuDevice device;
    builder.Call("conv2d", {x, weight}, {first}, kSame, &device);
    builder.Call("conv2d", {first, weight}, {second}, kSame, &device);
    builder.Output("y", second);
    program_ = builder.program;
    auto entry = std::make_shared<StateEntry>("weight", Role::kParameter, kWeight);
    ASSERT_TRUE(entry->Write(BytesOf(Numbers(kWeight))).ok());
    weight_ = entry;
  }

  std::vector<float> Run(const Program& program) {
    StateStore store;
    EXPECT_TRUE(store.Add(weight_).ok());
    for (const StateBinding& binding : program.state) {
      if (binding.role != Role::kDerived) continue;
      EXPECT_TRUE(store.Add(std::make_shared<StateEntry>(binding.name, binding.role, binding.spec)).ok());
    }
    const CpuDevice device;
    executable_ = device.Load(std::make_shared<const Program>(program), store);
    EXPECT_TRUE(executable_.ok()) << executable_.status();
    return executable_.ok() ? Again() : std::vector<float>();
  }
  std::vector<float> Again() {
    const std::vector<float> x = Numbers(kImage);
    const std::vector<absl::Span<const std::uint8_t>> inputs = {BytesOf(x)};
    EXPECT_TRUE((*executable_)->Run(inputs).ok());
    return ValuesOf<float>((*executable_)->output(0));
  }

  Program program_;
  std::shared_ptr<StateEntry> weight_;
  absl::StatusOr<std::unique_ptr<Executable>> executable_;
};

TEST_F(KeptWeights, ArePackedOnceForAllThatReadThem) {
  Program kept = program_;
  ASSERT_TRUE(ChooseKernels(CpuDevice(), {}, kept).ok());
  ASSERT_TRUE(CheckProgram(kept).ok()) << CheckProgram(kept);
  EXPECT_THAT(kept.step().instructions, SizeIs(2)) << "no instruction packs";
  EXPECT_THAT(kept.refreshes, SizeIs(2)) << "the low copy and the packed weight";
  EXPECT_EQ(Run(kept), Run(program_));
}

TEST_F(KeptWeights, FollowTheWeight) {
  Program kept = program_;
  ASSERT_TRUE(ChooseKernels(CpuDevice(), {}, kept).ok());
  const std::vector<float> before = Run(kept);
  EXPECT_EQ(Again(), before);
  std::vector<float> other = Numbers(kWeight);
  for (float& value : other) value *= 0.5f;
  ASSERT_TRUE(weight_->Write(BytesOf(other)).ok());
  const std::vector<float> after = Again();
  EXPECT_NE(after, before);
  EXPECT_EQ(after, Run(program_));
}

TEST_F(KeptWeights, AreUnpackedForAnotherChoice) {
  Program kept = program_;
  ASSERT_TRUE(ChooseKernels(CpuDevice(), {}, kept).ok());
  Program unpacked = kept;
  UnpackKeptWeights(unpacked);
  ASSERT_TRUE(CheckProgram(unpacked).ok()) << CheckProgram(unpacked);
  EXPECT_THAT(unpacked.state, SizeIs(2));
  EXPECT_THAT(unpacked.refreshes, SizeIs(1));
  EXPECT_EQ(unpacked.step().instructions[1].inputs, program_.step().instructions[1].inputs);
  EXPECT_EQ(unpacked.step().instructions[1].attributes, program_.step().instructions[1].attributes);
  ASSERT_TRUE(ChooseKernels(CpuDevice(), {.keep_packed_weights = false}, kept).ok());
  EXPECT_THAT(kept.step().instructions, SizeIs(4)) << "each run packs";
  EXPECT_THAT(kept.state, SizeIs(2));
  EXPECT_EQ(Run(kept), Run(program_));
}

/// What a processor whose kernels want their weights as they lie would have made of `program`.
Program PackedElsewhere(Program program) {
  const auto repack = [](Attributes& attributes, const char* name) {
    if (attributes.Find(name) != nullptr) attributes.Set(name, std::string("abcd"));
  };
  for (Instruction& instruction : program.step().instructions) {
    repack(instruction.attributes, PacksWeight(instruction) ? "layout" : "packed_layout");
  }
  for (StateRefresh& refresh : program.refreshes) repack(refresh.instruction.attributes, "layout");
  return program;
}

TEST_F(CpuTuning, WeightsThatWerePackedForAnotherProcessorArePackedAnew) {
  EXPECT_EQ(*ResultOf(PackedElsewhere(Convolutions(/*packed=*/true))), *ResultOf(Convolutions()));
}

TEST_F(KeptWeights, OfAnotherProcessorArePackedAnew) {
  Program kept = program_;
  ASSERT_TRUE(ChooseKernels(CpuDevice(), {}, kept).ok());
  EXPECT_EQ(Run(PackedElsewhere(kept)), Run(program_));
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
    GTEST_SKIP() << "oneDNN 2 alone has it, with AVX-512";
  }
  const CpuDevice device;
  const Program program = Convolutions();
  const auto tuned = device.Plan(program, program.step().instructions[0], {.tune = true});
  EXPECT_THAT(tuned->times, Not(HasSubstr("winograd")));
  const auto allowed = device.Plan(program, program.step().instructions[0], {.tune = true, .allow_winograd = true});
  EXPECT_THAT(allowed->times, HasSubstr("winograd"));
  const auto by_rule = device.Plan(program, program.step().instructions[0], {.allow_winograd = true});
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

TEST(TimeKernel, TakesNoMoreThanTheMemoryOfThisMachine) {
  // A system promises each of these alone, and ends a process that uses all of them.
  struct Unused : cpu::Kernel {
    void Run(const cpu::KernelOperands&) override { ADD_FAILURE() << "it has operands that the machine cannot hold"; }
  } unused;
  const auto most = static_cast<std::int64_t>(PhysicalMemory() / sizeof(std::int32_t) / 4 * 3);
  const TensorSpec large{DType::kI32, {most}};
  const auto time = TimeKernel({"int_add", {large, large}, {large}, {true}, {}}, unused);
  EXPECT_EQ(time.status().code(), absl::StatusCode::kResourceExhausted) << time.status();
  EXPECT_EQ(time.status().message(), "no memory to time mpc.int_add");
}

}  // namespace
}  // namespace mpc::runtime
