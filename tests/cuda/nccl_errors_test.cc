// What ranks say when NCCL is missing, fails, or another rank does not come. Every rank ends, and nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/registry.h"
#include "tests/cuda/gpu_ranks.h"
#include "tests/cuda/step_program.h"

namespace mpc::runtime {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

/// Ranks that wait for one that will not come wait as long.
constexpr std::chrono::milliseconds kShortLimit(2000);

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

/// A step that doubles its input and sums it over both ranks.
std::shared_ptr<const Program> SumOfBoth(const GpuRank& gpu) {
  ProgramBuilder builder("train_step");
  const ValueId x = builder.Input("x", kStepVector);
  const ValueId doubled = builder.Temporary(kStepVector);
  const ValueId sum = builder.Temporary(kStepVector);
  const ValueId weight = builder.State("weight", kStepVector, true);
  builder.Call("add", {x, x}, {doubled});
  builder.Call("all_reduce", {doubled}, {sum}, {{"processes", std::int64_t{2}}}, gpu.device.get());
  builder.Call("add", {weight, sum}, {weight});
  builder.Output("weight", weight);
  return BuildFor("cuda", builder);
}

absl::StatusOr<std::unique_ptr<Executable>> LoadSum(const GpuRank& gpu, const StateStore& store, bool graph = true) {
  return gpu.device->Load(SumOfBoth(gpu), store, {.graph = graph, .communicator = gpu.processes});
}

absl::Status RunOnce(Executable& executable) {
  const std::vector<float> values(5, 1.0f);
  const std::vector<absl::Span<const std::uint8_t>> inputs = {BytesOf(values)};
  absl::Status status = executable.Run(inputs);
  return status.ok() ? executable.Wait() : status;
}

using ChangeOptions = std::function<void(int rank, GpuRankOptions&)>;

/// Expects that no rank of `ranks`, whose options are as `change` leaves them, can join the others.
void ExpectRefusedOnAll(int ranks, absl::StatusCode code, const testing::Matcher<std::string>& text,
                        const ChangeOptions& change) {
  OnGpus(
      ranks,
      [&](GpuRank& gpu) {
        const absl::Status status = gpu.device->Join(gpu.processes);
        EXPECT_EQ(status.code(), code);
        EXPECT_THAT(TextOf(status), text);
        EXPECT_EQ(gpu.nccl.calls("Create"), 0u);
      },
      std::chrono::seconds(60), change);
}

TEST(NcclOpen, SaysOnAllRanksWhichOneHasNoNccl) {
  ExpectRefusedOnAll(2, absl::StatusCode::kUnavailable,
                     "transport \"nccl\": rank 1 cannot take part: NCCL was not found: a reason",
                     [](int rank, GpuRankOptions& options) {
                       if (rank == 1) options.missing = absl::UnavailableError("NCCL was not found: a reason");
                     });
}

TEST(NcclOpen, RefusesVersionsThatDiffer) {
  ExpectRefusedOnAll(2, absl::StatusCode::kFailedPrecondition,
                     "transport \"nccl\": rank 0 has NCCL 2.28.9, and rank 1 has NCCL 2.21.5",
                     [](int rank, GpuRankOptions& options) {
                       if (rank == 1) options.version = "2.21.5";
                     });
}

TEST(NcclOpen, RefusesTwoRanksOnOneGpu) {
  ExpectRefusedOnAll(4, absl::StatusCode::kFailedPrecondition,
                     HasSubstr("ranks 1 and 3 have the same GPU, GPU-1; each process needs one of its"),
                     [](int rank, GpuRankOptions& options) {
                       if (rank == 3) options.id = "GPU-1";
                     });
}

TEST(NcclOpen, IsMissingWhereADeviceWasOpenedWithoutIt) {
  const auto group = std::make_shared<test::ThreadGroup>(1);
  emulation::EmulatedApi api({.polls_advance = true});
  const auto device = *CudaDevice::Open(api, {.use_libraries = false});
  EXPECT_THAT(TextOf(device->Join(group->Join(0))), HasSubstr("this build has no NCCL"));
}

// GpuRank finds calls of threads that have not named their GPU.
TEST(NcclOpen, AndLoadingMayBeOnAnyThread) {
  for (const bool joins : {false, true}) {
    OnGpus(2, [joins](GpuRank& gpu) {
      StateStore store;
      AddEntry(store, "weight", {0, 0, 0, 0, 0});
      test::OnThreads(1, [&](int) {
        if (joins) {
          EXPECT_TRUE(gpu.device->Join(gpu.processes).ok());
        } else {
          EXPECT_TRUE(LoadSum(gpu, store).ok());
        }
      });
    });
  }
}

TEST(NcclErrors, AProgramNeedsItsGroup) {
  OnGpus(2, [](GpuRank& gpu) {
    StateStore store;
    AddEntry(store, "weight", {0, 0, 0, 0, 0});
    const absl::Status alone = gpu.device->Load(SumOfBoth(gpu), store).status();
    EXPECT_THAT(TextOf(alone), HasSubstr("was compiled for 2 processes; this process trains alone"));
  });
}

/// Loads and runs a step where the `n`-th `call` of rank 1 fails. Returns false where there was no such call.
bool EndsOnAllRanks(const std::string& call, std::size_t n, bool graph) {
  std::atomic<bool> was_called{false};
  OnGpus(
      2,
      [&](GpuRank& gpu) {
        const int failing = call == "MakeId" ? 0 : 1;
        if (call == "AllReduceSum") gpu.AddInAnyOrder();
        if (gpu.rank() == failing) gpu.nccl.FailCall(call, n, absl::InternalError("injected"));
        StateStore store;
        AddEntry(store, "weight", {0, 0, 0, 0, 0});
        absl::StatusOr<std::unique_ptr<Executable>> loaded = LoadSum(gpu, store, graph);
        absl::Status status = loaded.status();
        for (int step = 0; step < 3 && status.ok(); ++step) status = RunOnce(**loaded);
        if (gpu.rank() == failing && gpu.nccl.calls(call) >= n) {
          was_called = true;
          EXPECT_THAT(TextOf(status), HasSubstr("injected")) << call << " " << n;
          if (call != "MakeId") {
            EXPECT_THAT(TextOf(status), HasSubstr("rank 1 of 2")) << call << " " << n;
          }
        }
        if (loaded.ok() && !status.ok()) {
          EXPECT_EQ((*loaded)->Wait(), status) << "it stays";
          EXPECT_EQ(RunOnce(**loaded), status);
          EXPECT_TRUE((*loaded)->output(0).empty());
          EXPECT_FALSE(LoadSum(gpu, store).ok()) << "no other step is begun";
        }
        gpu.Leave();
        if (was_called) {
          EXPECT_FALSE(status.ok()) << call << " " << n << " on rank " << gpu.rank();
        }
      },
      kShortLimit);
  return was_called;
}

TEST(NcclErrors, EveryCallThatFailsEndsAllRanks) {
  constexpr std::size_t kMost = 4;
  for (const char* call : {"MakeId", "Create", "BeginGroup", "EndGroup", "Send", "Receive", "AllGather", "AllReduceSum",
                           "AllReduceMax", "Settled"}) {
    std::size_t n = 1;
    while (n <= kMost && EndsOnAllRanks(call, n, true)) ++n;
    EXPECT_GT(n, 1u) << call;
  }
}

TEST(NcclErrors, AreMetInStepsWithoutAGraph) {
  // The third send of rank 1 is that of the second step.
  EXPECT_TRUE(EndsOnAllRanks("Send", 3, false));
}

TEST(NcclErrors, ARankThatDoesNotComeIsWaitedForInTime) {
  for (const bool graph : {true, false}) {
    std::atomic<bool> has_ended{false};
    OnGpus(
        2,
        [&](GpuRank& gpu) {
          StateStore store;
          AddEntry(store, "weight", {0, 0, 0, 0, 0});
          auto executable = LoadSum(gpu, store, graph);
          ASSERT_TRUE(executable.ok()) << executable.status();
          ASSERT_TRUE(RunOnce(**executable).ok());
          if (gpu.rank() == 1) {
            while (!has_ended) std::this_thread::yield();
            return;
          }
          const absl::Status status = RunOnce(**executable);
          has_ended = true;
          EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
          EXPECT_THAT(TextOf(status),
                      AllOf(HasSubstr("program \"train_step\", step 1 or work started before"),
                            HasSubstr("transport \"nccl\": rank 0 of 2: it has waited 2000 ms for the others"),
                            HasSubstr("its GPU has last come to train_step, instruction 1 (all_reduce in test)")));
          EXPECT_EQ(gpu.nccl.calls("Abort"), 1u);
          std::vector<std::uint8_t> weight(20);
          EXPECT_FALSE(store.Find("weight")->Read(absl::MakeSpan(weight)).ok()) << "it is half-written";
        },
        kShortLimit);
  }
}

/// A kernel that keeps the GPU busy for `time`, in every replay.
absl::StatusOr<std::unique_ptr<cuda::Kernel>> KeepsBusy(emulation::EmulatedApi& api, std::chrono::milliseconds time) {
  return cuda::MakeKernel([&api, time](const cuda::KernelOperands&, cuda::LaunchQueue& queue) {
    using Clock = std::chrono::steady_clock;
    const auto begin = std::make_shared<Clock::time_point>();
    const auto has_ended = [begin, time] {
      if (*begin == Clock::time_point()) *begin = Clock::now();
      return Clock::now() - *begin >= time;
    };
    const auto end = [begin] {
      *begin = {};
      return absl::OkStatus();
    };
    return api.EnqueueWork(queue.stream(), {end, has_ended});
  });
}

/// Ranks whose tanh keeps the GPU busy for `time`.
std::function<void(int, GpuRankOptions&)> BusyFor(std::chrono::milliseconds time) {
  return [time](int, GpuRankOptions& options) {
    options.make_kernel = [time](emulation::EmulatedApi& api, const KernelSpec& spec,
                                 const cuda::KernelContext& context) {
      return spec.name == "tanh" ? KeepsBusy(api, time) : cuda::CreateKernel(spec, context);
    };
  };
}

/// A step with a tanh. `of_both`: then it sums over both ranks.
std::shared_ptr<const Program> BusyStep(const GpuRank& gpu, bool of_both) {
  ProgramBuilder builder("train_step");
  const ValueId x = builder.Input("x", kStepVector);
  const ValueId busy = builder.Temporary(kStepVector);
  const ValueId sum = builder.Temporary(kStepVector);
  builder.Call("tanh", {x}, {busy});
  if (of_both) builder.Call("all_reduce", {x}, {sum}, {{"processes", std::int64_t{2}}}, gpu.device.get());
  builder.Output("y", of_both ? sum : busy);
  return BuildFor("cuda", builder);
}

// Four steps a launch, which together take longer than others are waited for.
TEST(NcclErrors, OwnWorkIsNoWaitForOthers) {
  constexpr std::size_t kSteps = 4;
  OnGpus(
      2,
      [](GpuRank& gpu) {
        StateStore store;
        auto executable = gpu.device->Load(BusyStep(gpu, /*of_both=*/true), store,
                                           {.steps_per_launch = kSteps, .communicator = gpu.processes});
        ASSERT_TRUE(executable.ok()) << executable.status();
        const std::vector<float> values(5, 1.0f);
        const std::vector<absl::Span<const std::uint8_t>> inputs = {BytesOf(values)};
        const std::vector<StepInputs> steps(kSteps, inputs);
        absl::Status status = (*executable)->RunSteps(steps);
        if (status.ok()) status = (*executable)->Wait();
        EXPECT_TRUE(status.ok()) << status;
      },
      kShortLimit, BusyFor(kShortLimit / 3));
}

TEST(NcclErrors, AStepOfOneProcessWaitsForNobody) {
  OnGpus(
      2,
      [](GpuRank& gpu) {
        StateStore store;
        AddEntry(store, "weight", {0, 0, 0, 0, 0});
        auto together = LoadSum(gpu, store);
        ASSERT_TRUE(together.ok()) << together.status();
        ASSERT_TRUE(RunOnce(**together).ok());
        if (gpu.rank() == 1) return gpu.Leave();
        auto alone = gpu.device->Load(BusyStep(gpu, /*of_both=*/false), store);
        ASSERT_TRUE(alone.ok()) << alone.status();
        const absl::Status status = RunOnce(**alone);
        EXPECT_TRUE(status.ok()) << status;
      },
      kShortLimit, BusyFor(kShortLimit + kShortLimit / 4));
}

TEST(NcclErrors, ARankThatLeavesIsNamed) {
  OnGpus(2, [](GpuRank& gpu) {
    StateStore store;
    AddEntry(store, "weight", {0, 0, 0, 0, 0});
    auto executable = LoadSum(gpu, store);
    ASSERT_TRUE(executable.ok()) << executable.status();
    ASSERT_TRUE(RunOnce(**executable).ok());
    if (gpu.rank() == 1) return gpu.Leave();
    const absl::Status status = RunOnce(**executable);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(TextOf(status), AllOf(HasSubstr("rank 0 of 2: rank 1 has left"),
                                      HasSubstr("train_step, instruction 1 (all_reduce in test)")));
  });
}

TEST(NcclErrors, AnErrorOfTheDeviceAbortsTheGroup) {
  OnGpus(
      2,
      [](GpuRank& gpu) {
        StateStore store;
        AddEntry(store, "weight", {0, 0, 0, 0, 0});
        auto executable = LoadSum(gpu, store);
        ASSERT_TRUE(executable.ok()) << executable.status();
        if (gpu.rank() == 1) gpu.api.FailKernel(2);
        const absl::Status status = RunOnce(**executable);
        EXPECT_FALSE(status.ok());
        if (gpu.rank() == 1) {
          EXPECT_THAT(TextOf(status), HasSubstr("cudaErrorIllegalAddress"));
        } else {
          EXPECT_THAT(TextOf(status), AnyOf(HasSubstr("rank 1 has left"), HasSubstr("has waited")));
        }
        EXPECT_EQ(gpu.nccl.calls("Abort"), 1u);
        gpu.Leave();
      },
      kShortLimit);
}

}  // namespace
}  // namespace mpc::runtime
