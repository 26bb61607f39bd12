// Opening the CUDA backend on this machine, whatever it has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/executable.h"

namespace mpc::runtime {
namespace {

using testing::HasSubstr;

TEST(CudaBackend, ANamedLibraryThatCannotBeOpenedIsAnErrorWithTheReason) {
#ifndef MPC_TEST_HAS_CUDA
  GTEST_SKIP() << "this build has no CUDA backend";
#endif
  ASSERT_EQ(::setenv("MPC_CUDA_LIBRARY", "/nowhere/libmpc_cuda.so", 1), 0);
  const absl::Status status = GetDevice("cuda").status();
  ASSERT_EQ(::unsetenv("MPC_CUDA_LIBRARY"), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("MPC_CUDA_LIBRARY may name it); tried:\n  /nowhere/libmpc_cuda.so:"));
}

TEST(CudaBackend, ALibraryOfSomethingElseIsAnErrorThatNamesIt) {
#ifndef MPC_TEST_HAS_CUDA
  GTEST_SKIP() << "this build has no CUDA backend";
#endif
  ASSERT_EQ(::setenv("MPC_CUDA_LIBRARY", "libc.so.6", 1), 0);
  const absl::Status status = GetDevice("cuda").status();
  ASSERT_EQ(::unsetenv("MPC_CUDA_LIBRARY"), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libc.so.6 is no backend of mpc"));
}

TEST(CudaBackend, OpensADeviceOrSaysWhatIsMissing) {
  const auto device = GetDevice("cuda");
#ifdef MPC_TEST_HAS_CUDA
  if (device.ok()) {
    EXPECT_EQ((*device)->name(), "cuda");
    EXPECT_EQ(*GetDevice("cuda"), *device) << "one object";
    return;
  }
  EXPECT_EQ(device.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(device.status().message()),
              testing::AnyOf(HasSubstr("no NVIDIA driver was found"), HasSubstr("the driver is too old"),
                             HasSubstr("sees no GPU"), HasSubstr("compute capability")));
#else
  EXPECT_EQ(device.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("this build has no CUDA backend (MPC_CUDA=OFF)"));
#endif
}

#ifdef MPC_TEST_HAS_CUDA
TEST(CudaBackend, TargetsNeedNoDevice) {
  for (const char* arch : {"sm_80", "sm_90"}) {
    const auto target = GetTarget("cuda", arch);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ((*target)->arch(), arch);
    EXPECT_TRUE((*target)->MayAlias("relu", 0, 0));
    EXPECT_FALSE((*target)->MayAlias("matmul", 0, 0));
  }
  const absl::Status unknown = GetTarget("cuda", "sm_12").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("known: \"sm_80\", \"sm_90\""));
}
#endif

}  // namespace
}  // namespace mpc::runtime
