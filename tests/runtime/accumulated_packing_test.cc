// Packed weights of a Program that accumulates: they are derived state, which is stale only after an update that took
// place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/choose_kernels.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/packed_weights.h"
#include "runtime/predicated_updates.h"
#include "runtime/program_check.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

using ::testing::SizeIs;

const TensorSpec kPicture{DType::kF32, {2, 10, 9, 32}};
const TensorSpec kFilter{DType::kF32, {32, 32, 3, 3}};
const Attributes kPadded{{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}};

std::vector<float> Ramp(const TensorSpec& spec) {
  std::vector<float> numbers(static_cast<std::size_t>(spec.num_elements()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7919 % 1009) / 1009.0f - 0.5f;
  return numbers;
}

/// A convolution, an update of its weight where `apply` holds, and a convolution with the new weight.
struct Step {
  explicit Step(bool accumulates = true) : builder("train_step") {
    const ValueId x = builder.Input("x", kPicture), apply = builder.Input("apply", {DType::kBool, {}});
    const ValueId gradient = builder.Input("gradient", kFilter);
    weight = builder.State("weight", kFilter, true);
    velocity = builder.State("velocity", kFilter, true);
    if (accumulates) {
      const ValueId sum = builder.State("sum", kFilter, true);
      builder.program.state.back().role = Role::kAccumulator;
      builder.Call("add", {sum, weight}, {sum});
    }
    const float rate = 0.5f;
    const ValueId rates = builder.Constant({DType::kF32, {}}, &rate);
    const ValueId first = builder.Temporary(kPicture), second = builder.Temporary(kPicture);
    const CpuDevice device;
    builder.Call("conv2d", {x, weight}, {first}, kPadded, &device);
    builder.Call("momentum", {weight, velocity, gradient, rates, apply}, {weight, velocity}, {{"momentum", 0.5}});
    builder.Call("conv2d", {x, weight}, {second}, kPadded, &device);
    builder.Output("before", first);
    builder.Output("after", second);
  }

  ProgramBuilder builder;
  ValueId weight, velocity;
};

/// A Program that is loaded with state of its own.
class Loaded {
 public:
  explicit Loaded(const Program& program) {
    StateStore store;
    for (const StateBinding& binding : program.state) {
      auto entry = std::make_shared<StateEntry>(binding.name, binding.role, binding.spec);
      if (binding.role != Role::kDerived) {
        EXPECT_TRUE(entry->Write(BytesOf(Ramp(binding.spec))).ok());
      }
      EXPECT_TRUE(store.Add(entry).ok());
      entries.push_back(std::move(entry));
    }
    const CpuDevice device;
    auto loaded = device.Load(std::make_shared<const Program>(program), store);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (loaded.ok()) executable = *std::move(loaded);
  }

  std::vector<std::vector<float>> Run(bool apply) {
    const std::vector<float> x = Ramp(kPicture), gradient = Ramp(kFilter);
    const std::vector<std::uint8_t> flag = {static_cast<std::uint8_t>(apply)};
    const std::vector<absl::Span<const std::uint8_t>> inputs = {BytesOf(x), BytesOf(flag), BytesOf(gradient)};
    EXPECT_TRUE(executable->Run(inputs).ok());
    return {ValuesOf<float>(executable->output(0)), ValuesOf<float>(executable->output(1))};
  }
  std::uint64_t Version(std::size_t state) const { return entries[state]->version(); }

  std::vector<std::shared_ptr<StateEntry>> entries;
  std::unique_ptr<Executable> executable;
};

Program Chosen(Program program, const PlanOptions& options = {}) {
  EXPECT_TRUE(ChooseKernels(CpuDevice(), options, program).ok());
  EXPECT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  return program;
}

int PacksOf(const Program& program) {
  int packs = 0;
  for (const Instruction& instruction : program.step().instructions) packs += PacksWeight(instruction);
  return packs;
}

TEST(AccumulatedPacking, IsKeptForReadersInFrontOfTheUpdate) {
  const Program kept = Chosen(Step().builder.program);
  EXPECT_THAT(kept.refreshes, SizeIs(1));
  EXPECT_EQ(PacksOf(kept), 1) << "the reader behind the update";
  const Program again = Chosen(kept);
  EXPECT_THAT(again.refreshes, SizeIs(1));
  EXPECT_EQ(PacksOf(again), 1);
  const Program plain = Chosen(Step(/*accumulates=*/false).builder.program);
  EXPECT_THAT(plain.refreshes, SizeIs(0)) << "every run changes the weight";
  EXPECT_EQ(PacksOf(plain), 2);
  const Program small = Chosen(kept, {.keep_packed_weights = false});
  EXPECT_THAT(small.refreshes, SizeIs(0));
  EXPECT_EQ(PacksOf(small), 2);
}

TEST(AccumulatedPacking, IsDoneAfterUpdatesThatTookPlaceAlone) {
  const Program unpacked = Step().builder.program, kept = Chosen(unpacked);
  Loaded packs(unpacked), keeps(kept);
  const auto packed = static_cast<std::size_t>(kept.refreshes.at(0).derived);
  std::uint64_t version = 0;
  bool was_updated = true;
  for (const bool apply : {false, false, true, false, true, true, false}) {
    EXPECT_EQ(keeps.Run(apply), packs.Run(apply));
    EXPECT_EQ(keeps.Version(packed) != version, was_updated);
    version = keeps.Version(packed);
    was_updated = apply;
  }
}

TEST(AccumulatedPacking, FollowsAWeightThatIsWritten) {
  const Program unpacked = Step().builder.program, kept = Chosen(unpacked);
  Loaded packs(unpacked), keeps(kept);
  EXPECT_EQ(keeps.Run(false), packs.Run(false));
  std::vector<float> other = Ramp(kFilter);
  for (float& value : other) value *= 0.25f;
  ASSERT_TRUE(keeps.entries[0]->Write(BytesOf(other)).ok());
  ASSERT_TRUE(packs.entries[0]->Write(BytesOf(other)).ok());
  EXPECT_EQ(keeps.Run(false), packs.Run(false));
}

TEST(PredicatedUpdates, KeepTheVersionsOfWhatTheySkip) {
  Loaded step(Step().builder.program);
  const auto versions = [&] { return std::vector{step.Version(0), step.Version(1), step.Version(2)}; };
  const std::vector<std::uint64_t> before = versions();
  step.Run(false);
  const std::vector<std::uint64_t> skipped = versions();
  EXPECT_EQ(skipped[0], before[0]);
  EXPECT_EQ(skipped[1], before[1]);
  EXPECT_NE(skipped[2], before[2]) << "the sum is written in every run";
  step.Run(true);
  EXPECT_NE(versions()[0], skipped[0]);
  EXPECT_NE(versions()[1], skipped[1]);
}

TEST(PredicatedUpdates, AreThoseOfStateThatNothingElseWrites) {
  Step step;
  EXPECT_THAT(FindPredicatedUpdates(step.builder.program), SizeIs(2)) << "weight and velocity";
  step.builder.Call("relu", {step.weight}, {step.weight});
  EXPECT_THAT(FindPredicatedUpdates(step.builder.program), SizeIs(1));
  Program always = Step().builder.program;
  for (Instruction& instruction : always.step().instructions) {
    if (instruction.kernel == "momentum") instruction.inputs.pop_back();
  }
  EXPECT_THAT(FindPredicatedUpdates(always), SizeIs(0));
  EXPECT_EQ(FindStateChanges(always)[0], StateChange::kAlways);
}

}  // namespace
}  // namespace mpc::runtime
