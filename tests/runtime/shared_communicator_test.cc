// The transport "shared" over processes that are forked: bits, errors by name, and what is left behind.
#include "runtime/distributed/shared_communicator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/distributed/process_identity.h"
#include "tests/runtime/collective_checks.h"
#include "tests/runtime/processes.h"

namespace mpc::distributed {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kSlot = 8192;

std::string NewName() {
  static int count = 0;
  return absl::StrCat("mpc-test-", ::getpid(), "-", ++count);
}

SharedGroup Group(const std::string& name, int rank, int size) {
  return {.name = name, .rank = rank, .size = size, .timeout = milliseconds(20000), .slot_bytes = kSlot};
}

/// Joins, or ends the process: what follows needs a group.
std::unique_ptr<Communicator> Join(const SharedGroup& group) {
  absl::StatusOr<std::unique_ptr<Communicator>> joined = CreateSharedCommunicator(group);
  EXPECT_TRUE(joined.ok()) << joined.status();
  if (!joined.ok()) ::_exit(3);
  return *std::move(joined);
}

bool ObjectExists(const std::string& name) {
  const int object = ::shm_open(absl::StrCat("/", name).c_str(), O_RDONLY, 0);
  if (object >= 0) ::close(object);
  return object >= 0;
}

/// Creates an object of `bytes` zeros. Its name goes when this does.
class ForeignObject {
 public:
  ForeignObject(const std::string& name, std::size_t bytes, mode_t mode) : name_(absl::StrCat("/", name)) {
    const int object = ::shm_open(name_.c_str(), O_CREAT | O_EXCL | O_RDWR, mode);
    EXPECT_GE(object, 0);
    EXPECT_EQ(::fchmod(object, mode), 0);
    EXPECT_EQ(::ftruncate(object, static_cast<off_t>(bytes)), 0);
    ::close(object);
  }
  ~ForeignObject() { ::shm_unlink(name_.c_str()); }
  ForeignObject(const ForeignObject&) = delete;
  ForeignObject& operator=(const ForeignObject&) = delete;

  void Write(std::uint64_t word) const {
    const int object = ::shm_open(name_.c_str(), O_RDWR, 0);
    EXPECT_EQ(::pwrite(object, &word, sizeof(word), 0), static_cast<ssize_t>(sizeof(word)));
    ::close(object);
  }
  off_t bytes() const {
    struct stat found {};
    const int object = ::shm_open(name_.c_str(), O_RDONLY, 0);
    EXPECT_EQ(::fstat(object, &found), 0);
    ::close(object);
    return found.st_size;
  }

 private:
  std::string name_;
};

absl::Status ReduceFloats(Communicator& group, std::size_t elements) {
  std::vector<float> values(elements, 1.0f);
  return group.AllReduce({{values.data(), values.data(), elements}});
}

class SharedCommunicator : public testing::TestWithParam<int> {};

TEST_P(SharedCommunicator, HasTheBitsOfAPlainTree) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(GetParam(), [&](int rank) {
    const std::unique_ptr<Communicator> group = Join(Group(name, rank, GetParam()));
    EXPECT_EQ(group->transport(), "shared");
    EXPECT_EQ(group->rank(), rank);
    EXPECT_EQ(group->size(), GetParam());
    EXPECT_FALSE(ObjectExists(name)) << "all ranks have joined";
    test::CheckCollectives(*group, kSlot);
    return 0;
  }));
  EXPECT_FALSE(ObjectExists(name));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedCommunicator, testing::Values(1, 2, 4, 8));

TEST(SharedGroup, CopiesOverAnyNumberOfRanksAndAddsOverPowersOfTwo) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(3, [&](int rank) {
    const std::unique_ptr<Communicator> group = Join(Group(name, rank, 3));
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, 2 * kSlot + 1}) test::CheckCopies(*group, 4, bytes);
    EXPECT_EQ(ReduceFloats(*group, 3),
              absl::InvalidArgumentError("all-reduce is over a power of two of ranks: there are 3"));
    EXPECT_EQ(group->Barrier().code(), absl::StatusCode::kInvalidArgument) << "errors stay";
    return 0;
  }));
}

