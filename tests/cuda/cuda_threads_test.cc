// Programs of several threads on one emulated GPU. The thread sanitizer watches (tools/sanitize.sh tsan).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
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

// A thread that only reads results, or gives a step back, works on the step's GPU.
TEST(CudaThreadsOfResults, ReadAndGiveBackOnTheGpuOfTheStep) {
  EmulatedDevice gpu;
  auto state = std::make_unique<StateStore>();
  AddStepState(*state);
  std::unique_ptr<Executable> executable = *gpu->Load(BuildFor("cuda", StepProgram()), *state);
  ASSERT_TRUE(executable->Run(StepData(0).inputs).ok());
  std::thread([&] {
    EXPECT_FALSE(executable->output(0).empty());
    executable.reset();
    state.reset();
  }).join();
  EXPECT_THAT(gpu.api.StrayCalls(), testing::IsEmpty());
}

/// The table of a GPU whose stand-ins for libraries look at the thread that calls them.
class CudaThreadsOfADevice : public testing::Test {
 protected:
  CudaThreadsOfADevice() {
    CudaDeviceOptions options{.use_libraries = false};
    options.make_kernel = [this](const KernelSpec& spec, const cuda::KernelContext& context) {
      EXPECT_TRUE(api_.IsUsedByThisThread()) << spec.name << " is made";
      cuda::KernelContext own = context;
      own.choice.clear();
      return cuda::CreateKernel(spec, own);
    };
    options.candidates = [this](const KernelSpec& spec,
                                const cuda::KernelContext&) -> absl::StatusOr<std::vector<std::string>> {
      EXPECT_TRUE(api_.IsUsedByThisThread()) << spec.name << " is looked up";
      return std::vector<std::string>{"one", "another"};
    };
    device_ = *CudaDevice::Open(api_, options);
  }
  ~CudaThreadsOfADevice() override {
    device_.reset();
    EXPECT_THAT(api_.StrayCalls(), testing::IsEmpty());
    EXPECT_THAT(api_.Problems(), testing::IsEmpty());
    EXPECT_THAT(api_.Alive(), testing::IsEmpty());
  }

  emulation::EmulatedApi api_;
  std::unique_ptr<CudaDevice> device_;
};

// A thread that has not named its device is on the first one, which is another process's.
TEST_F(CudaThreadsOfADevice, NameItBeforeTheyPlanTimeLoadAndRead) {
  const auto program = BuildFor("cuda", StepProgram());
  const Instruction& add = program->step().instructions[0];
  for (const bool tune : {false, true}) {
    test::OnThreads(1, [&](int) {
      const auto plan = device_->Plan(*program, add, {.tune = tune});
      EXPECT_TRUE(plan.ok()) << plan.status();
    });
  }
  StateStore store;
  AddStepState(store);
  std::unique_ptr<Executable> executable;
  test::OnThreads(1, [&](int) {
    auto loaded = device_->Load(program, store);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    executable = *std::move(loaded);
  });
  ASSERT_NE(executable, nullptr);
  test::OnThreads(1, [&](int) { EXPECT_TRUE(executable->Run(StepData(0).inputs).ok()); });
  test::OnThreads(1, [&](int) {
    std::vector<std::uint8_t> weight(20);
    EXPECT_TRUE(store.Find("weight")->Read(absl::MakeSpan(weight)).ok());
  });
}

// Library handles are one thread's at a time: no kernel is made while candidates are looked up.
TEST(CudaThreadsOfHandles, AreNotUsedBesideALookUp) {
  emulation::EmulatedApi api;
  std::atomic<bool> is_looking_up{false};
  std::atomic<int> made_beside{0};
  CudaDeviceOptions options{.use_libraries = false};
  options.make_kernel = [&](const KernelSpec& spec, const cuda::KernelContext& context) {
    made_beside += is_looking_up ? 1 : 0;
    return cuda::CreateKernel(spec, context);
  };
  std::promise<void> began;
  options.candidates = [&](const KernelSpec&, const cuda::KernelContext&) -> absl::StatusOr<std::vector<std::string>> {
    is_looking_up = true;
    began.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // in which the other thread would make its kernels
    is_looking_up = false;
    return std::vector<std::string>();
  };
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open(api, options);
  const auto program = BuildFor("cuda", StepProgram());
  std::thread planner([&] { (void)device->Plan(*program, program->step().instructions[0], {.tune = true}); });
  began.get_future().wait();
  StateStore store;
  AddStepState(store);
  EXPECT_TRUE(device->Load(program, store, {.graph = false}).ok());
  planner.join();
  EXPECT_EQ(made_beside, 0);
}

}  // namespace
}  // namespace mpc::runtime
