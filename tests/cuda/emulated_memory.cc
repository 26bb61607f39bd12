#include "tests/cuda/emulated_memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::emulation {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::align_val_t kAlignment{256};
constexpr std::byte kGuard{0xA5};
constexpr int kPoison = 0xFF;

std::uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

void EmulatedMemory::Free::operator()(std::byte* data) const { ::operator delete(data, kAlignment); }

bool EmulatedMemory::Allocation::GuardsStand() const {
  const auto stands = [](const std::byte* guard) {
    return std::all_of(guard, guard + kGuardBytes, [](std::byte value) { return value == kGuard; });
  };
  return stands(storage.get()) && stands(storage.get() + kGuardBytes + bytes);
}

std::string EmulatedMemory::Allocation::ToString() const {
  return absl::StrCat(bytes, " bytes of ", kind == MemoryKind::kDevice ? "device" : "pinned", " memory");
}

absl::StatusOr<void*> EmulatedMemory::Allocate(std::size_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::kDevice && bytes > device_bytes_ - used_) {
    return absl::ResourceExhaustedError(absl::StrCat("malloc of ", bytes, " bytes: out of memory"));
  }
  Allocation allocation;
  allocation.storage.reset(static_cast<std::byte*>(::operator new(bytes + 2 * kGuardBytes, kAlignment)));
  allocation.bytes = bytes;
  allocation.kind = kind;
  std::byte* memory = allocation.storage.get() + kGuardBytes;
  std::fill(allocation.storage.get(), memory, kGuard);
  std::memset(memory, kPoison, bytes);
  std::fill(memory + bytes, memory + bytes + kGuardBytes, kGuard);
  if (kind == MemoryKind::kDevice) used_ += bytes;
  allocations_[AddressOf(memory)] = std::move(allocation);
  return static_cast<void*>(memory);
}

absl::Status EmulatedMemory::Release(void* memory, MemoryKind kind) {
  const auto found = allocations_.find(AddressOf(memory));
  if (found == allocations_.end() || found->second.kind != kind) {
    return absl::InvalidArgumentError(absl::StrCat(
        "freed what is no ", kind == MemoryKind::kDevice ? "device" : "pinned", " allocation, or freed it twice"));
  }
  const bool intact = found->second.GuardsStand();
  const std::string text = found->second.ToString();
  if (kind == MemoryKind::kDevice) used_ -= found->second.bytes;
  allocations_.erase(found);
  return intact ? absl::OkStatus() : absl::InternalError(absl::StrCat("written beyond the end or before ", text));
}

const EmulatedMemory::Allocations::value_type* EmulatedMemory::Find(const void* address) const {
  auto after = allocations_.upper_bound(AddressOf(address));
  if (after == allocations_.begin()) return nullptr;
  --after;
  return AddressOf(address) - after->first < std::max<std::size_t>(after->second.bytes, 1) ? &*after : nullptr;
}

absl::Status EmulatedMemory::CheckDevice(const void* address, std::size_t bytes) const {
  const auto* found = Find(address);
  if (found == nullptr || found->second.kind != MemoryKind::kDevice) {
    return absl::InvalidArgumentError("a host, freed or foreign address where device memory is meant");
  }
  if (AddressOf(address) + bytes > found->first + found->second.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a copy of ", bytes, " bytes leaves ", found->second.ToString()));
  }
  return absl::OkStatus();
}

absl::Status EmulatedMemory::CheckHost(const void* address, std::size_t bytes) const {
  const auto* found = Find(address);
  if (found == nullptr) return absl::OkStatus();
  if (found->second.kind == MemoryKind::kDevice) {
    return absl::InvalidArgumentError("a device address where host memory is meant");
  }
  if (AddressOf(address) + bytes > found->first + found->second.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a copy of ", bytes, " bytes leaves ", found->second.ToString()));
  }
  return absl::OkStatus();
}

bool EmulatedMemory::IsPinned(const void* address) const {
  const auto* found = Find(address);
  return found != nullptr && found->second.kind == MemoryKind::kPinned;
}

std::vector<std::string> EmulatedMemory::Overruns() const {
  std::vector<std::string> overruns;
  for (const auto& [address, allocation] : allocations_) {
    if (!allocation.GuardsStand()) {
      overruns.push_back(absl::StrCat("written beyond the end or before ", allocation.ToString()));
    }
  }
  return overruns;
}

std::vector<std::string> EmulatedMemory::Alive() const {
  std::vector<std::string> alive;
  for (const auto& [address, allocation] : allocations_) alive.push_back(allocation.ToString());
  return alive;
}

}  // namespace mpc::emulation
