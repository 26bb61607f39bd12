#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "frontend/data/share.h"
#include "tests/data/number_rows.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<int> Sampled(const Sampler& sampler, std::int64_t epoch = 0, int rows = 10) {
  return NumbersOf(NumberDataset(rows).Sample({.sampler = sampler}), epoch);
}

TEST(Samplers, GiveTheRowsTheyAreNamedFor) {
  EXPECT_THAT(Sampled(SequentialSampler(7)), ElementsAre(7, 8, 9));
  EXPECT_THAT(Sampled(SequentialSampler(2, 3)), ElementsAre(2, 3, 4));
  EXPECT_THAT(Sampled(SubsetSampler({4, 1, 4})), ElementsAre(4, 1, 4));
  const std::vector<int> random = Sampled(RandomSampler(3));
  EXPECT_EQ(std::set<int>(random.begin(), random.end()).size(), 10u);
  EXPECT_NE(random, Sampled(RandomSampler(3), 1));
  EXPECT_EQ(random, Sampled(RandomSampler(3)));
  EXPECT_THAT(Sampled(RandomSampler(3, /*replacement=*/true, 50)), SizeIs(50));
  std::vector<int> subset = Sampled(SubsetRandomSampler({5, 6, 7}, 1), 4);
  std::sort(subset.begin(), subset.end());
  EXPECT_THAT(subset, ElementsAre(5, 6, 7));
}

TEST(Samplers, WeighRows) {
  const std::vector<int> drawn = Sampled(WeightedRandomSampler({0, 1, 3, 0}, 1, 4000), 0, 4);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 0), 0);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 3), 0);
  // 3000 expected of 4000 draws, deviation sqrt(4000 * 3 / 16) = 27: five deviations.
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 2)), 3000, 137);
  std::vector<int> once = Sampled(WeightedRandomSampler({0, 1, 3, 2}, 1, 3, /*replacement=*/false), 0, 4);
  std::sort(once.begin(), once.end());
  EXPECT_THAT(once, ElementsAre(1, 2, 3));
}

