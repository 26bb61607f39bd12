// Opening the transport "mpi" on this machine, whatever it has.
#include "runtime/distributed/mpi/mpi_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace mpc::distributed {
namespace {

using testing::HasSubstr;

TEST(MpiLibrary, ABuildWithoutItSaysSo) {
#ifdef MPC_TEST_HAS_MPI
  GTEST_SKIP() << "this build has the MPI transport";
#endif
  const absl::Status status = OpenMpiCommunicator().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("transport \"mpi\": this build has no MPI transport"));
}

TEST(MpiLibrary, ANamedLibraryThatCannotBeOpenedIsAnErrorWithTheReason) {
#ifndef MPC_TEST_HAS_MPI
  GTEST_SKIP() << "this build has no MPI transport";
#endif
  ASSERT_EQ(::setenv("MPC_MPI_LIBRARY", "/nowhere/libmpc_mpi.so", 1), 0);
  const absl::Status status = OpenMpiCommunicator().status();
  ASSERT_EQ(::unsetenv("MPC_MPI_LIBRARY"), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("transport \"mpi\": its library cannot be opened (MPC_MPI_LIBRARY "
                        "may name it); tried:\n  /nowhere/libmpc_mpi.so:"));
}

TEST(MpiLibrary, ALibraryOfSomethingElseIsAnErrorThatNamesIt) {
#ifndef MPC_TEST_HAS_MPI
  GTEST_SKIP() << "this build has no MPI transport";
#endif
  ASSERT_EQ(::setenv("MPC_MPI_LIBRARY", "libc.so.6", 1), 0);
  const absl::Status status = OpenMpiCommunicator().status();
  ASSERT_EQ(::unsetenv("MPC_MPI_LIBRARY"), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libc.so.6 is no transport of mpc"));
}

TEST(MpiLibrary, WithoutALauncherItNamesThem) {
#ifndef MPC_TEST_HAS_MPI
  GTEST_SKIP() << "this build has no MPI transport";
#endif
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) ::unsetenv(variable);
  const absl::Status status = OpenMpiCommunicator().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no launcher of MPI has started this process"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("start it with mpirun -n <processes> or srun --mpi=pmix"));
}

TEST(MpiLibrary, ATimeLimitOfNothingIsRefused) {
#ifndef MPC_TEST_HAS_MPI
  GTEST_SKIP() << "this build has no MPI transport";
#endif
  const absl::Status status = OpenMpiCommunicator({.timeout = std::chrono::milliseconds(0)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "transport \"mpi\": the time limit is 0 ms; it must be positive");
}

}  // namespace
}  // namespace mpc::distributed
