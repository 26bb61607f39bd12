#include "runtime/distributed/rank_processors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mpc::runtime {
namespace {

RankInfo Rank(std::vector<int> processors, int quota = 0, const std::string& host = "a") {
  RankInfo info;
  info.host = host;
  info.processors = std::move(processors);
  info.quota = quota;
  return info;
}

TEST(ThreadsOfEachRank, SharesProcessorsThatSeveralRanksMayUse) {
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3})}), 4);
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(ThreadsOfEachRank({Rank(all), Rank(all)}), 4);
  EXPECT_EQ(ThreadsOfEachRank({Rank({0}), Rank({0}), Rank({0})}), 1);
}

TEST(ThreadsOfEachRank, LeavesBoundRanksTheirOwnProcessors) {
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3}), Rank({4, 5, 6, 7})}), 4);
  // Equal numbers are of other processors on another machine.
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2}), Rank({0, 1, 2}, 0, "b")}), 3);
}

TEST(ThreadsOfEachRank, TakesTheRankThatHasTheLeast) {
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3}), Rank({0, 1}, 0, "b")}), 2);
}

TEST(ThreadsOfEachRank, KeepsToTheQuotaOfAHost) {
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3, 4, 5, 6, 7}, 2500)}), 2);
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1, 2, 3}, 4000), Rank({4, 5, 6, 7}, 4000)}), 2);
  EXPECT_EQ(ThreadsOfEachRank({Rank({0, 1}, 500)}), 1);
}

TEST(ThreadsOfEachRank, TakesTheSystemsNumberWhereNoProcessorsAreKnown) { EXPECT_GE(ThreadsOfEachRank({Rank({})}), 1); }

TEST(RanksShareProcessors, WhereThereAreFewerThanRanks) {
  EXPECT_FALSE(RanksShareProcessors({Rank({0, 1}), Rank({0, 1})}));
  EXPECT_TRUE(RanksShareProcessors({Rank({0, 1}), Rank({0, 1}), Rank({0, 1})}));
  // Bound to one each, and to the same one.
  EXPECT_FALSE(RanksShareProcessors({Rank({0}), Rank({1})}));
  EXPECT_TRUE(RanksShareProcessors({Rank({0}), Rank({0})}));
  EXPECT_FALSE(RanksShareProcessors({Rank({0}), Rank({0}, 0, "b")}));
  EXPECT_TRUE(RanksShareProcessors({Rank({})}));
}

TEST(SharesProcessors, WhereAnotherRankOfTheMachineMayRunOnOne) {
  EXPECT_FALSE(SharesProcessors({Rank({0, 1})}, 0)) << "with itself";
  EXPECT_TRUE(SharesProcessors({Rank({0, 1}), Rank({1, 2})}, 0));
  EXPECT_FALSE(SharesProcessors({Rank({0, 1}), Rank({2, 3}), Rank({3})}, 0));
  EXPECT_FALSE(SharesProcessors({Rank({0}), Rank({0}, 0, "b")}, 1));
}

}  // namespace
}  // namespace mpc::runtime
