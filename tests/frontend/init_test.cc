// Processes find each other with distributed::Init.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/distributed/distributed.h"
#include "frontend/distributed/exchange.h"
#include "tests/runtime/free_port.h"
#include "tests/runtime/processes.h"

namespace mpc::distributed {
namespace {

using test::FreePort;
using test::RunProcesses;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Options RankOf(int rank, int size, int port) {
  return {.rank = rank, .size = size, .address = absl::StrCat("127.0.0.1:", port)};
}

TEST(Init, ProcessesOfOneMachineShareAMapping) {
  const std::vector<int> ports = {FreePort(), FreePort()};
  EXPECT_TRUE(RunProcesses(4, [&ports](int rank) {
    for (int port : ports) {
      const absl::Status status = Init(RankOf(rank, 4, port));
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) return 1;
      EXPECT_EQ(GetRank(), rank);
      EXPECT_EQ(GetRankSize(), 4);
      EXPECT_EQ(GetLocalRank(), rank);
      const std::shared_ptr<Communicator> communicator = internal::GetCommunicator();
      EXPECT_EQ(communicator->transport(), "shared");
      const auto gathered = GatherBytes(*communicator, std::string(static_cast<std::size_t>(rank), 'r'));
      EXPECT_TRUE(gathered.ok()) << gathered.status();
      if (gathered.ok()) {
        EXPECT_THAT(*gathered, ElementsAre("", "r", "rr", "rrr"));
      }
      Finalize();
      EXPECT_FALSE(IsInitialized());
    }
    return 0;
  }));
}

TEST(Init, ReadsTheVariablesOfALauncher) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(2, [port](int rank) {
    const std::string number = absl::StrCat(rank);
    setenv("RANK", number.c_str(), 1);
    setenv("LOCAL_RANK", number.c_str(), 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", absl::StrCat(port).c_str(), 1);
    const absl::Status status = Init();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(GetRank(), rank);
    EXPECT_EQ(GetRankSize(), 2);
    Finalize();
    return 0;
  }));
}

TEST(Init, OtherTransportsAreRefusedInAllRanks) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(2, [port](int rank) {
    Options options = RankOf(rank, 2, port);
    if (rank == 1) options.transport = Transport::kShared;
    const absl::Status status = Init(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("transport"));
    EXPECT_FALSE(IsInitialized());
    return 0;
  }));
}

TEST(Init, ARankThatDoesNotComeEndsTheWait) {
  Options options = RankOf(0, 2, FreePort());
  options.timeout = std::chrono::milliseconds(300);
  EXPECT_TRUE(RunProcesses(1, [options](int) {
    const absl::Status status = Init(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
    EXPECT_FALSE(IsInitialized());
    return 0;
  }));
}

}  // namespace
}  // namespace mpc::distributed