TEST(SharedGroup, KeepsItsBitsOverManyShortCalls) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(4, [&](int rank) {
    const std::unique_ptr<Communicator> group = Join(Group(name, rank, 4));
    for (unsigned call = 0; call < 100; ++call) test::CheckAllReduceBits(*group, call, {1 + call % 5, call % 3 * 1700});
    return 0;
  }));
}

TEST(SharedGroup, NamesBothOfTwoDifferentCalls) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(4, [&](int rank) {
    const std::unique_ptr<Communicator> group = Join(Group(name, rank, 4));
    EXPECT_TRUE(group->Barrier().ok());
    std::array<std::int64_t, 2> values{};
    absl::Status status;
    if (rank == 2) {
      status = group->Broadcast(values.data(), 8, 1);
    } else {
      status = group->AllReduce({{values.data(), values.data(), 1, DType::kI32, Reduction::kMax}});
    }
    EXPECT_EQ(status,
              absl::InvalidArgumentError("ranks differ in their call 2: rank 0 calls all-reduce of 1 i32 (max), "
                                         "and rank 2 calls broadcast of 8 bytes from rank 1"));
    EXPECT_EQ(group->Barrier(), status) << "errors stay";
    return 0;
  }));
}

TEST(SharedGroup, SeesSizesAndTypesThatDiffer) {
  const std::vector<ReducedPart> other = {
      {nullptr, nullptr, 101, DType::kF32}, {nullptr, nullptr, 100, DType::kF16}, {nullptr, nullptr, 100, DType::kI32}};
  for (const ReducedPart& second : other) {
    const std::string name = NewName();
    EXPECT_TRUE(test::RunProcesses(2, [&](int rank) {
      const std::unique_ptr<Communicator> group = Join(Group(name, rank, 2));
      std::vector<float> values(101);
      ReducedPart part{values.data(), values.data(), 100};
      if (rank == 1) part = {values.data(), values.data(), second.elements, second.dtype};
      const absl::Status status = group->AllReduce({part});
      EXPECT_EQ(status, absl::InvalidArgumentError(absl::StrCat(
                            "ranks differ in their call 1: rank 0 calls all-reduce of 100 f32 (sum), and rank 1 calls "
                            "all-reduce of ",
                            second.elements, " ", std::string(DTypeName(second.dtype)), " (sum)")));
      return 0;
    }));
  }
}

TEST(SharedGroup, TellsTheOthersWhyARankFails) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(2, [&](int rank) {
    const std::unique_ptr<Communicator> group = Join(Group(name, rank, 2));
    float value = 1.0f;
    const absl::Status status = group->AllReduce({{rank == 0 ? &value : nullptr, &value, 1}});
    if (rank == 1) {
      EXPECT_EQ(status, absl::InvalidArgumentError("all-reduce: part 0 has no input"));
    } else {
      EXPECT_EQ(status, absl::UnavailableError("rank 1 has failed (all-reduce: part 0 has no input): rank 0 waited for "
                                               "it in all-reduce, its call 1"));
    }
    return 0;
  }));
}

TEST(SharedGroup, SeesWithinASecondThatARankWasKilled) {
  for (const bool at_once : {true, false}) {
    const std::string name = NewName();
    EXPECT_TRUE(test::RunProcesses(
        4,
        [&](int rank) {
          const std::unique_ptr<Communicator> group = Join(Group(name, rank, 4));
          if (rank == 2 && !at_once) {
            // Another process kills this one in the middle of its calls.
            const pid_t self = ::getpid();
            if (::fork() == 0) {
              ::usleep(30000);
              ::kill(self, SIGKILL);
              ::_exit(0);
            }
          }
          steady_clock::time_point begin = steady_clock::now();
          absl::Status status;
          for (int call = 0; status.ok(); ++call) {
            if (rank == 2 && at_once && call == 3) ::kill(::getpid(), SIGKILL);
            begin = steady_clock::now();
            status = ReduceFloats(*group, 100000);
          }
          EXPECT_LT(steady_clock::now() - begin, milliseconds(2000));
          EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
          const std::string message(status.message());
          EXPECT_EQ(
              message.rfind(absl::StrCat("rank 2 has died: rank ", rank, " waited for it in all-reduce, its call "), 0),
              0u)
              << message;
          EXPECT_EQ(group->Barrier(), status) << "errors stay";
          return 0;
        },
        {2}));
    EXPECT_FALSE(ObjectExists(name));
  }
}