TEST(Samplers, ShardsHoldEveryRow) {
  const auto shard = [](std::int64_t id, std::optional<std::uint64_t> seed) {
    return Sampled(DistributedSampler(3, id, seed), 1);
  };
  EXPECT_THAT(shard(0, std::nullopt), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(shard(1, std::nullopt), ElementsAre(1, 4, 7, 0));
  EXPECT_THAT(shard(2, std::nullopt), ElementsAre(2, 5, 8, 1));
  std::set<int> all;
  for (std::int64_t id = 0; id < 3; ++id) {
    for (int x : shard(id, 7)) all.insert(x);
  }
  EXPECT_EQ(all.size(), 10u);
}

TEST(Sampling, ChoosesSamplesAndShards) {
  const Dataset source = NumberDataset(10);
  EXPECT_THAT(NumbersOf(source.Sample({.num_samples = 2})), ElementsAre(0, 1));
  EXPECT_THAT(NumbersOf(source.Sample({.num_samples = 99})), SizeIs(10));
  const Dataset shard = source.Sample({.num_samples = 2, .num_shards = 3, .shard_id = 1});
  EXPECT_THAT(NumbersOf(shard), ElementsAre(1, 4));
  EXPECT_EQ(*shard.size(), 2);
  EXPECT_THAT(NumbersOf(source.Sample({})), SizeIs(10));
  EXPECT_EQ(*source.Sample({.sampler = RandomSampler(1, true, 33)}).Batch(4).size(), 9);
  EXPECT_THAT(NumbersOf(GeneratedNumbers(10).Sample({.num_samples = 2})), ElementsAre(0, 1));
}

TEST(Sampling, BadNumbersAreErrors) {
  const auto message = [](const SamplingOptions& options) { return MessageOf(NumberDataset(10).Sample(options)); };
  EXPECT_THAT(message({.num_samples = -1}), HasSubstr("num_samples is -1; accepted is 0 and above"));
  EXPECT_THAT(message({.num_shards = 3}), HasSubstr("must be given together"));
  EXPECT_THAT(message({.num_shards = 0, .shard_id = 0}), HasSubstr("num_shards is 0; accepted is 1 and above"));
  EXPECT_THAT(message({.num_shards = 3, .shard_id = 3}), HasSubstr("shard_id is 3; accepted is 0 to 2"));
  EXPECT_THAT(message({.num_samples = 1, .sampler = RandomSampler(1)}), HasSubstr("a sampler excludes num_samples"));
  EXPECT_THAT(message({.sampler = SubsetSampler({1, 10})}), HasSubstr("draws row 10; the source has rows 0 to 9"));
  EXPECT_THAT(message({.sampler = SubsetSampler({})}), HasSubstr("the sampler draws no row"));
  EXPECT_THAT(message({.sampler = SequentialSampler(10)}), HasSubstr("start_index is 10; accepted is 0 to 9"));
  EXPECT_THAT(message({.sampler = RandomSampler(1, false, 11)}), HasSubstr("is 11; accepted is at most 10"));
  EXPECT_THAT(message({.sampler = WeightedRandomSampler({1, 2}, 1)}), HasSubstr("has 2 weights for 10 rows"));
  EXPECT_THAT(message({.sampler = WeightedRandomSampler(std::vector<double>(10, 0.0), 1)}),
              HasSubstr("the weights sum to 0"));
  EXPECT_THAT(MessageOf(GeneratedNumbers(3).Sample({.num_shards = 2, .shard_id = 0})),
              HasSubstr("needs a source with random access"));
  EXPECT_THAT(MessageOf(GeneratedNumbers(3).Sample({.num_samples = -1})), HasSubstr("num_samples is -1"));
}

TEST(Sampling, DrawsThatNoMemoryHoldsAreErrors) {
  constexpr std::int64_t kMany = std::int64_t{1} << 61;
  const auto error = [](const std::string& whose, std::int64_t rows) {
    return absl::ResourceExhaustedError(
        absl::StrCat(whose, ": the order of ", rows, " rows needs more memory than there is"));
  };
  for (const std::int64_t many : {kMany, std::int64_t{1} << 40, INT64_MAX}) {
    EXPECT_EQ(RandomSampler(1, /*replacement=*/true, many).Indices(10, 0).status(), error("RandomSampler", many));
    EXPECT_EQ(WeightedRandomSampler({1, 2}, 1, many).Indices(2, 0).status(), error("WeightedRandomSampler", many));
    // Of so many rows.
    EXPECT_EQ(RandomSampler(1).Indices(many, 0).status(), error("RandomSampler", many));
    EXPECT_EQ(SequentialSampler(1).Indices(many, 0).status(), error("SequentialSampler", many - 1));
    EXPECT_EQ(DistributedSampler(2, 1, 7).Indices(many, 0).status(), error("DistributedSampler", many));
    EXPECT_EQ(DistributedSampler(2, 1, std::nullopt, 3).Indices(many, 0).value(), (std::vector<std::int64_t>{1, 3, 5}));
  }
  const Dataset endless =
      GeneratorDataset([](std::int64_t) { return Row{Tensor::Scalar<std::int32_t>(1)}; }, kMany, {"x"});
  EXPECT_EQ(endless.Take(kMany / 2).NewIterator(0).status(), error("Take or Skip", kMany / 2));
  EXPECT_EQ(endless.Split({0.5, 0.5}, 1)[1].NewIterator(0).status(), error("Split", kMany));
  EXPECT_EQ(MessageOf(endless.Sample({.sampler = RandomSampler(1)})), error("RandomSampler", kMany).message());
}

TEST(Sampling, ASamplerDrawsOneNumberOfRowsInEachEpoch) {
  const Sampler sampler([](std::int64_t, std::int64_t epoch) -> absl::StatusOr<std::vector<std::int64_t>> {
    return std::vector<std::int64_t>(epoch == 1 ? 2 : 16, 1);
  });
  const Dataset dataset = NumberDataset(20).Sample({.sampler = sampler}).Batch(4);
  EXPECT_EQ(*dataset.size(), 4);
  const std::string expected = "the sampler draws 2 rows in epoch 1, but 16 in epoch 0; accepted is one number";
  EXPECT_EQ(dataset.NewIterator(1).status(), absl::InvalidArgumentError(expected));
  const ShareOfUpdates share{.micro_batches = 2, .rank = 1, .ranks = 2};
  EXPECT_EQ(dataset.NewShareIterator(1, share).status(), absl::InvalidArgumentError(expected));
  EXPECT_TRUE(dataset.NewShareIterator(2, share).ok());
}

}  // namespace
}  // namespace mpc::data
