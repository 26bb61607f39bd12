// A Program on an emulated GPU does what it does on the CPU: the same bits in outputs and state, step by step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"

namespace mpc::runtime {
namespace {

using emulation::Schedule;

const Device& Cpu() { return **GetDevice("cpu"); }

/// StepProgram on both devices, each with its own state.
struct Pair {
  Pair(const EmulatedDevice& gpu, const LoadOptions& options) {
    AddStepState(cpu_state);
    AddStepState(gpu_state);
    on_cpu = *Cpu().Load(BuildFor("cpu", StepProgram()), cpu_state);
    auto loaded = gpu->Load(BuildFor("cuda", StepProgram()), gpu_state, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (loaded.ok()) on_gpu = *std::move(loaded);
  }
  StateStore cpu_state, gpu_state;
  std::unique_ptr<Executable> on_cpu, on_gpu;
};

/// When work runs, whether a graph is replayed, steps a launch.
class CudaExecutable : public testing::TestWithParam<std::tuple<Schedule, bool, int>> {
 protected:
  EmulatedDevice gpu_{{.schedule = std::get<0>(GetParam())}};
  LoadOptions options_{.graph = std::get<1>(GetParam()), .steps_per_launch = std::get<2>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, CudaExecutable,
                         testing::Combine(testing::Values(Schedule::kLate, Schedule::kAtOnce), testing::Bool(),
                                          testing::Values(1, 4)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) == Schedule::kLate ? "Late" : "AtOnce") +
                                  (std::get<1>(info.param) ? "Graph" : "Stream") +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST_P(CudaExecutable, GivesTheBitsOfTheCpuInEveryStep) {
  Pair pair(gpu_, options_);
  for (int step = 0; step < 6; ++step) {
    const StepData data(step);
    ASSERT_TRUE(pair.on_cpu->Run(data.inputs).ok());
    const absl::Status status = pair.on_gpu->Run(data.inputs);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(OutputsOf(*pair.on_gpu, step), OutputsOf(*pair.on_cpu, step)) << step;
    EXPECT_EQ(ContentOf(pair.gpu_state), ContentOf(pair.cpu_state)) << step;
  }
  EXPECT_EQ(pair.on_gpu->steps_started(), 6u);
}

TEST_P(CudaExecutable, LaunchesOfSeveralStepsGiveTheBitsOfSingleOnes) {
  Pair pair(gpu_, options_);
  int next = 0;
  // Full launches, a part of one, single steps between them: what a training run does at the end of an epoch.
  for (const int steps : {4, 4, 4, 3, 1, 4, 2, 4, 4}) {
    std::vector<std::unique_ptr<StepData>> data;
    std::vector<StepInputs> inputs;
    for (int i = 0; i < steps; ++i) {
      data.push_back(std::make_unique<StepData>(next + i));
      inputs.emplace_back(data.back()->inputs);
    }
    std::vector<Outputs> expected;
    for (const StepInputs& step : inputs) {
      ASSERT_TRUE(pair.on_cpu->Run(step).ok());
      expected.push_back(OutputsOf(*pair.on_cpu, next++));
    }
    for (std::size_t first = 0; first < inputs.size();) {
      const std::size_t count = std::min<std::size_t>(pair.on_gpu->steps_per_launch(), inputs.size() - first);
      const absl::Status status = pair.on_gpu->RunSteps(absl::MakeConstSpan(inputs).subspan(first, count));
      ASSERT_TRUE(status.ok()) << status;
      for (std::size_t i = first; i < first + count; ++i) {
        EXPECT_EQ(OutputsOf(*pair.on_gpu, next - steps + i), expected[i]) << "step " << next - steps + i;
      }
      first += count;
    }
    EXPECT_EQ(ContentOf(pair.gpu_state), ContentOf(pair.cpu_state)) << "after step " << next - 1;
  }
}

TEST_P(CudaExecutable, KeepsTheOutputsOfTheLastStepsWhileLaterOnesRun) {
  Pair pair(gpu_, options_);
  ASSERT_GE(pair.on_gpu->steps_kept(), 2u * options_.steps_per_launch);
  std::vector<Outputs> expected;
  for (int step = 0; step < 11; ++step) {
    const StepData data(step);
    ASSERT_TRUE(pair.on_cpu->Run(data.inputs).ok());
    expected.push_back(OutputsOf(*pair.on_cpu, step));
    ASSERT_TRUE(pair.on_gpu->Run(data.inputs).ok());
    const std::uint64_t kept = std::min<std::uint64_t>(pair.on_gpu->steps_kept(), step + 1);
    for (std::uint64_t back = 0; back < kept; ++back) {
      EXPECT_EQ(OutputsOf(*pair.on_gpu, step - back), expected[step - back]) << step << " back " << back;
    }
    const auto gone = pair.on_gpu->OutputOfStep(step - kept, 0);
    EXPECT_EQ(gone.status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(std::string(pair.on_gpu->OutputOfStep(99, 0).status().message()),
              testing::HasSubstr("asked for output 0 of step 99 of 11"));
  EXPECT_EQ(pair.on_gpu->output(0).size(), kStepVector.bytes());
  EXPECT_TRUE(pair.on_gpu->output(5).empty());
}

TEST_P(CudaExecutable, InputsMayChangeAsSoonAsRunReturns) {
  Pair pair(gpu_, options_);
  for (int step = 0; step < 7; ++step) {
    const StepData data(step);
    ASSERT_TRUE(pair.on_cpu->Run(data.inputs).ok());
    StepData passing(step);
    ASSERT_TRUE(pair.on_gpu->Run(passing.inputs).ok());
    passing.x.assign(5, -1e9f);
    passing.low.assign(3, Half(-1.0f));
  }
  EXPECT_EQ(OutputsOf(*pair.on_gpu, 6), OutputsOf(*pair.on_cpu, 6));
  EXPECT_EQ(ContentOf(pair.gpu_state), ContentOf(pair.cpu_state));
}

TEST_P(CudaExecutable, SeesWhatTheHostWritesBetweenSteps) {
  Pair pair(gpu_, options_);
  for (int step = 0; step < 5; ++step) {
    const std::vector<float> written(5, static_cast<float>(step) * 0.5f);
    for (const StateStore* store : {&pair.cpu_state, &pair.gpu_state}) {
      if (step % 2 == 1) {
        ASSERT_TRUE(store->Find("weight")->Write(BytesOf(written)).ok());
      }
      if (step == 2) {
        ASSERT_TRUE(store->Find("table")->Write(BytesOf(std::vector<float>(5000, 7.0f))).ok());
      }
    }
    const StepData data(step);
    ASSERT_TRUE(pair.on_cpu->Run(data.inputs).ok());
    ASSERT_TRUE(pair.on_gpu->Run(data.inputs).ok());
    EXPECT_EQ(OutputsOf(*pair.on_gpu, step), OutputsOf(*pair.on_cpu, step)) << step;
  }
  EXPECT_EQ(ContentOf(pair.gpu_state), ContentOf(pair.cpu_state));
}

TEST_P(CudaExecutable, EveryWriteByTheHostArrivesThoughNobodyWaits) {
  // 16,000 bytes: sixteen of them fill the pinned memory that small entries travel through.
  const TensorSpec spec{DType::kF32, {4000}};
  ProgramBuilder builder("accumulate");
  const ValueId value = builder.State("value", spec, false);
  const ValueId total = builder.State("total", spec, true);
  builder.Call("add", {total, value}, {total});
  StateStore store;
  const auto entry = AddEntry(store, "value", std::vector<float>(4000));
  AddEntry(store, "total", std::vector<float>(4000));
  auto executable = gpu_->Load(BuildFor("cuda", builder), store, options_);
  ASSERT_TRUE(executable.ok()) << executable.status();
  for (int step = 1; step <= 50; ++step) {
    ASSERT_TRUE(entry->Write(BytesOf(std::vector<float>(4000, static_cast<float>(step)))).ok());
    ASSERT_TRUE((*executable)->Run({}).ok());
  }
  EXPECT_EQ(ValuesOf<float>(ContentOf(store)[1]), std::vector<float>(4000, 50 * 51 / 2));
}

TEST_P(CudaExecutable, TwoProgramsShareOneState) {
  ProgramBuilder reader("predict");
  const ValueId weight = reader.State("weight", kStepVector, false);
  const ValueId y = reader.Temporary(kStepVector);
  reader.Call("neg", {weight}, {y});
  reader.Output("y", y);
  Pair pair(gpu_, options_);
  auto cpu_reader = *Cpu().Load(BuildFor("cpu", reader), pair.cpu_state);
  auto gpu_reader = gpu_->Load(BuildFor("cuda", reader), pair.gpu_state, options_);
  ASSERT_TRUE(gpu_reader.ok()) << gpu_reader.status();
  for (int step = 0; step < 3; ++step) {
    const StepData data(step);
    ASSERT_TRUE(pair.on_cpu->Run(data.inputs).ok());
    ASSERT_TRUE(pair.on_gpu->Run(data.inputs).ok());
    ASSERT_TRUE(cpu_reader->Run({}).ok());
    ASSERT_TRUE((*gpu_reader)->Run({}).ok());
    EXPECT_EQ((*gpu_reader)->output(0), cpu_reader->output(0)) << step;
  }
}

TEST_P(CudaExecutable, ShadowsThatAreRebuiltInsideALaunchCanBeRead) {
  ProgramBuilder reader("predict");
  const ValueId shadow = reader.Derived(reader.State("weight", kStepVector, false), DType::kF16, false);
  const ValueId y = reader.Temporary({DType::kF16, {5}});
  reader.Call("neg", {shadow}, {y});
  Pair pair(gpu_, options_);
  auto cpu_reader = *Cpu().Load(BuildFor("cpu", reader), pair.cpu_state);
  auto gpu_reader = *gpu_->Load(BuildFor("cuda", reader), pair.gpu_state, options_);
  ASSERT_TRUE(cpu_reader->Run({}).ok());
  ASSERT_TRUE(gpu_reader->Run({}).ok());
  // The host has the shadow, and the next launch finds it fresh.
  ASSERT_EQ(ContentOf(pair.gpu_state), ContentOf(pair.cpu_state));
  const StepData data(0);
  const std::vector<StepInputs> steps(pair.on_gpu->steps_per_launch(), data.inputs);
  ASSERT_TRUE(pair.on_gpu->RunSteps(steps).ok());
  for (const StepInputs& step : steps) ASSERT_TRUE(pair.on_cpu->Run(step).ok());
  EXPECT_EQ(ContentOf(pair.gpu_state), ContentOf(pair.cpu_state));
}

TEST_P(CudaExecutable, ACpuProgramGoesOnWithTheSameState) {
  Pair pair(gpu_, options_);
  auto cpu_on_gpu_state = *Cpu().Load(BuildFor("cpu", StepProgram()), pair.gpu_state);
  for (int step = 0; step < 6; ++step) {
    const StepData data(step);
    ASSERT_TRUE(pair.on_cpu->Run(data.inputs).ok());
    ASSERT_TRUE((step % 3 == 1 ? *cpu_on_gpu_state : *pair.on_gpu).Run(data.inputs).ok());
    EXPECT_EQ(ContentOf(pair.gpu_state), ContentOf(pair.cpu_state)) << step;
  }
}

TEST_P(CudaExecutable, InitialisesEntriesThatItWritesBeforeReading) {
  StateStore store;
  const auto weight = std::make_shared<StateEntry>("weight", Role::kParameter, kStepVector);
  ASSERT_TRUE(store.Add(weight).ok());
  ProgramBuilder builder("init_state");
  const std::vector<float> values = {1, 2, 3, 4, 5};
  const ValueId constant = builder.Constant(kStepVector, values.data());
  builder.Call("neg", {constant}, {builder.State("weight", kStepVector, true)});
  auto executable = gpu_->Load(BuildFor("cuda", builder), store, options_);
  ASSERT_TRUE(executable.ok()) << executable.status();
  EXPECT_FALSE(weight->initialised());
  ASSERT_TRUE((*executable)->Run({}).ok());
  EXPECT_TRUE(weight->initialised());
  EXPECT_EQ(ValuesOf<float>(ContentOf(store)[0]), (std::vector<float>{-1, -2, -3, -4, -5}));
}

TEST_P(CudaExecutable, CopiesThatDependOnEachOtherRunInOrder) {
  ProgramBuilder builder("shift");
  const ValueId a = builder.State("weight", kStepVector, true);
  const ValueId b = builder.State("velocity", kStepVector, true);
  const ValueId fresh = builder.Temporary(kStepVector);
  builder.Call("neg", {b}, {fresh});
  builder.program.step().copies = {{a, b, "test"}, {fresh, a, "test"}};
  StateStore store;
  AddEntry(store, "weight", {1, 1, 1, 1, 1});
  AddEntry(store, "velocity", {2, 2, 2, 2, 2});
  auto executable = gpu_->Load(BuildFor("cuda", builder), store, options_);
  ASSERT_TRUE(executable.ok()) << executable.status();
  ASSERT_TRUE((*executable)->Run({}).ok());
  EXPECT_EQ(ValuesOf<float>(ContentOf(store)[0]), std::vector<float>(5, -2.0f));
  EXPECT_EQ(ValuesOf<float>(ContentOf(store)[1]), std::vector<float>(5, 1.0f));
}

TEST_P(CudaExecutable, RunTimedGivesTheSameBitsAndATimeForEveryInstruction) {
  Pair pair(gpu_, options_);
  for (int step = 0; step < 4; ++step) {
    const StepData data(step);
    ASSERT_TRUE(pair.on_cpu->Run(data.inputs).ok());
    if (step % 2 == 0) {
      ASSERT_TRUE(pair.on_gpu->Run(data.inputs).ok());
    } else {
      const auto times = pair.on_gpu->RunTimed(data.inputs);
      ASSERT_TRUE(times.ok()) << times.status();
      ASSERT_EQ(times->size(), 7u);
      for (std::size_t i = 0; i < times->size(); ++i) {
        EXPECT_EQ((*times)[i].instruction, i);
        EXPECT_GE((*times)[i].duration_us, 0);
        EXPECT_GE((*times)[i].begin_us, i == 0 ? 0 : (*times)[i - 1].begin_us);
      }
    }
    EXPECT_EQ(OutputsOf(*pair.on_gpu, step), OutputsOf(*pair.on_cpu, step)) << step;
  }
  EXPECT_EQ(ContentOf(pair.gpu_state), ContentOf(pair.cpu_state));
}

// The check of a Program refuses them for every device.
TEST_P(CudaExecutable, EmptyTensorsAreRefusedByName) {
  const TensorSpec empty{DType::kF32, {0, 3}};
  ProgramBuilder builder("empty");
  const ValueId x = builder.Input("x", empty);
  const ValueId y = builder.Temporary(empty);
  builder.Call("neg", {x}, {y});
  builder.Output("y", y);
  StateStore store;
  const absl::Status status = gpu_->Load(BuildFor("cuda", builder), store, options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("every tensor has at least one element"));
}

/// x plus a constant for each of `elements`, which fills it.
template <typename T>
ProgramBuilder AdditionOfFills(DType dtype, const std::vector<T>& elements) {
  // More than what the host writes of a fill, and no power of two.
  const TensorSpec spec{dtype, {50001}};
  ProgramBuilder builder("filled");
  const ValueId x = builder.Input("x", spec);
  const std::vector<T> given(50001, elements[0]);
  std::vector<ValueId> addends = {builder.Constant(spec, given.data())};
  for (const T element : elements) addends.push_back(builder.Filled(spec, element));
  for (std::size_t i = 0; i < addends.size(); ++i) {
    const ValueId sum = builder.Temporary(spec);
    builder.Call("add", {x, addends[i]}, {sum});
    builder.Output("sum" + std::to_string(i), sum);
  }
  return builder;
}

template <typename T>
void ExpectFilledAsOnTheCpu(const EmulatedDevice& gpu, const LoadOptions& options, DType dtype,
                            const std::vector<T>& elements) {
  const ProgramBuilder builder = AdditionOfFills(dtype, elements);
  StateStore none;
  auto on_gpu = gpu->Load(BuildFor("cuda", builder), none, options);
  ASSERT_TRUE(on_gpu.ok()) << on_gpu.status();
  EXPECT_GE((*on_gpu)->memory().other, builder.program.constant_bytes());
  const auto on_cpu = *Cpu().Load(BuildFor("cpu", builder), none);
  const std::vector<T> x(50001);
  const std::vector<absl::Span<const std::uint8_t>> inputs = {BytesOf(x)};
  ASSERT_TRUE(on_cpu->Run(inputs).ok());
  ASSERT_TRUE((*on_gpu)->Run(inputs).ok());
  EXPECT_EQ(OutputsOf(**on_gpu, 0), OutputsOf(*on_cpu, 0));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::vector<T> expected(50001, elements[i]);
    EXPECT_EQ(on_cpu->output(i + 1), BytesOf(expected)) << i;
  }
}

TEST_P(CudaExecutable, ConstantsOfOneElementAreFilledOnTheDevice) {
  ExpectFilledAsOnTheCpu<float>(gpu_, options_, DType::kF32, {1.5f, 0.0f, -2.25f});
  ExpectFilledAsOnTheCpu<Half>(gpu_, options_, DType::kF16, {Half(0.5f), Half(0.0f)});
}

TEST_P(CudaExecutable, SaysWhatItHolds) {
  Pair pair(gpu_, options_);
  const MemoryUse memory = pair.on_gpu->memory();
  EXPECT_EQ(memory.arena, pair.on_gpu->program().arena_bytes);
  EXPECT_EQ(memory.state, 5u * 4 * 2 + 5 * 2 + 20000);
  // Two buffers of two padded inputs for every step of a launch.
  EXPECT_EQ(memory.other, pair.on_gpu->program().constant_bytes() + 2 * 512 * options_.steps_per_launch);
}

TEST_P(CudaExecutable, NamesRangesAfterCells) {
  Pair pair(gpu_, options_);
  ASSERT_TRUE(pair.on_gpu->Run(StepData(0).inputs).ok());
  EXPECT_THAT(gpu_.api.ranges(), testing::IsSupersetOf({"test add", "test neg", "test cast"}));
}

}  // namespace
}  // namespace mpc::runtime