TEST(SharedGroup, SeesThatARankHasLeft) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(2, [&](int rank) {
    std::unique_ptr<Communicator> group = Join(Group(name, rank, 2));
    EXPECT_TRUE(ReduceFloats(*group, 20000).ok()) << "a rank that has left has finished its calls";
    if (rank == 1) {
      group.reset();
      return 0;
    }
    EXPECT_EQ(group->Barrier(),
              absl::UnavailableError("rank 1 has left the group: rank 0 waited for it in barrier, its call 2"));
    return 0;
  }));
}

TEST(SharedGroup, LooksForLossWithoutWaiting) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(2, [&](int rank) {
    SharedGroup options = Group(name, rank, 2);
    std::string asked;
    options.on_wait = [&](std::string_view what) {
      asked = std::string(what);
      return absl::OkStatus();
    };
    std::unique_ptr<Communicator> group = Join(options);
    EXPECT_EQ(group->time_limit(), options.timeout);
    if (rank == 1) {
      EXPECT_TRUE(group->Barrier().ok());
      return 0;
    }
    EXPECT_TRUE(group->LookForLoss().ok()) << "it waits in a barrier";
    EXPECT_EQ(asked, "a step on a GPU");
    EXPECT_TRUE(group->Barrier().ok());
    while (group->LookForLoss().ok()) std::this_thread::yield();
    EXPECT_EQ(group->LookForLoss(), absl::UnavailableError("rank 1 has left the group"));
    EXPECT_TRUE(group->status().ok()) << "looking is no call";
    return 0;
  }));
}

TEST(SharedGroup, AsksItsHookWhileItWaitsAndEndsWithItsError) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(2, [&](int rank) {
    SharedGroup options = Group(name, rank, 2);
    std::vector<std::string> asked;
    options.on_wait = [&](std::string_view what) {
      if (what == "joining the group") return absl::OkStatus();
      asked.emplace_back(what);
      return asked.size() < 3 ? absl::OkStatus() : absl::UnavailableError("rank 1 is lost elsewhere");
    };
    const std::unique_ptr<Communicator> group = Join(options);
    if (rank == 1) {
      // It is there and does not come: nothing else would end the wait of rank 0 before the limit.
      std::this_thread::sleep_for(milliseconds(1500));
      return 0;
    }
    const absl::Status status = group->Barrier();
    EXPECT_EQ(status, absl::UnavailableError("rank 1 is lost elsewhere"));
    EXPECT_EQ(group->Barrier(), status) << "errors stay";
    EXPECT_EQ(asked, std::vector<std::string>(3, "barrier, its call 1"));
    return 0;
  }));
}

TEST(SharedGroup, AsksItsHookWhileRankZeroHasCreatedNothing) {
  SharedGroup options = Group(NewName(), 1, 2);
  std::vector<std::string> asked;
  options.on_wait = [&](std::string_view what) {
    asked.emplace_back(what);
    return asked.size() < 2 ? absl::OkStatus() : absl::UnavailableError("rank 0 is lost elsewhere");
  };
  EXPECT_EQ(CreateSharedCommunicator(options).status(), absl::UnavailableError("rank 0 is lost elsewhere"));
  EXPECT_EQ(asked, std::vector<std::string>(2, "joining the group"));
}

