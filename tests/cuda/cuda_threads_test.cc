// Programs of several threads on one emulated GPU. The thread sanitizer watches (tools/sanitize.sh tsan).
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"
#include "tests/runtime/on_threads.h"

namespace mpc::runtime {
namespace {

using emulation::Schedule;

constexpr int kThreads = 3;
constexpr int kSteps = 12;

/// StepProgram with state of its own.
struct Training {
  explicit Training(const Device& device, const LoadOptions& options = {}) {
    AddStepState(state);
    auto loaded = device.Load(BuildFor(std::string(device.name()), StepProgram()), state, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (loaded.ok()) executable = *std::move(loaded);
  }

  /// Runs steps whose inputs no other `thread` has. `late`: outputs are read when the next step has been started.
  std::vector<Outputs> Run(int thread, bool late) {
    std::vector<Outputs> outputs;
    for (int step = 0; step < kSteps; ++step) {
      const StepData data(100 * thread + step);
      const absl::Status status = executable->Run(data.inputs);
      EXPECT_TRUE(status.ok()) << status;
      if (!late) outputs.push_back(OutputsOf(*executable, step));
      if (late && step > 0) outputs.push_back(OutputsOf(*executable, step - 1));
    }
    if (late) outputs.push_back(OutputsOf(*executable, kSteps - 1));
    return outputs;
  }

  StateStore state;
  std::unique_ptr<Executable> executable;
};

/// When work runs, and whether a graph is replayed.
class CudaThreads : public testing::TestWithParam<std::tuple<Schedule, bool>> {
 protected:
  EmulatedDevice gpu_{{.schedule = std::get<0>(GetParam())}};
  LoadOptions options_{.graph = std::get<1>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, CudaThreads,
                         testing::Combine(testing::Values(Schedule::kLate, Schedule::kAtOnce), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) == Schedule::kLate ? "Late" : "AtOnce") +
                                  (std::get<1>(info.param) ? "Graph" : "Stream");
                         });

TEST_P(CudaThreads, StartStepsOfTheirOwnBesideEachOther) {
  const Device& cpu = **GetDevice("cpu");
  std::vector<std::unique_ptr<Training>> trainings;
  // A capture forbids the calls of other threads in the emulation, so graphs are recorded before the threads start.
  for (int i = 0; i < kThreads; ++i) trainings.push_back(std::make_unique<Training>(*gpu_, options_));
  test::OnThreads(kThreads, [&](int thread) {
    Training& on_gpu = *trainings[static_cast<std::size_t>(thread)];
    ASSERT_NE(on_gpu.executable, nullptr);
    Training on_cpu(cpu);
    EXPECT_TRUE(on_gpu.Run(thread, true) == on_cpu.Run(thread, false)) << "outputs differ";
    EXPECT_EQ(ContentOf(on_gpu.state), ContentOf(on_cpu.state));
  });
}

/// Without graphs: see above.
class CudaThreadsOnStreams : public testing::TestWithParam<Schedule> {
 protected:
  EmulatedDevice gpu_{{.schedule = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(All, CudaThreadsOnStreams, testing::Values(Schedule::kLate, Schedule::kAtOnce),
                         [](const auto& info) { return info.param == Schedule::kLate ? "Late" : "AtOnce"; });

TEST_P(CudaThreadsOnStreams, LoadAndDropProgramsBesideEachOther) {
  const Device& cpu = **GetDevice("cpu");
  test::OnThreads(kThreads, [&](int thread) {
    Training on_cpu(cpu);
    const std::vector<Outputs> expected = on_cpu.Run(thread, false);
    for (int load = 0; load < 3; ++load) {
      Training training(*gpu_, {.graph = false});
      ASSERT_NE(training.executable, nullptr);
      EXPECT_TRUE(training.Run(thread, true) == expected) << "outputs differ";
      EXPECT_EQ(ContentOf(training.state), ContentOf(on_cpu.state));
    }
  });
}

}  // namespace
}  // namespace mpc::runtime
