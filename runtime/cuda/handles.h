// Owners of the resources of CudaApi: memory, streams, events, graphs. Each releases its resource when it is destroyed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_api.h"

namespace mpc::runtime {

/// Owns one resource that `kRelease` releases. Errors of the release are dropped: by then the device has failed, and
/// what used it has reported that.
template <absl::Status (CudaApi::*kRelease)(void*)>
class Owned {
 public:
  Owned() = default;
  Owned(CudaApi& api, void* thing) : api_(&api), thing_(thing) {}
  Owned(Owned&& other) noexcept : api_(other.api_), thing_(std::exchange(other.thing_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(thing_, other.thing_);
    return *this;
  }
  ~Owned() {
    if (thing_ != nullptr) (api_->*kRelease)(thing_).IgnoreError();
  }

  void* get() const { return thing_; }

 private:
  CudaApi* api_ = nullptr;
  void* thing_ = nullptr;
};

using DeviceMemory = Owned<&CudaApi::Free>;
using PinnedMemory = Owned<&CudaApi::FreeHost>;
using OwnedStream = Owned<&CudaApi::DestroyStream>;
using OwnedEvent = Owned<&CudaApi::DestroyEvent>;
using OwnedGraph = Owned<&CudaApi::DestroyGraph>;
using OwnedGraphExec = Owned<&CudaApi::DestroyGraphExec>;
using OwnedCode = Owned<&CudaApi::UnloadCode>;

/// Puts `made` into `owner`.
template <typename Owner>
absl::Status Keep(CudaApi& api, const absl::StatusOr<void*>& made, Owner& owner) {
  if (made.ok()) owner = Owner(api, *made);
  return made.status();
}

/// The error of `bytes` of host memory that could not be pinned. It tells the bytes that the host has free, and the
/// message of `status`.
absl::Status HostMemoryExhausted(std::size_t bytes, const absl::Status& status);
/// True of such an error. The memory of the device is not what is short.
bool IsHostMemoryExhausted(const absl::Status& status);

/// Memory of at least one byte, so that an empty tensor has an address too.
inline absl::Status Allocate(CudaApi& api, std::size_t bytes, DeviceMemory& owner) {
  return Keep(api, api.Malloc(std::max<std::size_t>(bytes, 1)), owner);
}
/// Errors (RESOURCE_EXHAUSTED): those of HostMemoryExhausted.
inline absl::Status Allocate(CudaApi& api, std::size_t bytes, PinnedMemory& owner) {
  const absl::Status status = Keep(api, api.MallocHost(std::max<std::size_t>(bytes, 1)), owner);
  return absl::IsResourceExhausted(status) ? HostMemoryExhausted(bytes, status) : status;
}

}  // namespace mpc::runtime