TEST(SharedGroup, WaitsNoLongerThanItsLimit) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(4, [&](int rank) {
    SharedGroup options = Group(name, rank, 4);
    options.timeout = milliseconds(rank == 0 ? 1000 : 20000);
    const std::unique_ptr<Communicator> group = Join(options);
    EXPECT_TRUE(group->Barrier().ok());
    if (rank == 1 || rank == 3) std::this_thread::sleep_for(milliseconds(3000));
    const steady_clock::time_point begin = steady_clock::now();
    const absl::Status status = ReduceFloats(*group, 10);
    if (rank == 0) {
      EXPECT_EQ(status,
                absl::DeadlineExceededError(
                    "rank 0 has waited 1000 ms in all-reduce, its call 2, for rank 1 (last in barrier, its call "
                    "1), rank 3 (last in barrier, its call 1)"));
      EXPECT_LT(steady_clock::now() - begin, milliseconds(2500));
    } else {
      // Rank 0 came to this call, so that the call succeeds. Its failure shows in the next one.
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(group->Barrier().code(), absl::StatusCode::kUnavailable);
    }
    return 0;
  }));
}

TEST(SharedGroup, NamesRanksThatDoNotJoin) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(2, [&](int rank) {
    SharedGroup options = Group(name, rank, 4);
    options.timeout = milliseconds(rank == 0 ? 1000 : 20000);
    const absl::Status status = CreateSharedCommunicator(options).status();
    if (rank == 0) {
      EXPECT_EQ(status, absl::DeadlineExceededError(
                            absl::StrCat("rank 0 has waited 1000 ms for ranks to join '", name, "': missing: 2, 3")));
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    }
    return 0;
  }));
  EXPECT_FALSE(ObjectExists(name));
}

TEST(SharedGroup, LeavesNothingWhereRankZeroIsKilledBeforeAllHaveJoined) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(2,
                                 [&](int rank) {
                                   if (rank == 0) {
                                     std::thread([&] {
                                       std::this_thread::sleep_for(milliseconds(400));
                                       ::kill(::getpid(), SIGKILL);
                                     }).detach();
                                   }
                                   const absl::Status status = CreateSharedCommunicator(Group(name, rank, 3)).status();
                                   EXPECT_EQ(status,
                                             absl::UnavailableError(absl::StrCat(
                                                 "rank 0 has died: rank 1 waited for all ranks to join '", name, "'")));
                                   return 0;
                                 },
                                 {0}));
  EXPECT_FALSE(ObjectExists(name));
}

TEST(SharedGroup, WaitsForRankZeroNoLongerThanItsLimit) {
  const std::string name = NewName();
  SharedGroup options = Group(name, 1, 2);
  options.timeout = milliseconds(50);
  EXPECT_EQ(CreateSharedCommunicator(options).status(),
            absl::DeadlineExceededError(absl::StrCat(
                "rank 1 has waited 50 ms for rank 0, which has not created the shared mapping '", name, "'")));
}

TEST(SharedGroup, TwoProcessesCannotHaveOneRank) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(3, [&](int process) {
    SharedGroup options = Group(name, process == 0 ? 0 : 1, 3);
    options.timeout = milliseconds(2000);
    if (process == 2) std::this_thread::sleep_for(milliseconds(300));
    const absl::Status status = CreateSharedCommunicator(options).status();
    if (process == 2) {
      EXPECT_EQ(status, absl::AlreadyExistsError(
                            absl::StrCat("rank 1 of the shared mapping '", name, "' is taken by another process")));
    } else {
      EXPECT_FALSE(status.ok());
    }
    return 0;
  }));
}

