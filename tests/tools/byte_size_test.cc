// Sizes on command lines.
#include "tools/support/byte_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpc::tools {
namespace {

using testing::HasSubstr;

TEST(ByteSize, TakesBytesAndBinaryUnits) {
  EXPECT_EQ(ParseByteSize("1").value(), 1);
  EXPECT_EQ(ParseByteSize("4096").value(), 4096);
  EXPECT_EQ(ParseByteSize("3KiB").value(), 3 * 1024);
  EXPECT_EQ(ParseByteSize("512MiB").value(), std::int64_t{512} << 20);
  EXPECT_EQ(ParseByteSize("1.5GiB").value(), std::int64_t{3} << 29);
}

TEST(ByteSize, RefusesTheRestAndSaysWhatItTakes) {
  for (const char* text : {"", "MiB", "0", "-1MiB", "1.5", "12MB", "1 000", "nan", "infGiB", "1e30GiB", "1GiBs"}) {
    const absl::StatusOr<std::int64_t> bytes = ParseByteSize(text);
    EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("KiB, MiB or GiB")) << text;
    EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("'" + std::string(text) + "'"));
  }
  EXPECT_EQ(ParseByteSize("99999999999GiB").status().message(),
            "'99999999999GiB' is more bytes than 64 bits count; give fewer KiB, MiB or GiB");
}

}  // namespace
}  // namespace mpc::tools
