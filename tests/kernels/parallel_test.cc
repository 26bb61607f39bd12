// Loops over independent tasks: kernels/cpu/parallel.h.
#include "kernels/cpu/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/cpu/join_history.h"
#include "kernels/cpu/loop_processors.h"
#include "kernels/usable_processors.h"

namespace mpc::test {
namespace {

constexpr std::int64_t kMuchWork = std::numeric_limits<std::int64_t>::max();

/// How often each task of a loop was done.
class Counts {
 public:
  explicit Counts(std::int64_t count) : counts_(static_cast<std::size_t>(count)) {}
  void Do(std::int64_t task) { counts_[static_cast<std::size_t>(task)].fetch_add(1); }
  bool AreAll(int expected) const {
    for (const std::atomic<int>& count : counts_) {
      if (count.load() != expected) return false;
    }
    return true;
  }

 private:
  std::vector<std::atomic<int>> counts_;
};

class ParallelLoop : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { cpu::SetNumThreads(GetParam()); }
  void TearDown() override { cpu::SetNumThreads(threads_); }

 private:
  int threads_ = cpu::NumThreads();
};

TEST_P(ParallelLoop, DoesEachTaskOnce) {
  for (std::int64_t count : {0, 1, 2, 3, 7, 16, 17, 100, 1000, 12345}) {
    Counts counts(count);
    cpu::ParallelFor(count, kMuchWork, [&](std::int64_t i) { counts.Do(i); });
    EXPECT_TRUE(counts.AreAll(1)) << count;
  }
}

TEST_P(ParallelLoop, DoesEachTaskOnceInLoopsThatFollowEachOther) {
  Counts counts(64);
  for (int round = 0; round < 2000; ++round) {
    cpu::ParallelFor(64, kMuchWork, [&](std::int64_t i) { counts.Do(i); });
    if (round % 256 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the others fall asleep
  }
  EXPECT_TRUE(counts.AreAll(2000));
}

TEST_P(ParallelLoop, SeesWhatTasksWroteAndTasksSeeWhatWasWrittenBefore) {
  std::vector<std::int64_t> values(1000, 0);
  for (std::int64_t round = 0; round < 200; ++round) {
    cpu::ParallelFor(1000, kMuchWork, [&](std::int64_t i) { values[static_cast<std::size_t>(i)] += round; });
    for (std::int64_t& value : values) value += 1;
  }
  EXPECT_EQ(values, std::vector<std::int64_t>(1000, 200 * 199 / 2 + 200));
}

TEST_P(ParallelLoop, NeedsNoThreadsOfOpenMP) {
  std::atomic<int> in_region{0};
  cpu::ParallelFor(64, kMuchWork, [&](std::int64_t) { in_region.fetch_add(omp_get_level()); });
  EXPECT_EQ(in_region.load(), 0);
}

TEST_P(ParallelLoop, RunsWithinATaskOfAnother) {
  Counts counts(40 * 50);
  cpu::ParallelFor(40, kMuchWork, [&](std::int64_t i) {
    cpu::ParallelFor(50, kMuchWork, [&](std::int64_t k) { counts.Do(i * 50 + k); });
  });
  EXPECT_TRUE(counts.AreAll(1));
}

TEST_P(ParallelLoop, RunsBesideThatOfAnotherThread) {
  Counts counts(100);
  const auto loops = [&] {
    for (int round = 0; round < 500; ++round) {
      cpu::ParallelFor(100, kMuchWork, [&](std::int64_t i) { counts.Do(i); });
    }
  };
  std::thread other(loops);
  loops();
  other.join();
  EXPECT_TRUE(counts.AreAll(1000));
}

/// All processors where OpenMP has no places, which do not overlap.
int ProcessorsOfPlaces() {
  int all = 0;
  for (int place = 0; place < omp_get_num_places(); ++place) all += omp_get_place_num_procs(place);
  return all > 0 ? all : omp_get_num_procs();
}

// Where OpenMP binds its threads, it binds the one that starts ours (OMP_PROC_BIND: cpu_loops_bound_test).
TEST_P(ParallelLoop, HasThreadsThatMayUseEveryProcessor) {
  if (GetParam() == 1) return;  // there is no other thread
  const auto processors = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return CPU_COUNT(&set);
  };
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> fewest{std::numeric_limits<int>::max()};  // of another thread
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (fewest.load() == std::numeric_limits<int>::max() && std::chrono::steady_clock::now() < end) {
    cpu::ParallelFor(64, kMuchWork, [&](std::int64_t) {
      if (std::this_thread::get_id() != caller) fewest.store(processors());
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    });
  }
  // On a busy machine the others may all have been late.
  if (fewest.load() == std::numeric_limits<int>::max()) return;
  EXPECT_EQ(fewest.load(), cpu::OpenMpBindsThreads() ? ProcessorsOfPlaces() : processors());
}

// By default, also where OpenMP has bound this thread to one of them.
TEST(ParallelLoopThreads, AreOneForEachUsableProcessor) {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;  // that many
  const int quota = ProcessorQuota() / 1000;
  EXPECT_EQ(cpu::NumThreads(), quota > 0 ? std::min(quota, ProcessorsOfPlaces()) : ProcessorsOfPlaces());
}

TEST(ParallelLoopThreads, FindTheProcessorsOfAllPlaces) {
  EXPECT_EQ(static_cast<int>(cpu::LoopProcessors().size()), ProcessorsOfPlaces());
  if (cpu::OpenMpBindsThreads()) {
    EXPECT_EQ(static_cast<int>(AllowedProcessors().size()), omp_get_place_num_procs(omp_get_place_num()));
  } else {
    EXPECT_EQ(cpu::LoopProcessors(), AllowedProcessors());
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelLoop, testing::Values(1, 2, 3, 8));

/// Runs 16 tasks that sleep, on other threads as long as `others`. True if the caller did them all.
bool StaysOnCaller(std::chrono::microseconds others) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> alone{true};
  cpu::ParallelFor(16, kMuchWork, [&](std::int64_t) {
    const bool is_caller = std::this_thread::get_id() == caller;
    if (!is_caller) alone.store(false);
    std::this_thread::sleep_for(is_caller ? std::chrono::microseconds(50) : others);
  });
  return alone.load();
}

TEST(LoopsThatWaitForOthers, StayOnTheirCallerForAWhile) {
  const int threads = cpu::NumThreads();
  cpu::SetNumThreads(2);
  bool stayed = false;
  // A loop whose other thread wakes too late has nobody to wait for: more are tried.
  for (int attempt = 0; attempt < 20 && !stayed; ++attempt) {
    for (int loop = 0; loop < 16; ++loop) StaysOnCaller(std::chrono::microseconds(3000));
    stayed = StaysOnCaller(std::chrono::microseconds(50));
  }
  EXPECT_TRUE(stayed);
  cpu::SetNumThreads(threads);
}

TEST_P(ParallelLoop, HasASlotOfItsOwnForEachRangeAtATime) {
  for (const std::int64_t slots : {1, 2, 5}) {
    std::vector<std::atomic<int>> within(static_cast<std::size_t>(slots));
    std::atomic<int> shared{0};
    Counts counts(200);
    cpu::RunTasksInSlots(200, slots, kMuchWork, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      ASSERT_GE(slot, 0);
      ASSERT_LT(slot, slots);
      std::atomic<int>& here = within[static_cast<std::size_t>(slot)];
      if (here.fetch_add(1) != 0) shared.fetch_add(1);
      for (std::int64_t i = begin; i < end; ++i) counts.Do(i);
      std::this_thread::yield();
      here.fetch_sub(1);
    });
    EXPECT_EQ(shared.load(), 0) << slots;
    EXPECT_TRUE(counts.AreAll(1)) << slots;
  }
}

