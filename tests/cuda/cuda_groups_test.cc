// Instructions that share a launch: the updates of all parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda/kernel.h"
#include "runtime/step_groups.h"
#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"
#include "tests/runtime/flat_program.h"

namespace mpc::runtime {
namespace {

const TensorSpec kScalar{DType::kF32, {}};

/// Momentum on `count` parameters of different sizes, their gradients inputs.
ProgramBuilder MomentumProgram(int count) {
  ProgramBuilder builder("train_step");
  const float rate_value = 0.5f;
  const ValueId rate = builder.Constant(kScalar, &rate_value);
  for (int i = 0; i < count; ++i) {
    const TensorSpec spec{DType::kF32, {3 + 7 * i}};
    const ValueId weight = builder.State("weight" + std::to_string(i), spec, true);
    const ValueId velocity = builder.State("velocity" + std::to_string(i), spec, true);
    const ValueId gradient = builder.Input("gradient" + std::to_string(i), spec);
    builder.Call("momentum", {weight, velocity, gradient, rate}, {weight, velocity}, {{"momentum", 0.5}});
  }
  return builder;
}

std::vector<std::size_t> SizesOf(const std::vector<InstructionRange>& ranges) {
  std::vector<std::size_t> sizes;
  for (const InstructionRange& range : ranges) sizes.push_back(range.count);
  return sizes;
}

TEST(GroupInstructions, JoinsUpdatesOfDifferentParameters) {
  EXPECT_EQ(SizesOf(GroupInstructions(*MomentumProgram(4).Build(), cuda::MayGroup)), (std::vector<std::size_t>{4}));
}

TEST(GroupInstructions, KeepsApartWhatDiffersOrDepends) {
  ProgramBuilder attributes = MomentumProgram(4);
  attributes.program.step().instructions[2].attributes.Set("momentum", 0.9);
  EXPECT_EQ(SizesOf(GroupInstructions(*attributes.Build(), cuda::MayGroup)), (std::vector<std::size_t>{2, 1, 1}));

  ProgramBuilder same_state = MomentumProgram(3);
  same_state.program.step().instructions[1] = same_state.program.step().instructions[0];
  EXPECT_EQ(SizesOf(GroupInstructions(*same_state.Build(), cuda::MayGroup)), (std::vector<std::size_t>{1, 2}));

  ProgramBuilder reads_result = MomentumProgram(2);
  reads_result.program.step().instructions[1].inputs[2] = reads_result.program.step().instructions[0].outputs[0];
  EXPECT_EQ(SizesOf(GroupInstructions(*reads_result.Build(), cuda::MayGroup)), (std::vector<std::size_t>{1, 1}));

  ProgramBuilder types = MomentumProgram(2);
  types.program.values[types.program.step().instructions[1].inputs[2]].spec.dtype = DType::kF16;
  EXPECT_EQ(SizesOf(GroupInstructions(*types.Build(), cuda::MayGroup)), (std::vector<std::size_t>{1, 1}));

  EXPECT_EQ(SizesOf(GroupInstructions(*StepProgram().Build(), cuda::MayGroup)), std::vector<std::size_t>(7, 1))
      << "only kernels that say so are grouped";
}

TEST(GroupCopies, BreaksAtDependencies) {
  ProgramBuilder builder("copies");
  const ValueId a = builder.State("a", kScalar, true), b = builder.State("b", kScalar, true);
  const ValueId x = builder.Temporary(kScalar), y = builder.Temporary(kScalar);
  builder.program.step().copies = {{x, a, ""}, {y, b, ""}};
  EXPECT_EQ(SizesOf(GroupCopies(builder.program, builder.program.step().copies)), (std::vector<std::size_t>{2}));
  builder.program.step().copies = {{a, b, ""}, {x, a, ""}};
  EXPECT_EQ(SizesOf(GroupCopies(builder.program, builder.program.step().copies)), (std::vector<std::size_t>{1, 1}))
      << "written after read";
  builder.program.step().copies = {{x, a, ""}, {a, b, ""}};
  EXPECT_EQ(SizesOf(GroupCopies(builder.program, builder.program.step().copies)), (std::vector<std::size_t>{1, 1}))
      << "read after written";
}

TEST(GroupLaunch, GivesTheBitsOfSingleUpdates) {
  constexpr int kParameters = 40;
  EmulatedDevice gpu;
  StateStore cpu_state, gpu_state;
  std::vector<std::vector<float>> gradients;
  for (int i = 0; i < kParameters; ++i) {
    std::vector<float> values(3 + 7 * i);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = 0.37f * static_cast<float>(k) - static_cast<float>(i);
    gradients.push_back(values);
    for (StateStore* store : {&cpu_state, &gpu_state}) {
      AddEntry(*store, "weight" + std::to_string(i), values);
      AddEntry(*store, "velocity" + std::to_string(i), std::vector<float>(values.size(), 0.25f));
    }
  }
  std::vector<absl::Span<const std::uint8_t>> inputs;
  for (const std::vector<float>& gradient : gradients) inputs.push_back(BytesOf(gradient));
  const ProgramBuilder builder = MomentumProgram(kParameters);
  auto on_cpu = *(*GetDevice("cpu"))->Load(BuildFor("cpu", builder), cpu_state);
  auto on_gpu = gpu->Load(BuildFor("cuda", builder), gpu_state);
  ASSERT_TRUE(on_gpu.ok()) << on_gpu.status();
  EXPECT_LT(gpu.api.last_graph_nodes(), 6u) << "of " << kParameters << " updates";
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(on_cpu->Run(inputs).ok());
    ASSERT_TRUE((*on_gpu)->Run(inputs).ok());
  }
  EXPECT_EQ(ContentOf(gpu_state), ContentOf(cpu_state));
  const auto times = (*on_gpu)->RunTimed(inputs);
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), 1u);
  EXPECT_EQ((*times)[0].instruction, 0u) << "the time of a group is its first instruction's";
}

