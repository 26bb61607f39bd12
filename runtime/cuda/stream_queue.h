// A stream as the queue that kernels are enqueued on: it runs them, or records them while it captures a graph.
#pragma once

#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_api.h"

namespace mpc::runtime {

class StreamQueue : public cuda::LaunchQueue {
 public:
  StreamQueue(CudaApi& api, CudaApi::Stream stream) : api_(api), stream_(stream) {}

  absl::Status Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                      absl::Span<const cuda::KernelArgument> arguments) override {
    return api_.Launch(function, shape, arguments, stream_);
  }
  absl::Status Copy(void* to, const void* from, std::size_t bytes) override {
    return api_.Copy(to, from, bytes, CudaCopy::kDeviceToDevice, stream_);
  }
  absl::Status Fill(void* to, std::uint8_t byte, std::size_t bytes) override {
    return api_.Fill(to, byte, bytes, stream_);
  }
  void* stream() override { return stream_; }

 private:
  CudaApi& api_;
  CudaApi::Stream stream_;
};

}  // namespace mpc::runtime
