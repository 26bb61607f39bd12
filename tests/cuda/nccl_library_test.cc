// Opening NCCL's library, on machines without a GPU too.
#include "runtime/cuda/nccl_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mpc::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(NcclLibrary, SaysWhyItCannotBeOpened) {
#ifndef MPC_TEST_HAS_NCCL
  GTEST_SKIP() << "this build has no NCCL";
#endif
  const absl::Status missing = OpenNcclLibrary({"/nowhere/libnccl.so.2"}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(missing.message()),
              AllOf(StartsWith("NCCL was not found: /nowhere/libnccl.so.2: "), HasSubstr("MPC_NCCL_LIBRARY names")));
  const absl::Status other = OpenNcclLibrary({"libc.so.6"}).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(other.message()), HasSubstr("libc.so.6 has no ncclGetVersion"));
}

TEST(NcclLibrary, OpensWithoutAGpuAndNamesCallsThatFail) {
#ifndef MPC_TEST_HAS_NCCL
  GTEST_SKIP() << "this build has no NCCL";
#endif
  const absl::StatusOr<NcclApi*> nccl = OpenNccl();
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  EXPECT_THAT((*nccl)->Version(), StartsWith("2."));
  EXPECT_EQ(*OpenNccl(), *nccl) << "one object";
  const absl::Status null = (*nccl)->AllGather(nullptr, nullptr, 4, nullptr, nullptr);
  EXPECT_EQ(null.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(null.message()), StartsWith("ncclAllGather of 4 bytes: invalid argument"));
  const absl::Status sum = (*nccl)->AllReduceSum(nullptr, nullptr, 3, DType::kBF16, nullptr, nullptr);
  EXPECT_THAT(std::string(sum.message()), StartsWith("ncclAllReduce of 3 bf16: invalid argument"));
}

}  // namespace
}  // namespace mpc::runtime
