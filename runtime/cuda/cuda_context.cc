#include "runtime/cuda/cuda_context.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace mpc::runtime {
namespace {

constexpr std::size_t kSmallEntriesBytes = std::size_t{256} << 10;
constexpr std::size_t kSmallEntry = std::size_t{16} << 10;
constexpr std::size_t kSmallAlignment = 16;

}  // namespace

absl::StatusOr<std::shared_ptr<CudaContext>> CudaContext::Create(CudaApi& api, bool use_libraries) {
  if (absl::Status status = api.UseDevice(); !status.ok()) return status;
  std::shared_ptr<CudaContext> context(new CudaContext(api, use_libraries));
  for (OwnedStream* stream : {&context->compute_, &context->upload_, &context->capture_}) {
    if (absl::Status status = Keep(api, api.CreateStream(), *stream); !status.ok()) return status;
  }
  if (absl::Status status = Allocate(api, kSmallEntriesBytes, context->small_entries_); !status.ok()) return status;
  if (use_libraries) {
    absl::StatusOr<cuda::LibraryHandles> handles = api.CreateLibraryHandles();
    if (!handles.ok()) return handles.status();
    context->handles_ = *handles;
  }
  return context;
}

CudaContext::~CudaContext() {
  // Null where creation failed: then nothing was started either.
  if (compute_.get() != nullptr) Synchronize().IgnoreError();
  if (handles_.cublas_lt != nullptr || handles_.cudnn != nullptr) api_.DestroyLibraryHandles(handles_).IgnoreError();
  for (const cuda::LibraryHandles& handles : more_handles_) api_.DestroyLibraryHandles(handles).IgnoreError();
}

absl::StatusOr<std::shared_ptr<NcclGroup>> CudaContext::GroupOf(const std::shared_ptr<Communicator>& processes,
                                                                const absl::StatusOr<NcclApi*>& nccl,
                                                                const std::string& gpu) {
  if (absl::Status status = api_.UseDevice(); !status.ok()) return status;
  if (group_ != nullptr && group_->IsOf(processes)) {
    if (!group_->status().ok()) return group_->status();
    return group_;
  }
  if (absl::Status status = Synchronize(); !status.ok()) return status;
  if (drained_.get() == nullptr) {
    if (absl::Status status = Keep(api_, api_.CreateEvent(false), drained_); !status.ok()) return status;
  }
  absl::StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Open({&api_, nccl, compute_.get(), gpu}, processes);
  if (!group.ok()) return group.status();
  group_ = *std::move(group);
  return group_;
}

absl::Status CudaContext::PrepareToAllocate() {
  if (absl::Status status = api_.UseDevice(); !status.ok()) return status;
  return group_ == nullptr ? absl::OkStatus() : Synchronize();
}

absl::Status CudaContext::Synchronize() {
  if (absl::Status status = api_.UseDevice(); !status.ok()) return status;
  if (group_ == nullptr) return api_.SynchronizeStream(compute_.get());
  absl::Status status = api_.RecordEvent(drained_.get(), compute_.get());
  return status.ok() ? WaitFor(drained_.get()) : status;
}

absl::Status CudaContext::WaitFor(CudaApi::Event event) {
  if (absl::Status status = api_.UseDevice(); !status.ok()) return status;
  if (group_ == nullptr) return api_.SynchronizeEvent(event);
  return group_->WaitUntil([&] { return api_.EventDone(event); });
}

std::vector<cuda::LibraryHandles> CudaContext::HandlesForThreads(std::size_t threads) {
  constexpr std::size_t kMost = 8;
  const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1u);
  threads = std::clamp(threads, std::size_t{1}, std::min(kMost, cores));
  std::vector<cuda::LibraryHandles> handles = {handles_};
  if (!use_libraries_) return handles;
  while (more_handles_.size() + 1 < threads) {
    const absl::StatusOr<cuda::LibraryHandles> made = api_.CreateLibraryHandles();
    if (!made.ok()) break;  // fewer threads do it too
    more_handles_.push_back(*made);
  }
  const std::size_t more = std::min(more_handles_.size(), threads - 1);
  handles.insert(handles.end(), more_handles_.begin(), more_handles_.begin() + static_cast<std::ptrdiff_t>(more));
  return handles;
}

absl::Status CudaContext::Upload(const StateEntry& entry, void* to) {
  const std::size_t bytes = entry.spec().bytes();
  if (bytes == 0) return absl::OkStatus();
  if (bytes > kSmallEntry) {
    // This copies straight from the entry's pageable memory, which not every system reads before the call returns.
    absl::Status status = api_.Copy(to, entry.data(), bytes, CudaCopy::kHostToDevice, compute_.get());
    return status.ok() ? Synchronize() : status;
  }
  if (small_used_ + bytes > kSmallEntriesBytes) {
    if (absl::Status status = Synchronize(); !status.ok()) return status;
    small_used_ = 0;
  }
  std::byte* staged = static_cast<std::byte*>(small_entries_.get()) + small_used_;
  small_used_ += (bytes + kSmallAlignment - 1) / kSmallAlignment * kSmallAlignment;
  std::memcpy(staged, entry.data(), bytes);
  return api_.Copy(to, staged, bytes, CudaCopy::kHostToDevice, compute_.get());
}

absl::StatusOr<std::unique_ptr<CudaStateCopy>> CudaStateCopy::Create(std::shared_ptr<CudaContext> context,
                                                                     std::size_t bytes) {
  auto memory = std::make_shared<DeviceMemory>();
  if (absl::Status status = Allocate(context->api(), bytes, *memory); !status.ok()) return status;
  return std::make_unique<CudaStateCopy>(std::move(context), std::move(memory), 0, bytes);
}

CudaStateCopy::~CudaStateCopy() {
  // A step that was started may still use the memory.
  context_->Synchronize().IgnoreError();
}

absl::Status CudaStateCopy::Download(void* host) {
  if (!broken_.ok()) return broken_;
  if (bytes_ == 0) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(context_->mutex());
  CudaApi& api = context_->api();
  if (absl::Status status = api.UseDevice(); !status.ok()) return status;
  absl::Status status = api.Copy(host, data(), bytes_, CudaCopy::kDeviceToHost, context_->compute_stream());
  return status.ok() ? context_->Synchronize() : status;
}

absl::Status CudaStateCopy::Upload(const StateEntry& entry) {
  absl::Status status = context_->Upload(entry, data());
  if (status.ok()) broken_ = absl::OkStatus();
  return status;
}

}  // namespace mpc::runtime
