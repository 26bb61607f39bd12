// Which launches are started early, and captures of several streams.
#include "runtime/cuda/stream_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/launch.h"
#include "runtime/cuda/handles.h"
#include "tests/cuda/emulated_api.h"

namespace mpc::runtime {
namespace {

__global__ void Add(int* y, int number, int factor) {
  cuda::AwaitEarlierLaunches();
  *y = *y * factor + number;
}

__global__ void AddAtOnce(int* y, int number) { *y += number; }

/// Notes which launches may be started early.
class NotingApi : public emulation::EmulatedApi {
 public:
  absl::Status Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                      absl::Span<const cuda::KernelArgument> arguments, Stream stream) override {
    early.push_back(function.awaits_earlier);
    return EmulatedApi::Launch(function, shape, arguments, stream);
  }
  std::vector<bool> early;
};

class StreamQueueTest : public ::testing::Test {
 protected:
  StreamQueueTest() {
    for (OwnedStream& stream : streams_) EXPECT_TRUE(Keep(api_, api_.CreateStream(), stream).ok());
    for (OwnedEvent& event : events_) EXPECT_TRUE(Keep(api_, api_.CreateEvent(false), event).ok());
    EXPECT_TRUE(Allocate(api_, sizeof(int), memory_).ok());
    EXPECT_TRUE(api_.Fill(memory_.get(), 0, sizeof(int), streams_[0].get()).ok());
    EXPECT_TRUE(api_.SynchronizeStream(streams_[0].get()).ok());
  }
  absl::Status Enqueue(StreamQueue& queue, int number, int factor = 1) {
    return cuda::launch(queue, &Add, {.threads = 1}, static_cast<int*>(memory_.get()), number, factor);
  }
  int Number() {
    int number = 0;
    EXPECT_TRUE(api_.Copy(&number, memory_.get(), sizeof(int), CudaCopy::kDeviceToHost, streams_[0].get()).ok());
    return number;
  }

  NotingApi api_;
  OwnedStream streams_[2];
  OwnedEvent events_[2];
  DeviceMemory memory_;
};

TEST_F(StreamQueueTest, LaunchesStartEarlyBehindLaunchesOnly) {
  StreamQueue queue(api_, streams_[0].get());
  ASSERT_TRUE(Enqueue(queue, 1).ok());  // behind who knows what
  ASSERT_TRUE(Enqueue(queue, 1).ok());
  ASSERT_TRUE(queue.Fill(memory_.get(), 0, sizeof(int)).ok());
  ASSERT_TRUE(Enqueue(queue, 1).ok());
  ASSERT_TRUE(Enqueue(queue, 1).ok());
  EXPECT_EQ(queue.stream(), streams_[0].get());  // a library's work
  ASSERT_TRUE(Enqueue(queue, 1).ok());
  ASSERT_TRUE(queue.Record(events_[0].get()).ok());
  ASSERT_TRUE(Enqueue(queue, 1).ok());
  ASSERT_TRUE(queue.Await(events_[0].get()).ok());
  ASSERT_TRUE(Enqueue(queue, 1).ok());
  EXPECT_EQ(api_.early, (std::vector<bool>{false, true, false, true, false, true, false}));
  EXPECT_EQ(Number(), 5);
}

TEST_F(StreamQueueTest, AKernelThatDoesNotWaitIsFound) {
  StreamQueue queue(api_, streams_[0].get());
  ASSERT_TRUE(Enqueue(queue, 1).ok());
  ASSERT_TRUE(cuda::launch(queue, &AddAtOnce, {.threads = 2}, static_cast<int*>(memory_.get()), 1).ok());
  const absl::Status status = api_.SynchronizeStream(streams_[0].get());
  EXPECT_EQ(status.message(),
            "a kernel that is started early does not begin with AwaitEarlierLaunches(): 0 waits of 2 threads");
}

TEST_F(StreamQueueTest, AGraphKeepsTheOrderOfEventsAndNoOther) {
  StreamQueue main(api_, streams_[0].get()), side(api_, streams_[1].get());
  std::vector<int> results;
  for (const bool side_is_awaited : {true, false}) {
    ASSERT_TRUE(api_.BeginCapture(streams_[0].get()).ok());
    ASSERT_TRUE(Enqueue(main, 1).ok());
    ASSERT_TRUE(main.Record(events_[0].get()).ok());
    ASSERT_TRUE(side.Await(events_[0].get()).ok());
    ASSERT_TRUE(Enqueue(side, 2, 2).ok());
    ASSERT_TRUE(side.Record(events_[1].get()).ok());
    if (side_is_awaited) {
      ASSERT_TRUE(main.Await(events_[1].get()).ok());
    }
    ASSERT_TRUE(Enqueue(main, 3, 3).ok());
    if (!side_is_awaited) {
      ASSERT_TRUE(main.Await(events_[1].get()).ok());
    }
    OwnedGraph graph;
    ASSERT_TRUE(Keep(api_, api_.EndCapture(streams_[0].get()), graph).ok());
    EXPECT_EQ(api_.last_graph_nodes(), 3u);
    OwnedGraphExec exec;
    ASSERT_TRUE(Keep(api_, api_.Instantiate(graph.get()), exec).ok());
    results.clear();
    for (int launch = 0; launch < 20; ++launch) {
      ASSERT_TRUE(api_.Fill(memory_.get(), 0, sizeof(int), streams_[0].get()).ok());
      ASSERT_TRUE(api_.LaunchGraph(exec.get(), streams_[0].get()).ok());
      results.push_back(Number());
    }
    const auto in_order = std::ranges::count(results, (1 * 2 + 2) * 3 + 3);
    const auto swapped = std::ranges::count(results, (1 * 3 + 3) * 2 + 2);
    EXPECT_EQ(in_order + swapped, 20);
    EXPECT_EQ(swapped == 0, side_is_awaited) << "a missing order shows";
  }
}

TEST_F(StreamQueueTest, ACaptureEndsWithAllItsStreamsJoined) {
  StreamQueue main(api_, streams_[0].get()), side(api_, streams_[1].get());
  ASSERT_TRUE(api_.BeginCapture(streams_[0].get()).ok());
  ASSERT_TRUE(main.Record(events_[0].get()).ok());
  ASSERT_TRUE(side.Await(events_[0].get()).ok());
  ASSERT_TRUE(Enqueue(side, 1).ok());
  EXPECT_TRUE(absl::IsInternal(api_.EndCapture(streams_[0].get()).status()));
}

}  // namespace
}  // namespace mpc::runtime
