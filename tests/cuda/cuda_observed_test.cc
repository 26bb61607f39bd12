// A step on a GPU shows each result, before its memory is used again, as the step on the CPU does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/observable_step.h"
#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"

namespace mpc::runtime {
namespace {

using emulation::Schedule;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// "sequence instruction result", and the bytes there.
using Seen = std::vector<std::pair<std::string, std::vector<std::uint8_t>>>;

absl::Status RunObserved(Executable& executable, StepInputs inputs, const ResultObserver& observe) {
  return dynamic_cast<ObservableStep&>(executable).RunObserved(inputs, observe);
}

/// What a step shows.
Seen ResultsOf(Executable& executable, StepInputs inputs) {
  Seen seen;
  const absl::Status status = RunObserved(executable, inputs, [&](const ObservedResult& each) {
    seen.emplace_back(absl::StrCat(each.sequence, " ", each.instruction, " ", each.result),
                      std::vector<std::uint8_t>(each.bytes.begin(), each.bytes.end()));
  });
  EXPECT_TRUE(status.ok()) << status;
  return seen;
}

std::unique_ptr<Executable> LoadOnCpu(const ProgramBuilder& builder, const StateStore& state) {
  return *(*GetDevice("cpu"))->Load(BuildFor("cpu", builder), state);
}

/// When work runs, whether steps are a graph, how many share a launch.
class CudaObserved : public ::testing::TestWithParam<std::tuple<Schedule, bool, int>> {
 protected:
  std::unique_ptr<Executable> Load(const ProgramBuilder& builder, const StateStore& state) const {
    auto loaded = gpu_->Load(BuildFor("cuda", builder), state,
                             {.graph = std::get<1>(GetParam()), .steps_per_launch = std::get<2>(GetParam())});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }
  EmulatedDevice gpu_{{.schedule = std::get<0>(GetParam())}};
};

INSTANTIATE_TEST_SUITE_P(All, CudaObserved,
                         ::testing::Combine(::testing::Values(Schedule::kLate, Schedule::kAtOnce), ::testing::Bool(),
                                            ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) == Schedule::kLate ? "Late" : "AtOnce") +
                                  (std::get<1>(info.param) ? "Graph" : "Stream") +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST_P(CudaObserved, ShowsTheResultsOfTheCpuBetweenOtherSteps) {
  StateStore cpu_state, gpu_state;
  AddStepState(cpu_state);
  AddStepState(gpu_state);
  const auto on_cpu = LoadOnCpu(StepProgram(), cpu_state);
  const auto on_gpu = Load(StepProgram(), gpu_state);
  for (int step = 0; step < 7; ++step) {
    SCOPED_TRACE(step);
    const StepData data(step);
    if (step % 3 == 1) {
      const Seen seen = ResultsOf(*on_gpu, data.inputs);
      EXPECT_EQ(seen, ResultsOf(*on_cpu, data.inputs));
      EXPECT_EQ(seen.size(), 7u);
    } else {
      ASSERT_TRUE(on_cpu->Run(data.inputs).ok());
      ASSERT_TRUE(on_gpu->Run(data.inputs).ok());
    }
    EXPECT_EQ(OutputsOf(*on_gpu, static_cast<std::uint64_t>(step)),
              OutputsOf(*on_cpu, static_cast<std::uint64_t>(step)));
  }
  EXPECT_EQ(ContentOf(gpu_state), ContentOf(cpu_state));
  EXPECT_EQ(on_gpu->steps_started(), 7u);
}

TEST_P(CudaObserved, ShowsAResultBeforeALaterOneTakesItsMemory) {
  ProgramBuilder builder("train_step");
  const ValueId x = builder.Input("x", kStepVector);
  const ValueId first = builder.Temporary(kStepVector), second = builder.Temporary(kStepVector);
  const ValueId third = builder.Temporary(kStepVector);
  builder.program.values[third].offset = builder.program.values[first].offset;
  builder.Call("neg", {x}, {first});
  builder.Call("mul_scalar", {first}, {second}, {{"value", 2.0}});
  builder.Call("mul_scalar", {second}, {third}, {{"value", 2.0}});
  builder.Output("third", third);
  StateStore state;
  const auto on_gpu = Load(builder, state);
  const std::vector<float> data = {1, 2, 3, 4, 5};
  const Seen seen = ResultsOf(*on_gpu, {BytesOf(data)});
  ASSERT_EQ(seen.size(), 3u);
  const std::vector<float> negated = {-1, -2, -3, -4, -5};
  EXPECT_EQ(seen[0].second, std::vector<std::uint8_t>(BytesOf(negated).begin(), BytesOf(negated).end()));
  EXPECT_EQ(ValuesOf<float>(seen[2].second), (std::vector<float>{-4, -8, -12, -16, -20}));
}

TEST_P(CudaObserved, ShowsEachResultOfInstructionsThatShareALaunch) {
  ProgramBuilder builder("train_step");
  const float rate_value = 0.5f;
  const ValueId rate = builder.Constant({DType::kF32, {}}, &rate_value);
  StateStore cpu_state, gpu_state;
  for (const auto& [name, size] : {std::pair<std::string, std::int64_t>{"a", 3}, {"b", 2500}}) {
    const TensorSpec spec{DType::kF32, {size}};
    const ValueId weight = builder.State("weight." + name, spec, true);
    const ValueId velocity = builder.State("velocity." + name, spec, true);
    const ValueId gradient = builder.Input("gradient." + name, spec);
    builder.Call("momentum", {weight, velocity, gradient, rate}, {weight, velocity}, {{"momentum", 0.5}});
    for (StateStore* store : {&cpu_state, &gpu_state}) {
      AddEntry(*store, "weight." + name, std::vector<float>(static_cast<std::size_t>(size), 4));
      AddEntry(*store, "velocity." + name, std::vector<float>(static_cast<std::size_t>(size), 2));
    }
  }
  const std::vector<float> of_a = {1, 3, 5}, of_b(2500, 3);
  const std::vector<absl::Span<const std::uint8_t>> inputs = {BytesOf(of_a), BytesOf(of_b)};
  const Seen seen = ResultsOf(*Load(builder, gpu_state), inputs);
  EXPECT_EQ(seen, ResultsOf(*LoadOnCpu(builder, cpu_state), inputs));
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[3].first, "0 1 1");
}

TEST_P(CudaObserved, ShowsEveryRunOfASequenceAndReadsWhatTheObserverLeaves) {
  ProgramBuilder builder("train_step");
  const TensorSpec vector{DType::kF32, {4}};
  const ValueId x = builder.Input("x", vector);
  const ValueId sum = builder.Temporary(vector), next = builder.Temporary(vector);
  const std::vector<float> ones(4, 1);
  const ValueId one = builder.Constant(vector, ones.data());
  builder.Repeat(3, {x, one}, {sum}, {Instruction{"add", {sum, one}, {next}, {}, 0, 0, "test"}}, {{next, sum, "test"}});
  builder.Output("sum", sum);
  StateStore state;
  const auto on_gpu = Load(builder, state);
  const std::vector<float> start = {0, 10, 20, 30};
  std::vector<float> seen;
  const absl::Status status = RunObserved(*on_gpu, {BytesOf(start)}, [&](const ObservedResult& each) {
    EXPECT_EQ(each.sequence, 1u);
    auto* const values = reinterpret_cast<float*>(each.bytes.data());
    seen.push_back(values[0]);
    values[0] += 100;
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, (std::vector<float>{1, 102, 203}));
  EXPECT_EQ(ValuesOf<float>(on_gpu->output(0)), (std::vector<float>{303, 13, 23, 33}));
}

TEST_P(CudaObserved, NamesTheInstructionOfAKernelThatFails) {
  StateStore state;
  AddStepState(state);
  const auto on_gpu = Load(StepProgram(), state);
  ASSERT_TRUE(on_gpu->Run(StepData(0).inputs).ok());
  ASSERT_TRUE(on_gpu->Wait().ok());
  // The copy of the inputs is one kernel. The derived state is as its source was before step 0.
  gpu_.api.FailKernel(4);
  std::size_t seen = 0;
  const StepData data(1);
  const absl::Status status = RunObserved(*on_gpu, data.inputs, [&](const ObservedResult&) { ++seen; });
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("program \"train_step\", step 1"), HasSubstr("train_step, instruction 1 (neg in test): "),
                    HasSubstr("cudaErrorIllegalAddress")));
  EXPECT_EQ(seen, 1u);
  EXPECT_EQ(on_gpu->Run(data.inputs), status) << "it stays";
}

TEST(CudaObservedErrors, SayWhichResultCannotBeCopied) {
  // One copy uploads the inputs; then each result that is shown is one.
  for (const std::size_t copy : {2u, 4u}) {
    EmulatedDevice gpu;
    StateStore state;
    AddStepState(state);
    auto loaded = gpu->Load(BuildFor("cuda", StepProgram()), state);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_TRUE((*loaded)->Run(StepData(0).inputs).ok());
    gpu.api.FailCall("Copy", copy, absl::InternalError("injected"));
    const StepData data(1);
    const absl::Status status = RunObserved(**loaded, data.inputs, [](const ObservedResult&) {});
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("instruction ", copy - 2, " (add in test), copying its result 0: injected")));
  }
}

TEST_P(CudaObserved, RefusesInputsAsARunDoes) {
  StateStore state;
  AddStepState(state);
  const auto on_gpu = Load(StepProgram(), state);
  const absl::Status status = RunObserved(*on_gpu, {}, [](const ObservedResult&) {});
  EXPECT_EQ(status, on_gpu->Run({}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ResultsOf(*on_gpu, StepData(0).inputs).size(), 7u) << "the mistake is forgotten";
}

}  // namespace
}  // namespace mpc::runtime
