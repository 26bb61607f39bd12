// A stream as the queue that kernels are enqueued on: it runs them, or records them while it captures a graph.
#pragma once

#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_api.h"

namespace mpc::runtime {

class StreamQueue : public cuda::LaunchQueue {
 public:
  StreamQueue(CudaApi& api, CudaApi::Stream stream) : api_(api), stream_(stream) {}

  /// A kernel that awaits earlier work is started early where that work is a launch of this queue. Behind anything else
  /// it gains nothing.
  absl::Status Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                      absl::Span<const cuda::KernelArgument> arguments) override {
    cuda::KernelFunction started = function;
    started.awaits_earlier = function.awaits_earlier && behind_launch_;
    behind_launch_ = true;
    return api_.Launch(started, shape, arguments, stream_);
  }
  absl::Status Copy(void* to, const void* from, std::size_t bytes) override {
    behind_launch_ = false;
    return api_.Copy(to, from, bytes, CudaCopy::kDeviceToDevice, stream_);
  }
  absl::Status Fill(void* to, std::uint8_t byte, std::size_t bytes) override {
    behind_launch_ = false;
    return api_.Fill(to, byte, bytes, stream_);
  }
  /// What is enqueued from now on comes behind the last record of `event`.
  absl::Status Await(CudaApi::Event event) {
    behind_launch_ = false;
    return api_.WaitEvent(stream_, event);
  }
  absl::Status Record(CudaApi::Event event) { return api_.RecordEvent(event, stream_); }
  void* stream() override {
    behind_launch_ = false;  // a library may enqueue whatever it likes
    return stream_;
  }

 private:
  CudaApi& api_;
  CudaApi::Stream stream_;
  bool behind_launch_ = false;
};

}  // namespace mpc::runtime
