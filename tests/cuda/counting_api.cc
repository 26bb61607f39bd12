#include "tests/cuda/counting_api.h"

#include <iterator>

namespace mpc::test {

using runtime::CudaCopy;

CallCounts CountingApi::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

void CountingApi::Count(std::size_t CallCounts::*field) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++(counts_.*field);
}

void CountingApi::CountWork(Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++work_[stream];
}

bool CountingApi::IsPinned(const void* memory) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto* const byte = static_cast<const std::byte*>(memory);
  const auto behind = pinned_.upper_bound(byte);
  if (behind == pinned_.begin()) return false;
  const auto& [first, bytes] = *std::prev(behind);
  return byte < first + bytes;
}

absl::Status CountingApi::Free(void* memory) {
  // CUDA waits for all work before it frees device memory.
  Count(&CallCounts::waits);
  Count(&CallCounts::drains);
  return Counted(api_.Free(memory));
}

absl::StatusOr<void*> CountingApi::MallocHost(std::size_t bytes) {
  absl::StatusOr<void*> memory = Counted(api_.MallocHost(bytes));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory.ok()) pinned_[static_cast<const std::byte*>(*memory)] = bytes;
  return memory;
}

absl::Status CountingApi::FreeHost(void* memory) {
  Count(&CallCounts::waits);
  Count(&CallCounts::drains);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pinned_.erase(static_cast<const std::byte*>(memory));
  }
  return Counted(api_.FreeHost(memory));
}

absl::Status CountingApi::SynchronizeStream(Stream stream) {
  Count(&CallCounts::waits);
  Count(&CallCounts::drains);
  return api_.SynchronizeStream(stream);
}

absl::Status CountingApi::RecordEvent(Event event, Stream stream) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    recorded_[event] = {stream, work_[stream]};
  }
  return api_.RecordEvent(event, stream);
}

absl::Status CountingApi::SynchronizeEvent(Event event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_.waits;
    const Recorded& recorded = recorded_[event];
    if (recorded.work == work_[recorded.stream]) ++counts_.drains;
  }
  return api_.SynchronizeEvent(event);
}

absl::Status CountingApi::Copy(void* to, const void* from, std::size_t bytes, CudaCopy kind, Stream stream) {
  CountWork(stream);
  const void* const host = kind == CudaCopy::kHostToDevice ? from : to;
  if (kind != CudaCopy::kDeviceToDevice && !IsPinned(host)) {
    Count(&CallCounts::waits);
    // Pageable memory is read before the call returns, perhaps by way of a buffer; it is written when all is done.
    if (kind == CudaCopy::kDeviceToHost) Count(&CallCounts::drains);
  }
  return api_.Copy(to, from, bytes, kind, stream);
}

absl::Status CountingApi::Fill(void* to, std::uint8_t byte, std::size_t bytes, Stream stream) {
  CountWork(stream);
  return api_.Fill(to, byte, bytes, stream);
}

absl::Status CountingApi::Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                                 absl::Span<const cuda::KernelArgument> arguments, Stream stream) {
  CountWork(stream);
  return api_.Launch(function, shape, arguments, stream);
}

absl::Status CountingApi::LaunchGraph(GraphExec graph, Stream stream) {
  CountWork(stream);
  Count(&CallCounts::graph_launches);
  return api_.LaunchGraph(graph, stream);
}

}  // namespace mpc::test
