#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/distributed/rendezvous.h"
#include "tests/runtime/group_options.h"
#include "tests/runtime/on_threads.h"
#include "tests/runtime/processes.h"

namespace mpc::runtime {
namespace {

using test::FreePort;
using test::OnThreads;
using test::OptionsOf;
using test::RunProcesses;

/// Busy machines and sanitizers may delay a heartbeat for long.
constexpr WatchOptions kWatch{.interval = Milliseconds(25), .limit = Milliseconds(2000)};
constexpr WatchOptions kImpatient{.interval = Milliseconds(25), .limit = Milliseconds(500)};
/// Within which survivors must have ended: far more than the limit, for busy machines.
constexpr Milliseconds kSoon{4000};

bool Says(const absl::Status& status, const std::vector<std::string>& parts) {
  return test::ExpectSays(status, absl::StatusCode::kUnavailable, parts);
}

/// Waits until the group has failed.
absl::Status WaitForFailure(const ProcessGroup& group) {
  const Deadline deadline(kSoon);
  while (group.failure().ok() && !deadline.Passed()) std::this_thread::sleep_for(Milliseconds(5));
  return group.failure();
}

/// Forks ranks that join and watch. `body` ends each.
testing::AssertionResult RunGroup(int size, const std::vector<int>& killed,
                                  const std::function<int(ProcessGroup&)>& body, const WatchOptions& watch = kWatch) {
  const int port = FreePort();
  return RunProcesses(
      size,
      [&](int rank) {
        const auto group = ProcessGroup::Join(OptionsOf(rank, size, port));
        EXPECT_TRUE(group.ok()) << group.status();
        if (!group.ok()) return 1;
        const absl::Status watched = (*group)->Watch(watch);
        EXPECT_TRUE(watched.ok()) << watched;
        const absl::Status met = (*group)->Barrier("all watch");
        // A rank that ends at once may be lost before others have heard that all are there.
        EXPECT_TRUE(met.ok() || absl::IsUnavailable(met)) << met;
        return body(**group);
      },
      killed, std::chrono::seconds(20));
}

/// Ends without destructors and without goodbye, as kill -9 does.
[[noreturn]] void Die() {
  ::raise(SIGKILL);
  std::abort();
}

TEST(Heartbeats, AKilledRankIsNamedWithItsPlace) {
  EXPECT_TRUE(RunGroup(4, {2}, [](ProcessGroup& group) {
    group.SetPlace(17, "train_step");
    group.SetActivity("all_reduce bucket 3");
    if (group.rank() == 2) {
      std::this_thread::sleep_for(8 * kWatch.interval);  // until a heartbeat has told the place
      Die();
    }
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = group.Barrier("never whole");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
    const bool named = Says(status, {"rank 2 (host ", "has ended without a goodbye", "step 17", "all_reduce bucket 3"});
    return named && Says(group.failure(), {"rank 2"}) ? 0 : 1;
  }));
}

TEST(Heartbeats, TheEndOfRank0IsNamedWithItsPlace) {
  EXPECT_TRUE(RunGroup(4, {0}, [](ProcessGroup& group) {
    group.SetPlace(3, "compile");
    if (group.rank() == 0) {
      std::this_thread::sleep_for(8 * kWatch.interval);
      Die();
    }
    const absl::Status failure = WaitForFailure(group);
    const bool named = Says(failure, {"rank 0 (host ", "has ended or cannot be reached", "step 3", "\"compile\""});
    return named && Says(group.Barrier("never whole"), {"rank 0"}) ? 0 : 1;
  }));
}

TEST(Heartbeats, ARankThatStandsStillIsNamed) {
  EXPECT_TRUE(RunGroup(
      3, {1},
      [](ProcessGroup& group) {
        group.SetPlace(5, "load");
        if (group.rank() == 1) {
          std::this_thread::sleep_for(4 * kWatch.interval);
          ::raise(SIGSTOP);  // rank 0 finds the silence, and ends the process below
        }
        const bool named = Says(WaitForFailure(group), {"rank 1 (host ", "has been silent for ", "step 5", "\"load\""});
        if (group.rank() == 0) ::kill(static_cast<::pid_t>(group.ranks()[1].pid), SIGKILL);
        return named ? 0 : 1;
      },
      kImpatient));
}

TEST(Heartbeats, AStoreThatStandsStillIsNamed) {
  EXPECT_TRUE(RunGroup(
      2, {0},
      [](ProcessGroup& group) {
        if (group.rank() == 0) ::raise(SIGSTOP);
        const bool named =
            Says(WaitForFailure(group), {"rank 0 (host ", "has not answered for ", "had not told yet where it was"});
        ::kill(static_cast<::pid_t>(group.ranks()[0].pid), SIGKILL);
        return named ? 0 : 1;
      },
      kImpatient));
}

TEST(Heartbeats, ARankThatEndsInOrderWithoutLeaveIsLost) {
  EXPECT_TRUE(RunGroup(2, {}, [](ProcessGroup& group) {
    if (group.rank() == 1) return 0;  // the group's destructor runs: as where an exception passes
    return Says(WaitForFailure(group), {"rank 1 (host ", "without a goodbye"}) ? 0 : 1;
  }));
}

TEST(Heartbeats, ARankThatReportsItsFailureIsQuoted) {
  EXPECT_TRUE(RunGroup(3, {}, [](ProcessGroup& group) {
    group.SetPlace(9, "forward");
    if (group.rank() == 1) {
      EXPECT_TRUE(group.ReportFailure("the disk is full").ok());
    }
    return Says(WaitForFailure(group), {"rank 1 (host ", "has failed: the disk is full"}) ? 0 : 1;
  }));
}

TEST(Heartbeats, LeavingIsNoLoss) {
  EXPECT_TRUE(RunGroup(4, {}, [](ProcessGroup& group) {
    std::this_thread::sleep_for(Milliseconds(100 * group.rank()));
    const absl::Status failure = group.failure();
    EXPECT_TRUE(failure.ok()) << failure;
    group.Leave();
    return failure.ok() ? 0 : 1;
  }));
}

TEST(Heartbeats, RankZeroThatHasLeftIsNoLoss) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(2, [port](int rank) {
    JoinOptions options = OptionsOf(rank, 2, port);
    options.leave_limit = 80 * kWatch.interval;  // rank 1 takes longer, even on a busy machine
    const auto group = ProcessGroup::Join(options);
    EXPECT_TRUE(group.ok() && (*group)->Watch(kWatch).ok() && (*group)->Barrier("all watch").ok());
    if (rank == 1) {
      std::this_thread::sleep_for(180 * kWatch.interval);
      EXPECT_TRUE((*group)->failure().ok()) << (*group)->failure();
    } else {
      std::this_thread::sleep_for(40 * kWatch.interval);  // until rank 1 has seen a place of rank 0
    }
    (*group)->Leave();
    return 0;
  }));
}

