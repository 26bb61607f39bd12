// Loops over independent tasks: kernels/cpu/parallel.h.
#include "kernels/cpu/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

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
    if (round % 16 == 0) cpu::RestThreads();
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

INSTANTIATE_TEST_SUITE_P(Threads, ParallelLoop, testing::Values(1, 2, 3, 8));

TEST(SerialLoop, OfLittleWorkIsDoneInOrderByItsCaller) {
  std::vector<std::int64_t> order;
  cpu::ParallelFor(5, 5, [&](std::int64_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace mpc::test
