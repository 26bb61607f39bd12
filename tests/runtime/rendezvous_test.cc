#include "runtime/distributed/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/distributed/store_message.h"
#include "runtime/version.h"
#include "tests/runtime/group_options.h"
#include "tests/runtime/on_threads.h"
#include "tests/runtime/processes.h"

namespace mpc::runtime {
namespace {

using test::ExpectSays;
using test::FreePort;
using test::OnThreads;
using test::OptionsOf;
using test::RunProcesses;

constexpr Milliseconds kShort{200};

/// The statuses with which threads join, each a rank with its options.
std::vector<absl::Status> JoinAll(const std::vector<JoinOptions>& options) {
  std::vector<absl::Status> statuses(options.size());
  OnThreads(static_cast<int>(options.size()), [&](int thread) {
    const auto group = ProcessGroup::Join(options[static_cast<std::size_t>(thread)]);
    statuses[static_cast<std::size_t>(thread)] = group.status();
    if (group.ok()) (*group)->Leave();
  });
  return statuses;
}

std::vector<JoinOptions> Ranks(int size) {
  const int port = FreePort();
  std::vector<JoinOptions> options;
  for (int rank = 0; rank < size; ++rank) options.push_back(OptionsOf(rank, size, port));
  return options;
}

/// A group on threads of this process: calls body with each rank's group.
void InGroup(int size, const std::function<void(ProcessGroup&)>& body) {
  const std::vector<JoinOptions> options = Ranks(size);
  OnThreads(size, [&](int rank) {
    const auto group = ProcessGroup::Join(options[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(group.ok()) << group.status();
    body(**group);
    (*group)->Leave();
  });
}

TEST(Rendezvous, RanksMeetInAnyOrder) {
  std::mt19937 draw(7);
  for (const int size : {1, 2, 4, 8}) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<JoinOptions> options = Ranks(size);
      std::shuffle(options.begin(), options.end(), draw);
      std::vector<std::uint64_t> nonces(options.size());
      OnThreads(size, [&](int thread) {
        std::this_thread::sleep_for(Milliseconds(10 * thread));
        const JoinOptions& mine = options[static_cast<std::size_t>(thread)];
        const auto group = ProcessGroup::Join(mine);
        ASSERT_TRUE(group.ok()) << group.status();
        EXPECT_EQ((*group)->rank(), mine.environment.rank);
        ASSERT_EQ((*group)->size(), size);
        for (int rank = 0; rank < size; ++rank) EXPECT_EQ((*group)->ranks()[static_cast<std::size_t>(rank)].rank, rank);
        nonces[static_cast<std::size_t>(thread)] = (*group)->job_nonce();
        (*group)->Leave();
      });
      for (const std::uint64_t nonce : nonces) EXPECT_EQ(nonce, nonces[0]);
    }
  }
}

TEST(Rendezvous, ProcessesMeet) {
  for (const int size : {2, 4, 8}) {
    const int port = FreePort();
    EXPECT_TRUE(RunProcesses(size, [&](int rank) {
      std::mt19937 draw(static_cast<unsigned>(100 * size + rank));
      std::this_thread::sleep_for(Milliseconds(draw() % 50));
      const auto group = ProcessGroup::Join(OptionsOf(rank, size, port));
      EXPECT_TRUE(group.ok()) << group.status();
      if (!group.ok()) return 1;
      for (const RankInfo& info : (*group)->ranks()) EXPECT_EQ(info.pid == ::getpid(), info.rank == rank);
      const auto all = (*group)->ExchangeBytes("pid", std::to_string(::getpid()));
      EXPECT_TRUE(all.ok()) << all.status();
      for (int other = 0; all.ok() && other < size; ++other) {
        const auto at = static_cast<std::size_t>(other);
        EXPECT_EQ((*all)[at], std::to_string((*group)->ranks()[at].pid));
      }
      EXPECT_TRUE((*group)->Barrier("end").ok());
      (*group)->Leave();
      return 0;
    }));
  }
}

TEST(Rendezvous, TellsEveryRankOfTheOthers) {
  std::vector<JoinOptions> options = Ranks(3);
  options[0].host = options[2].host = "a";
  options[1].host = "b";
  options[1].processors = {2, 5};
  options[1].quota = 1500;
  OnThreads(3, [&](int rank) {
    const auto group = ProcessGroup::Join(options[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(group.ok()) << group.status();
    const std::vector<RankInfo>& ranks = (*group)->ranks();
    EXPECT_EQ(ranks[1].host, "b");
    EXPECT_EQ(ranks[1].processors, std::vector<int>({2, 5}));
    EXPECT_EQ(ranks[1].quota, 1500);
    EXPECT_EQ(ranks[1].version, MPC_VERSION);
    EXPECT_EQ(ranks[0].local_rank, 0);
    EXPECT_EQ(ranks[1].local_rank, 0);
    EXPECT_EQ(ranks[2].local_rank, 1);
    EXPECT_EQ(ranks[1].local_size, 1);
    EXPECT_EQ(ranks[2].local_size, 2);
    (*group)->Leave();
  });
}

TEST(Rendezvous, ExchangesBytesAsOftenAsAsked) {
  InGroup(4, [](ProcessGroup& group) {
    for (int round = 0; round < 10; ++round) {
      const std::string mine(static_cast<std::size_t>(group.rank() * 1000), static_cast<char>('a' + round));
      const auto all = group.ExchangeBytes("key", mine);
      ASSERT_TRUE(all.ok()) << all.status();
      for (std::size_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ((*all)[rank], std::string(rank * 1000, static_cast<char>('a' + round)));
      }
      ASSERT_TRUE(group.Barrier("b").ok());
    }
    EXPECT_TRUE(absl::IsInvalidArgument(group.ExchangeBytes(std::string(201, 'k'), "").status()));
    EXPECT_TRUE(absl::IsInvalidArgument(group.Barrier("")));
  });
}

TEST(Rendezvous, ComparesHashesAndNamesRanksAndEntry) {
  InGroup(4, [](ProcessGroup& group) {
    const NamedHashes equal = {{"options", "1234"}, {"program", "abcd"}};
    EXPECT_TRUE(group.CompareHashes("first", equal).ok());
    NamedHashes mine = equal;
    if (group.rank() % 2 == 1) mine["program"] = "ffff";
    ExpectSays(group.CompareHashes("second", mine), absl::StatusCode::kInvalidArgument,
               {"ranks differ in \"program\": ranks 0 and 2 have abcd, ranks 1 and 3 have ffff"});
    mine = equal;
    if (group.rank() == 3) mine.clear();
    ExpectSays(group.CompareHashes("third", mine), absl::StatusCode::kInvalidArgument,
               {"ranks differ in \"options\": ranks 0, 1 and 2 have 1234, rank 3 has none; 1 more differ"});
  });
}

TEST(Rendezvous, ComparesWithTheFirstWithoutWaitingForTheOthers) {
  std::vector<absl::Status> statuses(3);
  InGroup(3, [&](ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    const auto before = [&](const char* who) { ASSERT_TRUE(group.Barrier(who).ok()); };
    // Rank 2 comes first, rank 0 then, and rank 1 never.
    if (rank != 2) before("rank 2");
    if (rank != 1) {
      EXPECT_EQ(group.BytesOfFirst("rates", rank == 2 ? "first" : "second").value_or("none"), "first");
      statuses[rank] = group.CompareWithFirst("program", {{"choice", "a"}, {"program", rank == 2 ? "ffff" : "abcd"}});
    }
    if (rank == 2) before("rank 2");
    ASSERT_TRUE(group.Barrier("all").ok());
  });
  EXPECT_TRUE(statuses[2].ok()) << statuses[2];
  ExpectSays(statuses[0], absl::StatusCode::kInvalidArgument,
             {"ranks differ in \"program\": rank 0 has abcd, rank 2 has ffff"});
}

TEST(Rendezvous, AnotherNumberOfRanksIsAnErrorForAll) {
  std::vector<JoinOptions> options = Ranks(3);
  options[2].environment.size = 4;
  for (const absl::Status& status : JoinAll(options)) {
    ExpectSays(status, absl::StatusCode::kInvalidArgument,
               {"rank 0 (host ", "was told of 3 ranks and rank 2 (host ", " of 4: all ranks must"});
  }
}

TEST(Rendezvous, AnotherVersionIsAnErrorForAll) {
  std::vector<JoinOptions> options = Ranks(2);
  options[1].version = "0.0.1";
  for (const absl::Status& status : JoinAll(options)) {
    ExpectSays(status, absl::StatusCode::kInvalidArgument,
               {"rank 0 (host ", std::string("has mpc ") + MPC_VERSION, "rank 1 (host ", "has mpc 0.0.1"});
  }
}

TEST(Rendezvous, AnotherHashIsAnErrorForAll) {
  std::vector<JoinOptions> options = Ranks(4);
  for (JoinOptions& mine : options) mine.hashes = {{"data set", "aa"}};
  options[2].hashes["data set"] = "bb";
  for (const absl::Status& status : JoinAll(options)) {
    ExpectSays(status, absl::StatusCode::kInvalidArgument,
               {"ranks differ in \"data set\": rank 0 has aa, rank 2 has bb"});
  }
}

TEST(Rendezvous, ARankThatIsLateHearsTheErrorToo) {
  std::vector<JoinOptions> options = Ranks(3);
  options[1].version = "0.0.1";
  OnThreads(3, [&](int rank) {
    if (rank == 2) std::this_thread::sleep_for(kShort);
    ExpectSays(ProcessGroup::Join(options[static_cast<std::size_t>(rank)]).status(), absl::StatusCode::kInvalidArgument,
               {"rank 1 (host ", "has mpc 0.0.1"});
  });
}

TEST(Rendezvous, ARankThatComesTwiceIsAnErrorForAll) {
  std::vector<JoinOptions> options = Ranks(3);
  options[2].environment.rank = 1;
  options[1].host = "first";
  options[2].host = "second";
  for (const absl::Status& status : JoinAll(options)) {
    ExpectSays(status, absl::StatusCode::kAlreadyExists,
               {"a rank comes twice", "rank 1 (host first, process ", "rank 1 (host second, process "});
  }
}

TEST(Rendezvous, ARankThatComesTwiceLaterDisturbsNobody) {
  const int port = FreePort();
  std::vector<JoinOptions> options = {OptionsOf(0, 2, port), OptionsOf(1, 2, port)};
  OnThreads(2, [&](int rank) {
    const auto group = ProcessGroup::Join(options[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(group.ok()) << group.status();
    ASSERT_TRUE((*group)->Watch({.interval = Milliseconds(20), .limit = kShort}).ok());
    if (rank == 1) {
      ExpectSays(ProcessGroup::Join(options[1]).status(), absl::StatusCode::kAlreadyExists, {"rank 1 (host "});
    }
    EXPECT_TRUE((*group)->Barrier("after").ok());
    EXPECT_TRUE((*group)->failure().ok()) << (*group)->failure();
    (*group)->Leave();
  });
}

TEST(Rendezvous, ALateRankIsWaitedFor) {
  const std::vector<JoinOptions> options = Ranks(2);
  OnThreads(2, [&](int thread) {
    if (thread == 0) std::this_thread::sleep_for(kShort);  // rank 0, whose store is not there yet
    const auto group = ProcessGroup::Join(options[static_cast<std::size_t>(thread)]);
    EXPECT_TRUE(group.ok()) << group.status();
    if (group.ok()) (*group)->Leave();
  });
}

TEST(Rendezvous, TakesAnyTimeLimitHoweverLong) {
  for (const Milliseconds limit : {2 * kLongestWait, Milliseconds::max()}) {
    std::vector<JoinOptions> options = Ranks(2);
    for (JoinOptions& mine : options) mine.time_limit = limit;
    for (const absl::Status& status : JoinAll(options)) EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(Rendezvous, RanksThatDoNotComeAreNamed) {
  std::vector<JoinOptions> options = Ranks(4);
  options.resize(2);
  for (JoinOptions& mine : options) mine.time_limit = mine.leave_limit = kShort;
  for (const absl::Status& status : JoinAll(options)) {
    ExpectSays(status, absl::StatusCode::kDeadlineExceeded, {"ranks 2 and 3 have not come within 0.2 s"});
  }
}

TEST(Rendezvous, ARankThatDiesWhileOthersJoinIsNamed) {
  const int port = FreePort();
  EXPECT_TRUE(RunProcesses(
      3,
      [&](int rank) {
        if (rank == 2) return 0;  // never comes
        JoinOptions options = OptionsOf(rank, 3, port);
        options.leave_limit = kShort;
        if (rank == 1) {
          std::thread killer([] {
            std::this_thread::sleep_for(2 * kShort);
            ::kill(::getpid(), SIGKILL);
          });
          killer.detach();
        }
        const auto group = ProcessGroup::Join(options);
        ExpectSays(group.status(), absl::StatusCode::kUnavailable, {"rank 1 (host ", "has ended while"});
        return 0;
      },
      {1}, std::chrono::seconds(10)));
}

TEST(Rendezvous, APortInUseIsAnErrorOfRank0) {
  std::vector<JoinOptions> options = Ranks(2);
  const auto taken = Listen("127.0.0.1", options[0].environment.port);
  ASSERT_TRUE(taken.ok()) << taken.status();
  ExpectSays(ProcessGroup::Join(options[0]).status(), absl::StatusCode::kFailedPrecondition,
             {"127.0.0.1:" + std::to_string(options[0].environment.port), "in use", "MASTER_PORT"});
}

TEST(Rendezvous, OptionsThatCannotBeAreRefused) {
  ExpectSays(ProcessGroup::Join(OptionsOf(2, 2, 1234)).status(), absl::StatusCode::kInvalidArgument, {"rank 2 of 2"});
  ExpectSays(ProcessGroup::Join(OptionsOf(1, 2, 0)).status(), absl::StatusCode::kInvalidArgument,
             {"port 0 for 2 ranks"});
  JoinOptions remote = OptionsOf(0, 2, 1234);
  remote.environment.local_size = 1;
  ExpectSays(ProcessGroup::Join(remote).status(), absl::StatusCode::kInvalidArgument,
             {"MASTER_ADDR is \"127.0.0.1\"", "1 ranks are on other machines", "listen_address"});
}

TEST(Rendezvous, AClientOfGarbageDisturbsNobody) {
  std::vector<JoinOptions> options = Ranks(2);
  OnThreads(2, [&](int rank) {
    if (rank == 1) {
      const Signal never;
      absl::StatusOr<Descriptor> socket;
      do {
        socket = ConnectOnce("127.0.0.1", options[0].environment.port, Deadline(test::kTestLimit), never);
      } while (!socket.ok());
      EXPECT_GT(::send(socket->get(), "garbage and more of it", 22, MSG_NOSIGNAL), 0);
      std::this_thread::sleep_for(Milliseconds(20));
    }
    const auto group = ProcessGroup::Join(options[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(group.ok()) << group.status();
    if (rank == 0) {
      EXPECT_EQ((*group)->server()->malformed(), 1);
    }
    (*group)->Leave();
  });
}

TEST(Rendezvous, ABarrierNamesWhoHasNotCome) {
  std::vector<JoinOptions> options = Ranks(3);
  for (JoinOptions& mine : options) mine.time_limit = kShort;
  OnThreads(3, [&](int rank) {
    JoinOptions mine = options[static_cast<std::size_t>(rank)];
    const auto group = ProcessGroup::Join(mine);
    ASSERT_TRUE(group.ok()) << group.status();
    if (rank == 1) {
      std::this_thread::sleep_for(3 * kShort);
    } else {
      ExpectSays((*group)->Barrier("b"), absl::StatusCode::kDeadlineExceeded,
                 {"the barrier \"b\": rank 1 has not come within 0.2 s"});
      ExpectSays((*group)->ExchangeBytes("e", "").status(), absl::StatusCode::kDeadlineExceeded,
                 {"the exchange of \"e\": rank 1 has not come within 0.2 s"});
    }
    (*group)->Leave();
  });
}

}  // namespace
}  // namespace mpc::runtime
