// Processes find each other with distributed::Init.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
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

/// Joins and waits until all have.
std::shared_ptr<Communicator> JoinWith(Options options) {
  const absl::Status status = Init(options);
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) ::_exit(3);
  EXPECT_TRUE(internal::GetCommunicator()->Barrier().ok());
  return internal::GetCommunicator();
}

TEST(Init, AReportedFailureEndsTheWaitOfTheOthersWithItsPlace) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(2, [port](int rank) {
    const std::shared_ptr<Communicator> communicator = JoinWith(RankOf(rank, 2, port));
    internal::NotePlace(17, "train_step");
    if (rank == 1) {
      const absl::Status error = absl::DataLossError("the disk is full");
      EXPECT_EQ(internal::TellOthers(error), error);
      // It goes on, and tells of the barrier that it does not come to in no other way.
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    } else {
      const absl::Status status = communicator->Barrier();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("has failed: the disk is full; it was last at step 17, "
                                                           "\"train_step\"; rank 0 waited in barrier, its call 2"));
      EXPECT_EQ(internal::TellOthers(status), status);
    }
    Finalize();
    return 0;
  }));
}

TEST(Init, AnErrorOfWaitingNamesTheRankThatIsLost) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(
      2,
      [port](int rank) {
        JoinWith(RankOf(rank, 2, port));
        internal::NotePlace(3, "train_step");
        if (rank == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // until a heartbeat has told the place
          ::raise(SIGKILL);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        const absl::Status status = internal::TellOthers(absl::UnavailableError("rank 1 has died"));
        EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 has died; rank 1 (host "));
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr("has ended without a goodbye; it was last at step 3, \"train_step\""));
        Finalize();
        return 0;
      },
      {1}));
}

TEST(Init, AProcessThatStandsStillEndsTheWaitOfTheOthers) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(2,
                           [port](int rank) {
                             Options options = RankOf(rank, 2, port);
                             options.loss_limit = std::chrono::milliseconds(4000);
                             const std::shared_ptr<Communicator> communicator = JoinWith(options);
                             const auto processes = GatherBytes(*communicator, absl::StrCat(::getpid()));
                             EXPECT_TRUE(processes.ok()) << processes.status();
                             if (rank == 1) ::raise(SIGSTOP);
                             const absl::Status status = communicator->Barrier();
                             EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
                             EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 (host "));
                             EXPECT_THAT(std::string(status.message()), HasSubstr("has been silent for "));
                             ::kill(static_cast<pid_t>(std::stoi(processes->at(1))), SIGKILL);
                             Finalize();
                             return 0;
                           },
                           {1}));
}

TEST(Init, APortInUseIsNamed) {
  const absl::StatusOr<runtime::Descriptor> taken = runtime::Listen("127.0.0.1", 0);
  ASSERT_TRUE(taken.ok());
  const int port = runtime::BoundPort(*taken);
  EXPECT_TRUE(RunProcesses(1, [port](int) {
    const absl::Status status = Init(RankOf(0, 2, port));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("127.0.0.1:", port)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("in use"));
    return 0;
  }));
}

/// A process that is in no call of the group when another one dies.
TEST(InitDeathTest, AProcessThatOutlivesItsGroupIsEndedWithTheReason) {
  const int port = FreePort();
  const auto outlive = [port] {
    Options options = RankOf(0, 2, port);
    options.loss_limit = std::chrono::milliseconds(1000);
    const pid_t other = ::fork();
    if (other == 0) options.rank = 1;
    JoinWith(options);
    if (other == 0) ::raise(SIGKILL);
    std::this_thread::sleep_for(std::chrono::seconds(60));
  };
  EXPECT_EXIT(outlive(), ::testing::ExitedWithCode(1),
              "mpc: this process is ended with status 1, 0.5 s after its group has failed: rank 1 \\(host .*has ended "
              "without a goodbye");
}

TEST(Init, WhatComesBehindFinalizeHasTime) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(2,
                           [port](int rank) {
                             Options options = RankOf(rank, 2, port);
                             options.loss_limit = std::chrono::milliseconds(1000);
                             JoinWith(options);
                             if (rank == 1) ::raise(SIGKILL);
                             Finalize();
                             std::this_thread::sleep_for(std::chrono::milliseconds(1500));
                             return 0;
                           },
                           {1}));
}

TEST(Init, NcclIsOpenedAtOnceOrSaysWhatIsMissing) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(2, [port](int rank) {
    Options options = RankOf(rank, 2, port);
    options.transport = Transport::kNccl;
    const absl::Status status = Init(options);
    // Where there is no GPU, no build for one, or one GPU for both.
    EXPECT_EQ(status.ok(), IsInitialized());
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()),
                  ::testing::AnyOf(HasSubstr("device \"cuda\""), HasSubstr("transport \"nccl\"")));
    }
    Finalize();
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