TEST(Heartbeats, ASilentRankThatHasLeftIsNoLoss) {
  EXPECT_TRUE(RunGroup(
      2, {},
      [](ProcessGroup& group) {
        if (group.rank() == 1) {
          group.Leave();
          return 0;
        }
        std::this_thread::sleep_for(2 * kImpatient.limit);
        EXPECT_TRUE(group.failure().ok()) << group.failure();
        group.Leave();
        return 0;
      },
      kImpatient));
}

TEST(Heartbeats, AnIdleGroupStaysWhole) {
  EXPECT_TRUE(RunGroup(4, {}, [](ProcessGroup& group) {
    for (int step = 0; step < 200; ++step) {
      group.SetPlace(step, "step");
      std::this_thread::sleep_for(Milliseconds(3));
    }
    EXPECT_TRUE(group.Barrier("still").ok());
    EXPECT_TRUE(group.failure().ok()) << group.failure();
    group.Leave();
    return 0;
  }));
}

TEST(Heartbeats, TheCallbackIsCalledOnce) {
  const int port = FreePort();
  OnThreads(2, [&](int rank) {
    auto group = ProcessGroup::Join(OptionsOf(rank, 2, port));
    ASSERT_TRUE(group.ok()) << group.status();
    std::mutex mutex;
    std::condition_variable called;
    std::vector<absl::Status> heard;
    const absl::Status watched = (*group)->Watch(kWatch, [&](const absl::Status& failure) {
      const std::lock_guard<std::mutex> lock(mutex);
      heard.push_back(failure);
      called.notify_all();
    });
    ASSERT_TRUE(watched.ok()) << watched;
    const absl::Status met = (*group)->Barrier("b");
    ASSERT_TRUE(met.ok() || absl::IsUnavailable(met)) << met;
    if (rank == 1) {
      group->reset();
      return;
    }
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_TRUE(called.wait_for(lock, kSoon, [&] { return !heard.empty(); }));
    lock.unlock();
    std::this_thread::sleep_for(4 * kWatch.interval);
    lock.lock();
    ASSERT_EQ(heard.size(), 1u);
    Says(heard[0], {"rank 1"});
    lock.unlock();
    (*group)->Leave();
  });
}

TEST(Heartbeats, OptionsThatCannotBeAreRefused) {
  const auto group = ProcessGroup::Join(OptionsOf(0, 1, 0));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_TRUE(absl::IsInvalidArgument((*group)->Watch({.interval = Milliseconds(0), .limit = kSoon})));
  EXPECT_TRUE(absl::IsInvalidArgument((*group)->Watch({.interval = kSoon, .limit = kSoon})));
  EXPECT_TRUE((*group)->Watch(kWatch).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*group)->Watch(kWatch)));
  (*group)->SetPlace(1, std::string(1000, 'x'));
  (*group)->Leave();
}

}  // namespace
}  // namespace mpc::runtime
