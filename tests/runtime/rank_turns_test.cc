// Ranks that are threads of one process: the bits of other transports, one order of all they do, and errors.
#include "runtime/distributed/rank_turns.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/runtime/collective_checks.h"

namespace mpc::distributed {
namespace {

using ::testing::ElementsAre;
using TurnsGroup = std::shared_ptr<Communicator>;

TEST(RankTurns, HaveTheBitsOfThePlainTree) {
  for (const int size : {1, 2, 4, 8}) {
    const absl::Status status = RunInTurns(size, [](int, const TurnsGroup& group) {
      test::CheckCollectives(*group, 512);
      return group->status();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(RankTurns, RunOneAfterTheOtherUpToEachCall) {
  std::vector<std::string> seen;
  const absl::Status status = RunInTurns(3, [&](int rank, const TurnsGroup& group) {
    for (const char* phase : {"a", "b"}) {
      seen.push_back(phase + std::to_string(rank));
      if (absl::Status met = group->Barrier(); !met.ok()) return met;
    }
    seen.push_back("c" + std::to_string(rank));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(seen, ElementsAre("a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2"));
}

TEST(RankTurns, ARankThatFailsEndsTheOthersAndItsErrorIsGiven) {
  std::vector<absl::Status> others;
  const absl::Status status = RunInTurns(3, [&](int rank, const TurnsGroup& group) {
    if (rank == 1) return absl::DataLossError("its own");
    others.push_back(group->Barrier());
    EXPECT_EQ(group->Barrier(), others.back()) << "errors stay";
    return others.back();
  });
  EXPECT_EQ(status, absl::DataLossError("its own"));
  const absl::Status ended = absl::UnavailableError("rank 1 has ended: rank 0 waited for it in barrier, its call 1");
  EXPECT_THAT(others, ElementsAre(ended, ended));
}

TEST(RankTurns, DifferentCallsAreAnErrorThatNamesBoth) {
  const absl::Status status = RunInTurns(2, [](int rank, const TurnsGroup& group) {
    float number = 1;
    return rank == 0 ? group->Barrier() : group->Broadcast(&number, sizeof(number), 0);
  });
  EXPECT_EQ(status, absl::InvalidArgumentError("ranks differ in their call 1: rank 0 calls barrier, and rank 1 calls "
                                               "broadcast of 4 bytes from rank 0"));
}

TEST(RankTurns, ARankThatNeverCallsLeavesOthersToTheirError) {
  const absl::Status status =
      RunInTurns(2, [](int rank, const TurnsGroup& group) { return rank == 0 ? absl::OkStatus() : group->Barrier(); });
  EXPECT_EQ(status, absl::UnavailableError("rank 0 has ended: rank 1 waited for it in barrier, its call 1"));
}

}  // namespace
}  // namespace mpc::distributed
