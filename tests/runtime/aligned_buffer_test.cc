#include "runtime/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>

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

}  // namespace
}  // namespace mpc::runtime