TEST(SerialLoop, OfLittleWorkIsDoneInOrderByItsCaller) {
  std::vector<std::int64_t> order;
  cpu::ParallelFor(5, 5, [&](std::int64_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

using cpu::JoinHistory;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Ends of loops, one each millisecond.
class Joins : public testing::Test {
 protected:
  void Add(int count, microseconds waited) {
    for (int i = 0; i < count; ++i) history_.Add(waited, saved_, now_ += milliseconds(1));
  }
  bool IsPausedAfter(milliseconds time) const { return history_.IsPaused(now_ + time); }

  JoinHistory history_;
  JoinHistory::Clock::time_point now_{};
  microseconds saved_{0};  ///< what each loop spared its caller
};

TEST_F(Joins, ThatAreShortPauseNothing) {
  EXPECT_FALSE(IsPausedAfter(milliseconds(0)));
  Add(1000, microseconds(200));
  EXPECT_FALSE(IsPausedAfter(milliseconds(0)));
}

TEST_F(Joins, PauseLoopsForTenMillisecondsWhereEightOfSixtyFourAreLong) {
  Add(7, microseconds(201));
  EXPECT_FALSE(IsPausedAfter(milliseconds(0)));
  Add(56, microseconds(1));
  Add(1, microseconds(300));
  EXPECT_TRUE(IsPausedAfter(milliseconds(0)));
  EXPECT_TRUE(IsPausedAfter(milliseconds(9)));
  EXPECT_FALSE(IsPausedAfter(milliseconds(10)));
}

// Long loops wait long for the last part. They were still sooner done than on their caller alone.
TEST_F(Joins, ThatTookLessThanOthersDidPauseNothing) {
  saved_ = microseconds(4000);
  Add(64, microseconds(3000));
  EXPECT_FALSE(IsPausedAfter(milliseconds(0)));
  saved_ = microseconds(2000);
  Add(8, microseconds(3000));
  EXPECT_TRUE(IsPausedAfter(milliseconds(0)));
}

TEST_F(Joins, PauseLoopsForTwentyTimesALongWait) {
  Add(8, microseconds(3000));
  EXPECT_TRUE(IsPausedAfter(milliseconds(59)));
  EXPECT_FALSE(IsPausedAfter(milliseconds(60)));
}

TEST_F(Joins, AreForgottenBehindSixtyFourOthers) {
  Add(7, microseconds(3000));
  Add(57, microseconds(1));
  Add(1, microseconds(3000));
  EXPECT_FALSE(IsPausedAfter(milliseconds(0)));
}

TEST_F(Joins, OfAMachineThatIsStillBusyPauseAgainAtOnce) {
  Add(8, microseconds(3000));
  now_ += milliseconds(60);
  EXPECT_FALSE(IsPausedAfter(milliseconds(0)));
  Add(1, microseconds(3000));
  EXPECT_TRUE(IsPausedAfter(milliseconds(0)));
}

}  // namespace
}  // namespace mpc::test
