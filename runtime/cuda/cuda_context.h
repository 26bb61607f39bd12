// What all Programs on one GPU share: streams, library handles, and the upload of state to the device.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/nccl_group.h"
#include "runtime/cuda/shared_arenas.h"
#include "runtime/state_store.h"

namespace mpc::runtime {

/// Steps of every Program run on one stream, in the order in which they were started. So one Program sees what another
/// one wrote, without any event. Inputs are uploaded on a second stream while the previous step runs.
class CudaContext {
 public:
  /// `api` outlives the context.
  static absl::StatusOr<std::shared_ptr<CudaContext>> Create(CudaApi& api, bool use_libraries);
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();

  CudaApi& api() { return api_; }
  CudaApi::Stream compute_stream() const { return compute_.get(); }
  CudaApi::Stream upload_stream() const { return upload_.get(); }
  /// A stream that only records graphs. Another thread may start steps meanwhile.
  CudaApi::Stream capture_stream() const { return capture_.get(); }
  const cuda::LibraryHandles& handles() const { return handles_; }
  /// The memory of the Programs' temporaries.
  SharedArenas& arenas() { return arenas_; }

  /// Library handles for threads that make kernels: one set for each of at most `threads` threads, so that no two
  /// threads share one. The first set is handles(); others are made when they are first wanted. There is at least one
  /// set, and at most eight and as many as there are cores.
  std::vector<cuda::LibraryHandles> HandlesForThreads(std::size_t threads);

  /// Held while work is put on the streams, since all Programs share the library handles and the upload buffer.
  std::mutex& mutex() { return mutex_; }

  /// The GPUs of `processes`, opened where they are not open yet: NcclGroup::Open, with `nccl` and this GPU's name. An
  /// earlier group is given back when no Program uses it. Errors: those of Open, and of the steps under way.
  absl::StatusOr<std::shared_ptr<NcclGroup>> GroupOf(const std::shared_ptr<Communicator>& processes,
                                                     const absl::StatusOr<NcclApi*>& nccl, const std::string& gpu);

  /// What comes before asking CUDA for memory in this thread. CUDA may wait there for steps, so that no step may wait
  /// for other processes.
  absl::Status PrepareToAllocate();

  // Waits of the host. Steps may wait for other processes, which may be gone. So where there is a group, it asks CUDA
  // and the group in turn, and an error of the group ends the wait. Otherwise it waits inside CUDA.

  /// Waits for every step that was started. Errors: what one of them failed with.
  absl::Status Synchronize();
  /// Waits until the device has passed `event`. Errors: what failed before.
  absl::Status WaitFor(CudaApi::Event event);

  /// Copies the host's content of `entry` to `to` before the steps that follow. The host may write the entry again when
  /// the call returns. Small entries (a learning rate, a loss scale) go through pinned memory and wait for nothing.
  absl::Status Upload(const StateEntry& entry, void* to);

 private:
  CudaContext(CudaApi& api, bool use_libraries) : api_(api), use_libraries_(use_libraries) {}

  CudaApi& api_;
  const bool use_libraries_;
  OwnedStream compute_, upload_, capture_;
  cuda::LibraryHandles handles_;
  std::vector<cuda::LibraryHandles> more_handles_;  ///< kept, since plans run with the handles that made them
  PinnedMemory small_entries_;
  SharedArenas arenas_;
  std::shared_ptr<NcclGroup> group_;  ///< null where this process trains alone
  OwnedEvent drained_;                ///< for Synchronize; made with the group
  std::size_t small_used_ = 0;        ///< bytes whose copies may still be under way
  std::mutex mutex_;
};

/// A state entry's copy on the GPU.
class CudaStateCopy : public DeviceCopy {
 public:
  /// A copy with memory of its own. Errors: those of CudaApi::Malloc.
  static absl::StatusOr<std::unique_ptr<CudaStateCopy>> Create(std::shared_ptr<CudaContext> context, std::size_t bytes);
  /// A copy in `bytes` bytes at `offset` of `memory`, which other copies share.
  CudaStateCopy(std::shared_ptr<CudaContext> context, std::shared_ptr<DeviceMemory> memory, std::size_t offset,
                std::size_t bytes)
      : context_(std::move(context)), memory_(std::move(memory)), offset_(offset), bytes_(bytes) {}
  ~CudaStateCopy() override;

  void* data() override { return static_cast<std::byte*>(memory_->get()) + offset_; }
  absl::Status Download(void* host) override;

  const CudaContext* context() const { return context_.get(); }
  /// Called when a step that writes the copy failed half-way: Download gives `why` until new content is uploaded.
  void MarkBroken(const absl::Status& why) { broken_ = why; }
  const absl::Status& broken() const { return broken_; }
  /// Brings the content of `entry`, whose copy this is, to the device.
  absl::Status Upload(const StateEntry& entry);

 private:
  std::shared_ptr<CudaContext> context_;
  std::shared_ptr<DeviceMemory> memory_;
  std::size_t offset_;
  std::size_t bytes_;
  absl::Status broken_;
};

}  // namespace mpc::runtime
