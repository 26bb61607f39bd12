#include "tests/cuda_emulation/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/cuda_emulation/emulator.h"
#include "tests/cuda_emulation/sanitizer.h"

namespace mpc::emulation {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::uint8_t kGuard = 0xA5;
constexpr std::uint8_t kUnwritten = 0xFF;
constexpr std::size_t kAlignment = 16;
// Arrays of a block; a kernel has a few.
constexpr std::size_t kArrays = 64;

std::size_t Padded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

// Guards before the first array, and behind each with the padding to the next.
SharedMemory::SharedMemory()
    : pool_(kMostDynamicSharedBytes + kSharedBytes + (kArrays + 2) * (kGuardBytes + kAlignment)) {}

void SharedMemory::Begin(std::size_t dynamic_bytes) {
  Unpoison(pool_.data(), pool_.size());
  arrays_.clear();
  used_ = 0;
  end_ = Padded(reinterpret_cast<std::uintptr_t>(pool_.data())) - reinterpret_cast<std::uintptr_t>(pool_.data());
  std::memset(pool_.data() + end_, kGuard, kGuardBytes);
  end_ += kGuardBytes;
  Add(dynamic_bytes, std::nullopt);
}

void* SharedMemory::Allocate(std::size_t bytes, Place place) {
  if (used_ + bytes > std::max(kSharedBytes, arrays_.front().bytes) || arrays_.size() >= kArrays) {
    used_ += bytes;
    return nullptr;
  }
  return Add(bytes, place);
}

void* SharedMemory::Add(std::size_t bytes, std::optional<Place> place) {
  std::uint8_t* data = pool_.data() + end_;
  const std::size_t gap = Padded(bytes) - bytes + kGuardBytes;
  Unpoison(data, bytes);
  std::memset(data, kUnwritten, bytes);
  std::memset(data + bytes, kGuard, gap);
  Poison(data + bytes, gap);
  end_ += bytes + gap;
  used_ += bytes;
  arrays_.push_back({data, bytes, place});
  return data;
}

std::string SharedMemory::Array::Name() const {
  return place ? absl::StrCat("the shared array at ", place->file_name(), ":", place->line(), " (", bytes, " bytes)")
               : absl::StrCat("dynamic shared memory (", bytes, " bytes)");
}

std::optional<std::string> SharedMemory::Overrun() const {
  Unpoison(pool_.data(), pool_.size());
  const std::uint8_t* gap = arrays_.front().data - kGuardBytes;
  for (std::size_t i = 0; i <= arrays_.size(); ++i) {
    const std::uint8_t* end = i < arrays_.size() ? arrays_[i].data : pool_.data() + end_;
    const std::uint8_t* damage = std::find_if(gap, end, [](std::uint8_t byte) { return byte != kGuard; });
    if (damage != end) {
      const bool behind = i == arrays_.size() || (i > 0 && damage - gap < end - damage);
      return behind ? absl::StrCat("a write past the end of ", arrays_[i - 1].Name())
                    : absl::StrCat("a write before ", arrays_[i].Name());
    }
    if (i < arrays_.size()) gap = arrays_[i].data + arrays_[i].bytes;
  }
  return std::nullopt;
}

}  // namespace mpc::emulation
