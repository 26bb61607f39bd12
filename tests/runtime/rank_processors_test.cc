#include "runtime/distributed/rank_processors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace mpc::runtime {
namespace {

RankInfo Rank(std::vector<int> processors, int quota = 0, const std::string& host = "a") {
  RankInfo info;
  info.host = host;
  info.processors = std::move(processors);
  info.quota = quota;
  return info;
}

TEST(ThreadsOfEachRank, SharesProcessorsThatSeveralRanksMayUse) {
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3})}), 4);
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(ThreadsOfEachRank({Rank(all), Rank(all)}), 4);
  EXPECT_EQ(ThreadsOfEachRank({Rank({0}), Rank({0}), Rank({0})}), 1);
}

TEST(ThreadsOfEachRank, LeavesBoundRanksTheirOwnProcessors) {
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3}), Rank({4, 5, 6, 7})}), 4);
  // Equal numbers are of other processors on another machine.
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2}), Rank({0, 1, 2}, 0, "b")}), 3);
}

TEST(ThreadsOfEachRank, TakesTheRankThatHasTheLeast) {
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3}), Rank({0, 1}, 0, "b")}), 2);
}

TEST(ThreadsOfEachRank, KeepsToTheQuotaOfAHost) {
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3, 4, 5, 6, 7}, 2500)}), 2);
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3}, 4000), Rank({4, 5, 6, 7}, 4000)}), 2);
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1}, 500)}), 1);
}

TEST(ThreadsOfEachRank, TakesTheSystemsNumberWhereNoProcessorsAreKnown) { EXPECT_GE(ThreadsOfEachRank({Rank({})}), 1); }

TEST(RanksShareProcessors, WhereThereAreFewerThanRanks) {
  EXPECT_FALSE(RanksShareProcessors({Rank({0, 1}), Rank({0, 1})}));
  EXPECT_TRUE(RanksShareProcessors({Rank({0, 1}), Rank({0, 1}), Rank({0, 1})}));
  // Bound to one each, and to the same one.
  EXPECT_FALSE(RanksShareProcessors({Rank({0}), Rank({1})}));
  EXPECT_TRUE(RanksShareProcessors({Rank({0}), Rank({0})}));
  EXPECT_FALSE(RanksShareProcessors({Rank({0}), Rank({0}, 0, "b")}));
  EXPECT_TRUE(RanksShareProcessors({Rank({})}));
}

/// A root with files of control groups.
class ControlGroups : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  const std::string root_ = testing::TempDir() + "rank_processors_test";
};

TEST_F(ControlGroups, TheLeastOfAPathOfVersion2Counts) {
  Write("/proc/self/cgroup", "0::/job/step\n");
  Write("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  Write("/sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(ProcessorQuota(root_), 1500);
  Write("/sys/fs/cgroup/job/step/cpu.max", "20000 100000\n");
  EXPECT_EQ(ProcessorQuota(root_), 200);
}

TEST_F(ControlGroups, VersionOneHasTwoFiles) {
  Write("/proc/self/cgroup", "5:devices:/\n4:cpu,cpuacct:/job\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ProcessorQuota(root_), 0);
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ProcessorQuota(root_), 4000);
}

TEST_F(ControlGroups, NothingIsNoLimit) { EXPECT_EQ(ProcessorQuota(root_), 0); }

}  // namespace
}  // namespace mpc::runtime
