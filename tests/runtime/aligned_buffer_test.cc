#include "runtime/aligned_buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <new>

namespace mpc::runtime {
namespace {

TEST(AlignedBuffer, PaddingNeverWrapsAround) {
  EXPECT_EQ(AlignedBuffer::Padded(0), 64u);
  EXPECT_EQ(AlignedBuffer::Padded(1), 64u);
  EXPECT_EQ(AlignedBuffer::Padded(64), 64u);
  EXPECT_EQ(AlignedBuffer::Padded(65), 128u);
  constexpr std::size_t kMost = static_cast<std::size_t>(PTRDIFF_MAX) - 63;
  EXPECT_EQ(AlignedBuffer::Padded(kMost - 63), kMost);
  for (const std::size_t bytes : {kMost, kMost + 1, SIZE_MAX - 63, SIZE_MAX - 62, SIZE_MAX}) {
    EXPECT_EQ(AlignedBuffer::Padded(bytes), kMost) << bytes;
  }
}

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

TEST(AlignedBuffer, IsZeroAndAlignedWhateverTheMemoryHeldBefore) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kMegabyte - 64, kMegabyte - 63, 3 * kMegabyte + 1}) {
    for (int time = 0; time < 3; ++time) {
      AlignedBuffer buffer(bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment, 0u) << bytes;
      EXPECT_EQ(buffer.size(), bytes);
      std::byte* const end = buffer.data() + AlignedBuffer::Padded(bytes);
      EXPECT_TRUE(std::all_of(buffer.data(), end, [](std::byte value) { return value == std::byte{0}; })) << bytes;
      std::memset(buffer.data(), 0xff, AlignedBuffer::Padded(bytes));
    }
  }
}

std::size_t ResidentBytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(AlignedBuffer, WhatIsNotTouchedTakesNoMemory) {
  const std::size_t before = ResidentBytes();
  AlignedBuffer buffer(256 * kMegabyte);
  // The address sanitizer notes an eighth of it as usable.
  EXPECT_LT(ResidentBytes(), before + 64 * kMegabyte);
  std::memset(buffer.data(), 1, buffer.size());
  EXPECT_GE(ResidentBytes(), before + 256 * kMegabyte);
}

TEST(AlignedBuffer, MoreThanAnObjectCanHaveIsRefused) { EXPECT_THROW(AlignedBuffer(SIZE_MAX), std::bad_alloc); }

}  // namespace
}  // namespace mpc::runtime
