// What the counting table of CUDA calls tells of them, over the emulated GPU.
#include "tests/cuda/counting_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/cuda/emulated_api.h"

namespace mpc::test {
namespace {

using emulation::Schedule;
using runtime::CudaCopy;

class CountingApiTest : public testing::TestWithParam<Schedule> {
 protected:
  CountingApiTest() : gpu_({.schedule = GetParam()}), api_(gpu_) {
    stream_ = *api_.CreateStream();
    event_ = *api_.CreateEvent(false);
    device_ = *api_.Malloc(kBytes);
    pinned_ = *api_.MallocHost(kBytes);
    before_ = api_.counts();
  }
  ~CountingApiTest() override {
    // Free waits for what is under way, a copy from pinned memory too; FreeHost does not.
    EXPECT_TRUE(api_.Free(device_).ok());
    EXPECT_TRUE(api_.FreeHost(pinned_).ok());
    EXPECT_TRUE(api_.DestroyEvent(event_).ok());
    EXPECT_TRUE(api_.DestroyStream(stream_).ok());
    EXPECT_THAT(gpu_.Problems(), testing::IsEmpty());
    EXPECT_THAT(gpu_.Alive(), testing::IsEmpty());
  }
  CallCounts Since() const { return api_.counts() - before_; }
  void Work() { ASSERT_TRUE(api_.Fill(device_, 1, kBytes, stream_).ok()); }

  static constexpr std::size_t kBytes = 64;
  emulation::EmulatedApi gpu_;
  CountingApi api_;
  runtime::CudaApi::Stream stream_ = nullptr;
  runtime::CudaApi::Event event_ = nullptr;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
  CallCounts before_;
};
INSTANTIATE_TEST_SUITE_P(Schedules, CountingApiTest, testing::Values(Schedule::kLate, Schedule::kAtOnce));

TEST_P(CountingApiTest, WorkAndQuestionsWaitForNothing) {
  Work();
  ASSERT_TRUE(api_.Copy(device_, pinned_, kBytes, CudaCopy::kHostToDevice, stream_).ok());
  ASSERT_TRUE(api_.Copy(static_cast<std::byte*>(pinned_) + 32, device_, 32, CudaCopy::kDeviceToHost, stream_).ok());
  ASSERT_TRUE(api_.RecordEvent(event_, stream_).ok());
  ASSERT_TRUE(api_.WaitEvent(stream_, event_).ok());
  ASSERT_TRUE(api_.EventDone(event_).ok());
  ASSERT_TRUE(api_.MemoryInfo().ok());
  EXPECT_EQ(Since().waits, 0u);
  EXPECT_EQ(Since().drains, 0u);
  EXPECT_EQ(Since().creations, 0u);
}

TEST_P(CountingApiTest, WaitingForTheLastWorkOfAStreamDrainsIt) {
  Work();
  ASSERT_TRUE(api_.RecordEvent(event_, stream_).ok());
  ASSERT_TRUE(api_.SynchronizeEvent(event_).ok());
  EXPECT_EQ(Since().waits, 1u);
  EXPECT_EQ(Since().drains, 1u);
  ASSERT_TRUE(api_.SynchronizeStream(stream_).ok());
  EXPECT_EQ(Since().waits, 2u);
  EXPECT_EQ(Since().drains, 2u);
}

TEST_P(CountingApiTest, WaitingForWorkWithMoreBehindItDrainsNothing) {
  ASSERT_TRUE(api_.RecordEvent(event_, stream_).ok());
  Work();
  ASSERT_TRUE(api_.SynchronizeEvent(event_).ok());
  EXPECT_EQ(Since().waits, 1u);
  EXPECT_EQ(Since().drains, 0u);
}

TEST_P(CountingApiTest, CopiesOfMemoryThatIsNotPinnedWait) {
  std::vector<std::uint8_t> pageable(kBytes);
  ASSERT_TRUE(api_.Copy(device_, pageable.data(), kBytes, CudaCopy::kHostToDevice, stream_).ok());
  EXPECT_EQ(Since().waits, 1u);
  EXPECT_EQ(Since().drains, 0u);
  ASSERT_TRUE(api_.Copy(pageable.data(), device_, kBytes, CudaCopy::kDeviceToHost, stream_).ok());
  EXPECT_EQ(Since().waits, 2u);
  EXPECT_EQ(Since().drains, 1u);
}

TEST_P(CountingApiTest, GraphsAreCreatedOnceAndLaunchedOften) {
  ASSERT_TRUE(api_.BeginCapture(stream_).ok());
  Work();
  const auto graph = *api_.EndCapture(stream_);
  const auto exec = *api_.Instantiate(graph);
  EXPECT_EQ(*api_.NodeCount(graph), 1u);
  EXPECT_EQ(Since().creations, 3u);
  for (int launch = 0; launch < 5; ++launch) ASSERT_TRUE(api_.LaunchGraph(exec, stream_).ok());
  EXPECT_EQ(Since().graph_launches, 5u);
  EXPECT_EQ(Since().creations, 3u);
  EXPECT_EQ(Since().waits, 0u);
  ASSERT_TRUE(api_.SynchronizeStream(stream_).ok());
  ASSERT_TRUE(api_.DestroyGraphExec(exec).ok());
  ASSERT_TRUE(api_.DestroyGraph(graph).ok());
  EXPECT_EQ(Since().creations, 5u);
}

TEST_P(CountingApiTest, GivingMemoryBackWaitsForEverything) {
  void* const memory = *api_.Malloc(kBytes);
  EXPECT_EQ(Since().creations, 1u);
  EXPECT_EQ(Since().waits, 0u);
  ASSERT_TRUE(api_.Free(memory).ok());
  EXPECT_EQ(Since().creations, 2u);
  EXPECT_EQ(Since().drains, 1u);
}

}  // namespace
}  // namespace mpc::test
