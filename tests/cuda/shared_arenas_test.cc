// Programs of one GPU share the memory of their temporaries, and their steps may alternate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"

namespace mpc::runtime {
namespace {

using emulation::Schedule;
using testing::HasSubstr;

constexpr std::size_t kLargeArena = 1 << 20;

ProgramBuilder WithArena(std::size_t bytes) {
  ProgramBuilder builder = StepProgram();
  builder.program.arena_bytes = std::max(builder.program.arena_bytes, bytes);
  return builder;
}

/// StepProgram with state of its own, in an arena of at least `arena_bytes`.
struct LoadedStep {
  LoadedStep(const Device& device, const char* target, std::size_t arena_bytes, const LoadOptions& options = {}) {
    AddStepState(state);
    auto loaded = device.Load(BuildFor(target, WithArena(arena_bytes)), state, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (loaded.ok()) executable = *std::move(loaded);
  }
  StateStore state;
  std::unique_ptr<Executable> executable;
};

class SharedArenasOfPrograms : public testing::TestWithParam<std::tuple<Schedule, bool>> {
 protected:
  EmulatedDevice gpu_{{.schedule = std::get<0>(GetParam())}};
  LoadOptions options_{.graph = std::get<1>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, SharedArenasOfPrograms,
                         testing::Combine(testing::Values(Schedule::kLate, Schedule::kAtOnce), testing::Bool()));

TEST_P(SharedArenasOfPrograms, KeepTheirBitsWhereTheirStepsAlternate) {
  LoadedStep first(*gpu_, "cuda", kLargeArena, options_);
  LoadedStep second(*gpu_, "cuda", 0, options_);
  const Device& cpu = **GetDevice("cpu");
  LoadedStep first_on_cpu(cpu, "cpu", 0);
  LoadedStep second_on_cpu(cpu, "cpu", 0);
  for (int step = 0; step < 6; ++step) {
    const StepData data(step), other(step + 10);
    ASSERT_TRUE(first.executable->Run(data.inputs).ok());
    ASSERT_TRUE(second.executable->Run(other.inputs).ok());
    ASSERT_TRUE(first_on_cpu.executable->Run(data.inputs).ok());
    ASSERT_TRUE(second_on_cpu.executable->Run(other.inputs).ok());
    EXPECT_EQ(OutputsOf(*first.executable, step), OutputsOf(*first_on_cpu.executable, step)) << step;
    EXPECT_EQ(OutputsOf(*second.executable, step), OutputsOf(*second_on_cpu.executable, step)) << step;
  }
  EXPECT_EQ(ContentOf(first.state), ContentOf(first_on_cpu.state));
  EXPECT_EQ(ContentOf(second.state), ContentOf(second_on_cpu.state));
}

TEST_P(SharedArenasOfPrograms, OutliveTheProgramThatCameFirst) {
  auto first = std::make_unique<LoadedStep>(*gpu_, "cuda", kLargeArena, options_);
  LoadedStep second(*gpu_, "cuda", 0, options_);
  first.reset();
  LoadedStep on_cpu(**GetDevice("cpu"), "cpu", 0);
  const StepData data(0);
  ASSERT_TRUE(second.executable->Run(data.inputs).ok());
  ASSERT_TRUE(on_cpu.executable->Run(data.inputs).ok());
  EXPECT_EQ(OutputsOf(*second.executable, 0), OutputsOf(*on_cpu.executable, 0));
}

TEST(SharedArenas, ASmallerProgramAllocatesNone) {
  EmulatedDevice gpu;
  LoadedStep first(*gpu, "cuda", kLargeArena);
  const std::size_t used = gpu.api.device_bytes_used();
  LoadedStep second(*gpu, "cuda", kLargeArena);
  LoadedStep third(*gpu, "cuda", kLargeArena / 2);
  EXPECT_LT(gpu.api.device_bytes_used() - used, kLargeArena / 2) << "their state and inputs alone";
  LoadedStep larger(*gpu, "cuda", 2 * kLargeArena);
  EXPECT_GT(gpu.api.device_bytes_used() - used, 2 * kLargeArena) << "what holds addresses does not move";
}

TEST(SharedArenas, ThatAreNotEnoughAreNamed) {
  EmulatedDevice gpu({.memory_bytes = 2 * kLargeArena});
  LoadedStep first(*gpu, "cuda", kLargeArena);
  StateStore state;
  AddStepState(state);
  const absl::Status status = gpu->Load(BuildFor("cuda", WithArena(2 * kLargeArena)), state).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bytes that arenas of programs hold: 1048576"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("programs share the largest arena, so load its program first"));
  EXPECT_TRUE(gpu->Load(BuildFor("cuda", WithArena(kLargeArena)), state).ok());
}

TEST(SharedArenas, TheSmallestThatIsLargeEnoughIsTaken) {
  emulation::EmulatedApi api;
  SharedArenas arenas;
  const auto small = *arenas.Take(api, 100);
  auto large = *arenas.Take(api, 1000);
  EXPECT_NE(small, large);
  EXPECT_EQ(*arenas.Take(api, 80), small);
  EXPECT_EQ(*arenas.Take(api, 101), large);
  EXPECT_EQ(arenas.BytesHeld(), 1100u);
  EXPECT_EQ(arenas.BytesToAllocate(1000), 0u);
  EXPECT_EQ(arenas.BytesToAllocate(1001), 1001u);
  large.reset();
  EXPECT_EQ(arenas.BytesHeld(), 100u) << "what no Program owns is given back";
  EXPECT_EQ(arenas.BytesToAllocate(101), 101u);
}

}  // namespace
}  // namespace mpc::runtime
