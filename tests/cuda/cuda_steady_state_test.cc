// Once loaded, a Program on a GPU creates nothing, and the host waits for nothing that it need not.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"

namespace mpc::runtime {
namespace {

using emulation::Schedule;

struct Loaded {
  Loaded(const EmulatedDevice& gpu, const LoadOptions& options) {
    AddStepState(store);
    auto loaded = gpu->Load(BuildFor("cuda", StepProgram()), store, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (loaded.ok()) executable = *std::move(loaded);
  }
  StateStore store;
  std::unique_ptr<Executable> executable;
};

class SteadyState : public testing::TestWithParam<std::tuple<Schedule, bool>> {};

INSTANTIATE_TEST_SUITE_P(All, SteadyState,
                         testing::Combine(testing::Values(Schedule::kLate, Schedule::kAtOnce), testing::Bool()));

TEST_P(SteadyState, AfterLoadNothingIsAllocatedOrCreated) {
  EmulatedDevice gpu({.schedule = std::get<0>(GetParam())});
  Loaded loaded(gpu, {.graph = std::get<1>(GetParam())});
  const std::size_t created = gpu.api.creations();
  for (int step = 0; step < 10; ++step) {
    ASSERT_TRUE(loaded.executable->Run(StepData(step).inputs).ok());
    EXPECT_EQ(loaded.executable->output(0).size(), kStepVector.bytes());
  }
  ASSERT_TRUE(loaded.executable->RunTimed(StepData(10).inputs).ok());
  EXPECT_EQ(gpu.api.creations(), created);
}

TEST(SteadyState, AHostThatReadsALaunchLateNeverWaits) {
  for (const int steps_per_launch : {1, 4}) {
    // At once: the device is never behind, so that every wait would be one that the host need not have made.
    EmulatedDevice gpu({.schedule = Schedule::kAtOnce});
    Loaded loaded(gpu, {.steps_per_launch = steps_per_launch});
    std::vector<std::unique_ptr<StepData>> data;
    std::vector<StepInputs> inputs;
    for (int i = 0; i < steps_per_launch; ++i) {
      data.push_back(std::make_unique<StepData>(i));
      inputs.emplace_back(data.back()->inputs);
    }
    ASSERT_TRUE(loaded.executable->RunSteps(inputs).ok());
    const std::size_t waits = gpu.api.waits();
    const std::size_t launches = gpu.api.calls("LaunchGraph");
    const std::size_t kernels = gpu.api.calls("Launch");
    for (int launch = 1; launch <= 20; ++launch) {
      ASSERT_TRUE(loaded.executable->RunSteps(inputs).ok());
      const std::uint64_t late = static_cast<std::uint64_t>(launch - 1) * steps_per_launch;
      ASSERT_FALSE(OutputsOf(*loaded.executable, late).empty());
    }
    EXPECT_EQ(gpu.api.waits(), waits) << "zero host synchronisations";
    EXPECT_EQ(gpu.api.calls("LaunchGraph"), launches + 20) << "one graph a launch";
    // The shadow that the step leaves stale is rebuilt before each launch.
    EXPECT_EQ(gpu.api.calls("Launch"), kernels + 20) << "nothing else but the refresh";
  }
}

TEST(SteadyState, TheHostIsAtMostTwoLaunchesAhead) {
  EmulatedDevice gpu({.schedule = Schedule::kLate});
  Loaded loaded(gpu, {});
  const std::size_t waits = gpu.api.waits();
  ASSERT_TRUE(loaded.executable->Run(StepData(0).inputs).ok());
  ASSERT_TRUE(loaded.executable->Run(StepData(1).inputs).ok());
  const std::size_t uploads_of_state = gpu.api.waits() - waits;
  ASSERT_TRUE(loaded.executable->Run(StepData(2).inputs).ok());
  EXPECT_EQ(gpu.api.waits() - waits - uploads_of_state, 1u) << "for the pinned memory of the first launch";
}

TEST(SteadyState, AGraphHoldsTheWholeStep) {
  EmulatedDevice gpu;
  Loaded loaded(gpu, {});
  // 1 for inputs, 7 instructions, 1 for state copies, 1 for the large output, 1 for the small ones.
  EXPECT_EQ(gpu.api.last_graph_nodes(), 11u);
  EXPECT_EQ(loaded.executable->nodes_per_step(), 11u);
  Loaded four(gpu, {.steps_per_launch = 4});
  EXPECT_EQ(four.executable->nodes_per_step(), 11u) << "of one step, however many a launch makes";
  // Between steps the stale shadow is rebuilt.
  EXPECT_EQ(gpu.api.last_graph_nodes(), 4u * 11 + 3);
  EXPECT_EQ(Loaded(gpu, {.graph = false}).executable->nodes_per_step(), 0u) << "no graph";
}

TEST(SteadyState, AThousandStepsUseNoMoreMemory) {
  EmulatedDevice gpu({.schedule = Schedule::kAtOnce});
  ProgramBuilder builder("count");
  const ValueId counter = builder.State("counter", {DType::kF32, {}}, true);
  builder.Call("add_scalar", {counter}, {counter}, {{"value", 1.0}});
  builder.Output("counter", counter);
  StateStore store;
  auto entry = std::make_shared<StateEntry>("counter", Role::kParameter, TensorSpec{DType::kF32, {}});
  ASSERT_TRUE(entry->Write(BytesOf(std::vector<float>{0})).ok());
  ASSERT_TRUE(store.Add(entry).ok());
  auto executable = gpu->Load(BuildFor("cuda", builder), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  ASSERT_TRUE((*executable)->Run({}).ok());
  const std::size_t used = gpu.api.device_bytes_used();
  const std::size_t alive = gpu.api.Alive().size();
  for (int step = 1; step < 1000; ++step) ASSERT_TRUE((*executable)->Run({}).ok());
  EXPECT_EQ(ValuesOf<float>((*executable)->output(0))[0], 1000.0f);
  EXPECT_EQ(gpu.api.device_bytes_used(), used);
  EXPECT_EQ(gpu.api.Alive().size(), alive);
}

}  // namespace
}  // namespace mpc::runtime
