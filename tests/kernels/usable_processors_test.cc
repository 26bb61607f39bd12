#include "kernels/usable_processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace mpc {
namespace {

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
  const std::string root_ = testing::TempDir() + "usable_processors_test";
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

TEST_F(ControlGroups, FilesWithoutNumbersAreNoLimit) {
  Write("/proc/self/cgroup", "nonsense\n0::/job\n4:cpu\n");
  for (const char* content : {"", "max\n", "many 100000\n", "-5 100000\n", "100000 0\n", "0 0\n"}) {
    Write("/sys/fs/cgroup/job/cpu.max", content);
    EXPECT_EQ(ProcessorQuota(root_), 0) << content;
    EXPECT_EQ(UsableProcessors(root_), UsableProcessors(root_ + "/none")) << content;
  }
}

TEST_F(ControlGroups, LetAProcessUseWholeProcessors) {
  Write("/proc/self/cgroup", "0::/job\n");
  Write("/sys/fs/cgroup/job/cpu.max", "199999 100000\n");
  EXPECT_EQ(UsableProcessors(root_), 1);
  Write("/sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(UsableProcessors(root_), 1) << "there is always one";
  Write("/sys/fs/cgroup/job/cpu.max", "100000000 100000\n");
  EXPECT_EQ(UsableProcessors(root_), static_cast<int>(AllowedProcessors().size()));
}

TEST(AllowedProcessors, AreThoseOfTheThreadsAffinity) {
  const std::vector<int> all = AllowedProcessors();
  ASSERT_FALSE(all.empty());
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all.back()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(AllowedProcessors(), std::vector<int>{all.back()});
    EXPECT_EQ(UsableProcessors(), 1);
  }).join();
  EXPECT_EQ(AllowedProcessors(), all);
}

}  // namespace
}  // namespace mpc