TEST(SharedGroup, RefusesAMappingThatIsThereAlready) {
  const std::string name = NewName();
  const ForeignObject object(name, 4096, 0600);
  EXPECT_EQ(CreateSharedCommunicator(Group(name, 0, 2)).status(),
            absl::AlreadyExistsError(absl::StrCat("the shared mapping '", name,
                                                  "' exists: another group has this name, or a run left it that was "
                                                  "killed before its ranks had met")));
  EXPECT_TRUE(ObjectExists(name)) << "it is another's";
  const absl::Status status = CreateSharedCommunicator(Group(name, 1, 2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("has 4096 bytes, and one of 2 ranks with slots of 8192 bytes has "),
            absl::string_view::npos)
      << status;
}

TEST(SharedGroup, RefusesAMappingThatOtherUsersMayOpen) {
  const std::string name = NewName();
  const ForeignObject object(name, 4096, 0644);
  EXPECT_EQ(
      CreateSharedCommunicator(Group(name, 1, 2)).status(),
      absl::FailedPreconditionError(absl::StrCat("the shared mapping '", name, "' may be opened by other users")));
}

TEST(SharedGroup, RefusesAMappingThatIsNoneOfMpc) {
  const std::string name = NewName();
  constexpr std::size_t kPage = 4096;
  const ForeignObject object(name, kPage + std::size_t{2} * 3 * kSlot, 0600);
  object.Write(0x123456789abcdefu);
  EXPECT_EQ(CreateSharedCommunicator(Group(name, 1, 2)).status(),
            absl::FailedPreconditionError(absl::StrCat("the shared mapping '", name, "' is none of mpc's")));
}

TEST(SharedGroup, RefusesOtherOptions) {
  const std::string name = NewName();
  EXPECT_TRUE(test::RunProcesses(2, [&](int rank) {
    SharedGroup options = Group(name, rank, 2);
    options.timeout = milliseconds(2000);
    if (rank == 1) options.slot_bytes = 2 * kSlot;
    const absl::Status status = CreateSharedCommunicator(options).status();
    EXPECT_EQ(status.code(), rank == 1 ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kDeadlineExceeded)
        << status;
    return 0;
  }));
  EXPECT_FALSE(ObjectExists(name));
}

TEST(SharedGroup, RefusesOptionsOutOfRange) {
  const auto refusal = [](SharedGroup group) {
    const absl::Status status = CreateSharedCommunicator(group).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(Group("a/b", 0, 1)),
            "'a/b' is no name of a shared mapping: it is a file name without a folder, of at most 200 characters");
  EXPECT_NE(refusal(Group("", 0, 1)), "");
  EXPECT_EQ(refusal(Group("a", 2, 2)), "rank 2 is none of 2");
  EXPECT_EQ(refusal(Group("a", 0, 0)), "a shared group has 1 to 1024 ranks: this one has 0");
  SharedGroup group = Group("a", 0, 2);
  group.slot_bytes = 100;
  EXPECT_EQ(refusal(group),
            "a slot has a multiple of 64 bytes, at least 64 a rank and at most 1073741824: 100 bytes for 2 ranks");
}

TEST(SharedGroup, ReservesItsMemory) {
  const std::string name = NewName();
  SharedGroup group = Group(name, 0, 1024);
  group.slot_bytes = std::size_t{1} << 30;
  struct statvfs system {};
  const bool limited = ::statvfs("/dev/shm", &system) == 0 && system.f_blocks > 0 &&
                       system.f_blocks < 3 * 1024 * group.slot_bytes / system.f_frsize;
  if (!limited) GTEST_SKIP() << "shared memory has no limit";
  const absl::Status status = CreateSharedCommunicator(group).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_FALSE(ObjectExists(name));
}

TEST(ProcessIdentity, KnowsWhoHasEnded) {
  const ProcessIdentity self = ThisProcess();
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_TRUE(MayRun(self, self));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ProcessIdentity other = self;
  other.pid = child;
  other.start = 0;
  EXPECT_TRUE(MayRun(other, self));
  other.start = self.start + 1000000;
  EXPECT_FALSE(MayRun(other, self)) << "its id was another's before";
  other.start = 0;
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(MayRun(other, self)) << "it has ended, and nobody has waited for it";
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(MayRun(other, self));
  other.namespace_id += 1;
  EXPECT_TRUE(MayRun(other, self)) << "this process cannot see it";
}

}  // namespace
}  // namespace mpc::distributed
