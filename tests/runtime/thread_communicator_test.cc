// The group of threads does what kernels/communicator.h says.
#include "tests/runtime/thread_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/float16.h"

namespace mpc::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ThreadCommunicator, AddsInABalancedTreeOverRanks) {
  // From left to right the sum would be 0: 1 is lost beside 2^24, and then 2^24 is taken off.
  const std::vector<float> numbers = {0x1p24f, 1, 1, -0x1p24f};
  const float tree = (numbers[0] + numbers[1]) + (numbers[2] + numbers[3]);
  OnRanks(4, [&](Communicator& communicator) {
    EXPECT_EQ(communicator.size(), 4);
    float sum = numbers[static_cast<std::size_t>(communicator.rank())];
    Half half(static_cast<float>(communicator.rank() + 1));
    std::int64_t largest = communicator.rank();
    const std::vector<ReducedPart> parts = {
        {.input = &sum, .output = &sum, .elements = 1},
        {.input = &half, .output = &half, .elements = 1, .dtype = DType::kF16},
        {.input = &largest, .output = &largest, .elements = 1, .dtype = DType::kI64, .reduction = Reduction::kMax}};
    EXPECT_TRUE(communicator.AllReduce(parts).ok());
    EXPECT_EQ(sum, tree);
    EXPECT_EQ(static_cast<float>(half), 10);
    EXPECT_EQ(largest, 3);
  });
}

TEST(ThreadCommunicator, RoundsLowTypesAtEveryAddition) {
  OnRanks(4, [](Communicator& communicator) {
    // 2048 + 1 rounds to 2048 in f16. Once in f32 the sum of all would be 2051, which rounds to 2052.
    Half number(communicator.rank() == 0 ? 2048.0f : 1.0f);
    EXPECT_TRUE(
        communicator.AllReduce({{.input = &number, .output = &number, .elements = 1, .dtype = DType::kF16}}).ok());
    EXPECT_EQ(static_cast<float>(number), 2050.0f);
  });
}

TEST(ThreadCommunicator, ScattersGathersAndBroadcasts) {
  OnRanks(2, [](Communicator& communicator) {
    const int rank = communicator.rank();
    const std::vector<std::int32_t> input = {1, 2, 3 + rank, 4 + rank};
    std::vector<std::int32_t> output(2);
    EXPECT_TRUE(
        communicator
            .ReduceScatter({.input = input.data(), .output = output.data(), .elements = 4, .dtype = DType::kI32})
            .ok());
    EXPECT_THAT(output, rank == 0 ? ElementsAre(2, 4) : ElementsAre(7, 9));
    std::vector<std::int32_t> gathered(4);
    EXPECT_TRUE(communicator.AllGather(output.data(), gathered.data(), 8).ok());
    EXPECT_THAT(gathered, ElementsAre(2, 4, 7, 9));
    EXPECT_TRUE(communicator.Broadcast(output.data(), 8, 1).ok());
    EXPECT_THAT(output, ElementsAre(7, 9));
    EXPECT_TRUE(communicator.Barrier().ok());
  });
}

TEST(ThreadCommunicator, NamesCallsThatDiffer) {
  OnRanks(2, [](Communicator& communicator) {
    std::int64_t number = 0;
    const absl::Status status =
        communicator.rank() == 0 ? communicator.Barrier() : communicator.Broadcast(&number, sizeof number, 0);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "rank 0 calls Barrier, and rank 1 calls Broadcast 8 of rank 0");
    EXPECT_EQ(communicator.Barrier(), status) << "an error stays";
  });
}

TEST(ThreadCommunicator, ARankThatLeavesIsNamed) {
  OnRanks(4, [](Communicator& communicator) {
    EXPECT_TRUE(communicator.Barrier().ok());
    if (communicator.rank() == 2) return;
    const absl::Status status = communicator.Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 has left"));
  });
}

TEST(ThreadCommunicator, ARankThatDoesNotComeIsNamed) {
  std::atomic<bool> ended = false;
  const auto body = [&](Communicator& communicator) {
    if (communicator.rank() == 1) {
      while (!ended) std::this_thread::yield();
      return;
    }
    const absl::Status status = communicator.Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(status.message(), "rank 1 has not come to Barrier within 20 ms");
    ended = true;
  };
  OnRanks(2, body, std::chrono::milliseconds(20));
}

TEST(ThreadCommunicator, RefusesSumsOverOtherNumbersOfRanks) {
  OnRanks(3, [](Communicator& communicator) {
    float number = 1;
    const absl::Status status = communicator.AllReduce({{.input = &number, .output = &number, .elements = 1}});
    EXPECT_EQ(status, absl::InvalidArgumentError("a sum over 3 ranks, which is no power of two"));
  });
}

}  // namespace
}  // namespace mpc::test
