// Device memory and pinned host memory of an emulated GPU: guarded, poisoned, told apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mpc::emulation {

enum class MemoryKind { kDevice, kPinned };

class EmulatedMemory {
 public:
  explicit EmulatedMemory(std::size_t device_bytes) : device_bytes_(device_bytes) {}

  /// 256-byte aligned; every byte is set, so that unwritten floating-point values are NaN.
  absl::StatusOr<void*> Allocate(std::size_t bytes, MemoryKind kind);
  /// Errors: what is no such allocation; a guard that was written over.
  absl::Status Release(void* memory, MemoryKind kind);

  /// Errors: [address, address + bytes) is not inside one device allocation.
  absl::Status CheckDevice(const void* address, std::size_t bytes) const;
  /// Errors: the range touches device memory.
  absl::Status CheckHost(const void* address, std::size_t bytes) const;
  bool IsPinned(const void* address) const;

  std::size_t device_bytes_used() const { return used_; }
  std::size_t device_bytes() const { return device_bytes_; }
  /// Allocations whose guards were written over, and those that are alive.
  std::vector<std::string> Overruns() const;
  std::vector<std::string> Alive() const;

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  struct Allocation {
    std::unique_ptr<std::byte, Free> storage;  ///< a guard, the memory, a guard
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::kDevice;
    bool GuardsStand() const;
    std::string ToString() const;
  };
  using Allocations = std::map<std::uintptr_t, Allocation>;  ///< by address

  /// The allocation at or before `address` if it reaches there.
  const Allocations::value_type* Find(const void* address) const;

  std::size_t device_bytes_;
  std::size_t used_ = 0;
  Allocations allocations_;
};

}  // namespace mpc::emulation
