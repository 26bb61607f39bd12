#include "frontend/data/skipped_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "tests/data/number_rows.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Tensor> RefuseOdd(const Tensor& x) {
  if (x.Item<int>() % 2 == 1) return absl::InvalidArgumentError(absl::StrCat(x.Item<int>(), " is odd"));
  return x;
}

absl::StatusOr<Tensor> RefuseAll(const Tensor&) { return absl::InvalidArgumentError("no"); }

TEST(SkippedRows, AreLeftOutAndCountedWithAnyNumberOfWorkers) {
  for (const std::int64_t workers : {0, 1, 4}) {
    const auto skipped = std::make_shared<SkippedRows>();
    const Dataset even =
        NumberDataset(7).Map(RefuseOdd, "x", {.num_parallel_workers = workers, .skipped_rows = skipped});
    EXPECT_THAT(NumbersOf(even), ElementsAre(0, 2, 4, 6));
    EXPECT_EQ(skipped->count(), 3) << workers << " workers";
    EXPECT_THAT(skipped->errors(),
                ::testing::UnorderedElementsAre("column 'x', row 1: 1 is odd", "column 'x', row 3: 3 is odd",
                                                "column 'x', row 5: 5 is odd"));
  }
}

TEST(SkippedRows, CountOverEpochsAndKeepTheFirstErrors) {
  const auto skipped = std::make_shared<SkippedRows>();
  const Dataset even = NumberDataset(40).Map(RefuseOdd, "x", {.skipped_rows = skipped});
  EXPECT_EQ(*even.size(), 20);
  EXPECT_EQ(skipped->count(), 20);
  EXPECT_EQ(NumbersOf(even, 1).size(), 20u);
  EXPECT_EQ(skipped->count(), 40);
  EXPECT_EQ(skipped->errors().size(), SkippedRows::kMostErrors);
}

TEST(SkippedRows, AreGoneForTheStagesBehind) {
  const auto skipped = std::make_shared<SkippedRows>();
  const Dataset even = NumberDataset(8).Map(RefuseOdd, "x", {.skipped_rows = skipped});
  EXPECT_THAT(NumbersOf(even.Take(3)), ElementsAre(0, 2, 4));
  EXPECT_THAT(NumbersOf(even.Skip(1)), ElementsAre(2, 4, 6));
  EXPECT_THAT(NumbersOf(even.Shuffle(1)), ::testing::UnorderedElementsAre(0, 2, 4, 6));
  EXPECT_EQ(*even.Batch(2, /*drop_remainder=*/true).size(), 2);
}

TEST(SkippedRows, OtherErrorsEndTheEpoch) {
  const auto skipped = std::make_shared<SkippedRows>();
  EXPECT_EQ(MessageOf(NumberDataset(3).Map(RefuseAll, "x", {.skipped_rows = skipped})),
            "Map: its operations fail on each row of the epoch");
  const auto two_results = [](const Row& row) { return Row{row[0], row[0]}; };
  EXPECT_THAT(MessageOf(NumberDataset(3).Map(two_results, {"x"}, {.skipped_rows = skipped})),
              HasSubstr("the map returned 2 tensors"));
  const auto throws = [](const Tensor&) -> Tensor { throw std::runtime_error("thrown"); };
  const Dataset throwing = NumberDataset(3).Map(throws, "x", {.skipped_rows = skipped});
  Row row;
  EXPECT_THROW((void)(*throwing.NewIterator(0))->Next(&row), MapException);
}

}  // namespace
}  // namespace mpc::data
