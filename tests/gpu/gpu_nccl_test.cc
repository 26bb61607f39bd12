// NCCL on a real GPU, as far as one goes: a group of one rank, captured and replayed as a step's graph is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cuda/cudart_api.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/nccl_group.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/cuda/stream_queue.h"
#include "runtime/distributed/shared_communicator.h"

namespace mpc::runtime {
namespace {

constexpr std::size_t kElements = 3;
constexpr std::size_t kBytes = kElements * sizeof(std::int32_t);

/// Skips by name where there is no GPU or no NCCL.
class GpuNccl : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> count = api_.DeviceCount();
    if (!count.ok()) GTEST_SKIP() << "no GPU: " << count.status();
    if (*count == 0) GTEST_SKIP() << "no GPU: the driver sees none";
    const absl::StatusOr<NcclApi*> nccl = OpenNccl();
    if (!nccl.ok()) GTEST_SKIP() << "no NCCL: " << nccl.status();
    absl::StatusOr<std::unique_ptr<Communicator>> alone =
        distributed::CreateSharedCommunicator({.name = absl::StrCat("mpc-gpu-nccl-test-", ::getpid())});
    ASSERT_TRUE(alone.ok()) << alone.status();
    processes_ = *std::move(alone);
    const absl::StatusOr<CudaApi::Stream> stream = api_.CreateStream();
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = OwnedStream(api_, *stream);
    absl::StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Open({&api_, nccl, *stream, "this GPU"}, processes_);
    ASSERT_TRUE(group.ok()) << group.status();
    group_ = *std::move(group);
    ASSERT_TRUE(Allocate(api_, kBytes, input_).ok());
    ASSERT_TRUE(Allocate(api_, 3 * kBytes, output_).ok());
    ASSERT_TRUE(Allocate(api_, 3 * kBytes, host_).ok());
    ASSERT_TRUE(Keep(api_, api_.CreateEvent(false), done_).ok());
  }

  /// Enqueues one exchange of each kind, from `input_` to the three parts of `output_`.
  absl::Status EnqueueAll(cuda::LaunchQueue& queue) {
    auto* const output = static_cast<std::byte*>(output_.get());
    const DevicePart sum{input_.get(), output, kElements, DType::kF32};
    const DevicePart largest{input_.get(), output + kBytes, kElements, DType::kI32};
    const DevicePart gathered{input_.get(), output + 2 * kBytes, kElements, DType::kI32};
    absl::Status status = group_->EnqueuePlace("the test", queue);
    if (status.ok()) status = group_->EnqueueSums({&sum, 1}, nullptr, queue);
    if (status.ok()) status = group_->EnqueueLargest({&largest, 1}, queue);
    if (status.ok()) status = group_->EnqueueGathers({&gathered, 1}, queue);
    return status;
  }

  absl::Status WaitForStream() {
    absl::Status status = api_.RecordEvent(done_.get(), stream_.get());
    return status.ok() ? group_->WaitUntil([this] { return api_.EventDone(done_.get()); }) : status;
  }

  CudartApi api_;
  std::shared_ptr<Communicator> processes_;
  OwnedStream stream_;
  DeviceMemory input_, output_;
  PinnedMemory host_;
  OwnedEvent done_;
  std::unique_ptr<NcclGroup> group_;
};

TEST_F(GpuNccl, AWorldOfOneIsCapturedAndReplayed) {
  StreamQueue queue(api_, stream_.get());
  ASSERT_TRUE(api_.BeginCapture(stream_.get()).ok());
  const absl::Status enqueued = EnqueueAll(queue);
  const absl::StatusOr<CudaApi::Graph> captured = api_.EndCapture(stream_.get());
  ASSERT_TRUE(enqueued.ok()) << enqueued;
  ASSERT_TRUE(captured.ok()) << captured.status();
  const OwnedGraph graph(api_, *captured);
  EXPECT_GE(*api_.NodeCount(graph.get()), 4u);
  OwnedGraphExec exec;
  ASSERT_TRUE(Keep(api_, api_.Instantiate(graph.get()), exec).ok());
  for (std::int32_t step = 1; step <= 3; ++step) {
    const std::vector<std::int32_t> given = {step, 2 * step, 3 * step};
    absl::Status status = api_.Copy(input_.get(), given.data(), kBytes, CudaCopy::kHostToDevice, stream_.get());
    if (status.ok()) status = api_.LaunchGraph(exec.get(), stream_.get());
    if (status.ok()) {
      status = api_.Copy(host_.get(), output_.get(), 3 * kBytes, CudaCopy::kDeviceToHost, stream_.get());
    }
    if (status.ok()) status = WaitForStream();
    ASSERT_TRUE(status.ok()) << status;
    const auto* const read = static_cast<const std::int32_t*>(host_.get());
    for (std::size_t i = 0; i < 3 * kElements; ++i) EXPECT_EQ(read[i], given[i % kElements]) << "number " << i;
  }
}

TEST_F(GpuNccl, AnAbortEndsTheGroupByName) {
  StreamQueue queue(api_, stream_.get());
  ASSERT_TRUE(EnqueueAll(queue).ok());
  ASSERT_TRUE(WaitForStream().ok());
  const absl::Status failed = group_->Fail(absl::UnavailableError("the test asked for it"));
  EXPECT_EQ(failed.message(),
            "transport \"nccl\": rank 0 of 1: the test asked for it; its GPU has last come to the test");
  EXPECT_EQ(EnqueueAll(queue), failed);
  EXPECT_TRUE(WaitForStream().ok()) << "the device goes on";
}

}  // namespace
}  // namespace mpc::runtime
