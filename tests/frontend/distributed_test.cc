// The group of processes: its options, and what the host exchanges.
#include "frontend/distributed/distributed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/distributed/exchange.h"
#include "frontend/distributed/join_group.h"
#include "frontend/distributed/loss_deadline.h"
#include "frontend/train/metric.h"
#include "tests/frontend/error_of.h"
#include "tests/runtime/thread_communicator.h"

namespace mpc::distributed {
namespace {

using test::OnRanks;
using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;

TEST(Exchange, BroadcastsBytesOfAnySize) {
  OnRanks(4, [](Communicator& communicator) {
    for (const std::string& sent : {std::string("three"), std::string(), std::string(100000, 'x')}) {
      std::string bytes = communicator.rank() == 2 ? sent : "what was there before";
      EXPECT_TRUE(BroadcastBytes(communicator, bytes, 2).ok());
      EXPECT_EQ(bytes, sent);
    }
  });
}

TEST(Exchange, GathersBytesInTheOrderOfRanks) {
  OnRanks(4, [](Communicator& communicator) {
    const auto gathered = GatherBytes(communicator, std::string(static_cast<std::size_t>(communicator.rank()), 'r'));
    ASSERT_TRUE(gathered.ok());
    EXPECT_THAT(*gathered, ElementsAre("", "r", "rr", "rrr"));
    const auto of_nothing = GatherBytes(communicator, "");
    ASSERT_TRUE(of_nothing.ok());
    EXPECT_THAT(*of_nothing, ElementsAre("", "", "", ""));
  });
}

TEST(Exchange, AgreesOnTheLargestNumber) {
  OnRanks(4, [](Communicator& communicator) {
    const std::vector<std::int64_t> numbers = {-5, -(std::int64_t{1} << 60), -2, -7};
    const auto largest = AgreeOnMaximum(communicator, numbers[static_cast<std::size_t>(communicator.rank())]);
    ASSERT_TRUE(largest.ok());
    EXPECT_EQ(*largest, -2);
  });
}

TEST(Exchange, ARankThatHasLeftIsAnErrorOfAllFunctions) {
  OnRanks(2, [](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    std::string bytes = "kept";
    EXPECT_EQ(BroadcastBytes(communicator, bytes).code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(bytes, "kept");
    EXPECT_EQ(GatherBytes(communicator, bytes).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(AgreeOnMaximum(communicator, 1).status().code(), absl::StatusCode::kUnavailable);
  });
}

TEST(Exchange, MetricsOfAllRanksAreMergedInTheirOrder) {
  const auto update = [](const MetricList& metrics, int rank) {
    const float loss = 0.1f * static_cast<float>(rank + 1);
    const auto label = static_cast<std::int32_t>(rank % 2);
    return metrics.Update(Tensor::Scalar(loss), Tensor::From<float>({loss, 0.25f}, {1, 2}),
                          Tensor::From<std::int32_t>({label}, {1}));
  };
  const MetricList expected = {"loss", "accuracy", "auc"};
  for (int rank = 0; rank < 3; ++rank) {  // rank 3 has no rows
    const MetricList of_rank = {"loss", "accuracy", "auc"};
    ASSERT_TRUE(update(of_rank, rank).ok());
    ASSERT_TRUE(expected.Merge(of_rank).ok());
  }
  OnRanks(4, [&](Communicator& communicator) {
    const MetricList metrics = {"loss", "accuracy", "auc"};
    if (communicator.rank() < 3) {
      EXPECT_TRUE(update(metrics, communicator.rank()).ok());
    }
    const auto states = GatherBytes(communicator, *metrics.SaveState());
    ASSERT_TRUE(states.ok());
    metrics.Clear();
    for (const std::string& state : *states) ASSERT_TRUE(metrics.MergeState(state).ok());
    EXPECT_EQ(*metrics.Eval(), *expected.Eval());
  });
}

TEST(AutoParallelContext, DividesByDefaultAndIsReset) {
  EXPECT_EQ(GetAutoParallelContext(), AutoParallelOptions{});
  EXPECT_TRUE(GetAutoParallelContext().gradients_mean);
  ASSERT_TRUE(SetAutoParallelContext({.parallel_mode = ParallelMode::kDataParallel}).ok());
  EXPECT_EQ(GetAutoParallelContext().parallel_mode, ParallelMode::kDataParallel);
  ResetAutoParallelContext();
  EXPECT_EQ(GetAutoParallelContext(), AutoParallelOptions{});
}

TEST(AutoParallelContext, KeepsHowGradientsAreAdded) {
  const AutoParallelOptions options = {.parallel_mode = ParallelMode::kDataParallel,
                                       .gradients_mean = false,
                                       .communication_dtype = DType::kBF16,
                                       .reduction = GradientReduction::kFast};
  ASSERT_TRUE(SetAutoParallelContext(options).ok());
  EXPECT_EQ(GetAutoParallelContext(), options);
  ResetAutoParallelContext();
}

TEST(AutoParallelContext, RefusesByNameWhatIsNotFollowed) {
  EXPECT_EQ(ErrorOf(SetAutoParallelContext({.parallel_mode = ParallelMode::kSemiAutoParallel})),
            "SetAutoParallelContext: parallel_mode is kSemiAutoParallel; accepted are kStandAlone and kDataParallel");
  EXPECT_EQ(ErrorOf(SetAutoParallelContext({.communication_dtype = DType::kF64})),
            "SetAutoParallelContext: communication_dtype is f64; accepted are f32, f16 and bf16");
  EXPECT_EQ(
      ErrorOf(SetAutoParallelContext({.gradients_mean = false, .loss_weight = LossWeight::kElements})),
      "SetAutoParallelContext: loss_weight is kElements, and gradients_mean is false; accepted is kRows: a sum has "
      "no weights");
  EXPECT_EQ(ErrorOf(SetAutoParallelContext({.bucket_mib = -1})),
            "SetAutoParallelContext: bucket_mib is -1; accepted are numbers from 0 to 1048576");
  const std::string standalone = ", and parallel_mode is kStandAlone; accepted is ";
  const std::string others = "; kDataParallel takes others, in one process too";
  EXPECT_EQ(ErrorOf(SetAutoParallelContext({.loss_weight = LossWeight::kElements})),
            "SetAutoParallelContext: loss_weight is kElements" + standalone + "kRows" + others);
  EXPECT_EQ(ErrorOf(SetAutoParallelContext({.communication_dtype = DType::kBF16})),
            "SetAutoParallelContext: communication_dtype is bf16" + standalone + "f32" + others);
  EXPECT_EQ(ErrorOf(SetAutoParallelContext({.reduction = GradientReduction::kFast})),
            "SetAutoParallelContext: reduction is kFast" + standalone + "kOrdered" + others);
  EXPECT_EQ(ErrorOf(SetAutoParallelContext({.bucket_mib = 0})),
            "SetAutoParallelContext: bucket_mib is 0" + standalone + "25" + others);
  EXPECT_EQ(GetAutoParallelContext(), AutoParallelOptions{}) << "an error changes nothing";
}

/// The place in an environment of these variables.
absl::StatusOr<runtime::LaunchEnvironment> Place(const Options& options,
                                                 const std::map<std::string, std::string>& variables = {}) {
  return internal::PlaceOf(options, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Init, TakesOptionsBeforeTheLauncher) {
  const std::map<std::string, std::string> torchrun = {{"RANK", "1"},        {"WORLD_SIZE", "4"},
                                                       {"LOCAL_RANK", "1"},  {"LOCAL_WORLD_SIZE", "4"},
                                                       {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  const auto of_launcher = Place({}, torchrun);
  ASSERT_TRUE(of_launcher.ok()) << of_launcher.status();
  EXPECT_EQ(of_launcher->rank, 1);
  EXPECT_EQ(of_launcher->size, 4);
  EXPECT_EQ(of_launcher->address, "a");
  const auto elsewhere = Place({.address = "[::1]:77"}, torchrun);
  ASSERT_TRUE(elsewhere.ok());
  EXPECT_EQ(elsewhere->address, "::1");
  EXPECT_EQ(elsewhere->port, 77);
  const auto told = Place({.rank = 0, .size = 2, .address = "b:5"}, torchrun);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->rank, 0);
  EXPECT_EQ(told->size, 2);
  EXPECT_EQ(told->port, 5);
  EXPECT_EQ(Place({})->size, 1);
}

TEST(Init, RefusesOptionsByName) {
  EXPECT_EQ(ErrorOf(Place({.rank = 1}).status()), "distributed::Init: rank and size must be given together");
  EXPECT_THAT(ErrorOf(Place({.rank = 0, .size = 0}).status()), HasSubstr("size is 0; accepted are 1 to"));
  EXPECT_EQ(ErrorOf(Place({.rank = 2, .size = 2, .address = "a:1"}).status()),
            "distributed::Init: rank is 2; accepted are 0 to 1");
  EXPECT_EQ(ErrorOf(Place({.rank = 0, .size = 2}).status()),
            "distributed::Init: size is 2, and several processes need the address of rank 0");
  for (const char* address : {"a", "a:", ":5", "a:0", "a:70000", "a:x"}) {
    EXPECT_THAT(ErrorOf(Place({.rank = 0, .size = 2, .address = address}).status()),
                HasSubstr("accepted is host:port with a port from 1 to 65535"));
  }
  EXPECT_EQ(ErrorOf(Place({.timeout = std::chrono::milliseconds(0)}).status()),
            "distributed::Init: timeout is 0 ms; accepted is above 0, up to 2592000000 ms, which are 30 days");
  EXPECT_TRUE(Place({.timeout = std::chrono::hours(30 * 24)}).ok());
  EXPECT_THAT(ErrorOf(Place({.timeout = std::chrono::hours(31 * 24)}).status()),
              HasSubstr("timeout is 2678400000 ms; accepted is above 0, up to 2592000000 ms"));
  for (const std::chrono::milliseconds limit : {std::chrono::milliseconds(999), std::chrono::milliseconds::max()}) {
    EXPECT_EQ(ErrorOf(Place({.loss_limit = limit}).status()),
              absl::StrCat("distributed::Init: loss_limit is ", limit.count(),
                           " ms; accepted is from 1000 ms up to 2592000000 ms, which are 30 days"));
  }
  EXPECT_FALSE(Place({}, {{"RANK", "1"}}).ok());
}

TEST(LossDeadline, EndsAProcessThatIsStillThere) {
  int ends = 0;
  internal::LossDeadline deadline(std::chrono::milliseconds(20), [&ends] { ++ends; });
  ::testing::internal::CaptureStderr();
  deadline.Watcher()(absl::UnavailableError("rank 2 is lost"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "mpc: this process is ended with status 1, 0.02 s after its group has failed: rank 2 is lost\n");
  EXPECT_EQ(ends, 1);
}

TEST(LossDeadline, IsCancelledAndOutlived) {
  int ends = 0;
  std::function<void(const absl::Status&)> watcher;
  std::thread waits;
  {
    internal::LossDeadline deadline(std::chrono::hours(1), [&ends] { ++ends; });
    watcher = deadline.Watcher();
    waits = std::thread([watcher] { watcher(absl::UnavailableError("rank 2 is lost")); });
  }
  waits.join();
  watcher(absl::UnavailableError("rank 2 is lost"));
  EXPECT_EQ(ends, 0);
}

TEST(Init, OneProcessIsAGroup) {
  EXPECT_FALSE(IsInitialized());
  EXPECT_EQ(GetRankSize(), 1);
  ASSERT_TRUE(Init({.rank = 0, .size = 1}).ok());
  EXPECT_TRUE(IsInitialized());
  EXPECT_EQ(GetRank(), 0);
  EXPECT_EQ(GetRankSize(), 1);
  EXPECT_EQ(GetLocalRank(), 0);
  EXPECT_GE(GetRankThreads(), 1);
  EXPECT_EQ(internal::GetCommunicator(), nullptr);
  EXPECT_EQ(Init({.rank = 0, .size = 1}).code(), absl::StatusCode::kFailedPrecondition);
  Finalize();
  EXPECT_FALSE(IsInitialized());
  Finalize();
  ASSERT_TRUE(Init({.rank = 0, .size = 1}).ok()) << "again";
  Finalize();
}

}  // namespace
}  // namespace mpc::distributed