TEST(GroupLaunch, OfAFlatUpdateGivesTheBitsOfTheCpu) {
  EmulatedDevice gpu;
  StateStore cpu_state, gpu_state;
  AddFlatState(cpu_state);
  AddFlatState(gpu_state);
  const ProgramBuilder builder = MomentumOfThree();
  auto on_cpu = *(*GetDevice("cpu"))->Load(BuildFor("cpu", builder), cpu_state);
  auto on_gpu = gpu->Load(BuildFor("cuda", builder), gpu_state);
  ASSERT_TRUE(on_gpu.ok()) << on_gpu.status();
  const auto address = [&](const char* name) {
    return static_cast<const std::byte*>(gpu_state.Find(name)->device_copy()->data());
  };
  EXPECT_EQ(address("weight0"), address("weight2") + 4 * 32);
  EXPECT_EQ(address("velocity1"), address("velocity2") + 4 * 64);
  EXPECT_EQ(address("weight1.bf16"), address("weight2.bf16") + 2 * 64);
  const FlatInputs inputs;
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(on_cpu->Run(inputs).ok());
    ASSERT_TRUE((*on_gpu)->Run(inputs).ok());
  }
  EXPECT_EQ(ContentOf(gpu_state), ContentOf(cpu_state));
}

TEST(GroupLaunch, ThatFailsSaysWhatItHolds) {
  EmulatedDevice gpu;
  StateStore store;
  for (const char* name : {"weight0", "velocity0"}) AddEntry(store, name, {1, 2, 3});
  for (const char* name : {"weight1", "velocity1"}) AddEntry(store, name, std::vector<float>(10, 1.0f));
  auto executable = *gpu->Load(BuildFor("cuda", MomentumProgram(2)), store, {.graph = false});
  gpu.api.FailCall("Launch", 2, absl::InternalError("injected"));
  const std::vector<float> first(3), second(10);
  const absl::Status status = executable->Run({BytesOf(first), BytesOf(second)});
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("instruction 0 (momentum in test) and 1 more in the same launch: injected"));
}

}  // namespace
}  // namespace mpc::runtime
