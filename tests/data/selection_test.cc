// Take, Skip, Filter, Split, Zip, Concat.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/share.h"
#include "tests/data/number_rows.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

bool IsEven(const Tensor& x) { return x.Item<int>() % 2 == 0; }

TEST(Take, GivesTheFirstRows) {
  for (const Dataset& source : {NumberDataset(5), GeneratedNumbers(5)}) {
    EXPECT_THAT(NumbersOf(source.Take(3)), ElementsAre(0, 1, 2));
    EXPECT_EQ(*source.Take(3).size(), 3);
    EXPECT_THAT(NumbersOf(source.Take(9)), SizeIs(5));
    EXPECT_EQ(*source.Take(9).size(), 5);
    EXPECT_THAT(NumbersOf(source.Take()), SizeIs(5));
    EXPECT_THAT(MessageOf(source.Take(0)), HasSubstr("count of Take must be at least 1, got 0"));
  }
}

/// The whole numbers from 0 on, without an end; `reads` counts them over all epochs.
Dataset EndlessNumbers(std::int64_t* reads, const SamplingOptions& sampling = {}) {
  return GeneratorDataset(
      [reads]() -> Generator {
        return [reads, i = 0]() mutable -> std::optional<Row> {
          ++*reads;
          return Row{Tensor::Scalar<std::int32_t>(i++)};
        };
      },
      {"x"}, sampling);
}

TEST(Take, CountsAnEndlessSourceByTheRowsItGives) {
  std::int64_t reads = 0;
  const Dataset taken = EndlessNumbers(&reads).Take(8);
  EXPECT_EQ(*taken.size(), 8);
  EXPECT_EQ(*taken.Batch(4).size(), 2);
  EXPECT_EQ(*taken.Skip(3).size(), 5);
  EXPECT_EQ(reads, 8) << "counted once";
  EXPECT_EQ(*EndlessNumbers(&reads).Skip(3).Take(4).size(), 4);
  EXPECT_EQ(reads, 15);
  EXPECT_EQ(*EndlessNumbers(&reads).Batch(2).Take(3).size(), 3);
  EXPECT_EQ(reads, 21);
  EXPECT_EQ(*EndlessNumbers(&reads, {.num_samples = 5}).size(), 5);
  EXPECT_EQ(reads, 26);
  EXPECT_EQ(*EndlessNumbers(&reads).Take(2).Repeat(3).size(), 6);
  EXPECT_EQ(reads, 32);
  EXPECT_THAT(NumbersOf(taken), SizeIs(8));
}

TEST(Take, OfASkipBehindTheEndIsAnError) {
  EXPECT_EQ(GeneratedNumbers(5).Skip(7).Take(2).size().status().message(), "Skip(7) leaves no row: the data set has 5");
}

TEST(Take, OfAShuffleIsAnotherPartInEachEpoch) {
  const Dataset dataset = NumberDataset(50).Shuffle(1);
  const std::vector<int> whole = NumbersOf(dataset, 1);
  EXPECT_EQ(NumbersOf(dataset.Take(10), 1), std::vector<int>(whole.begin(), whole.begin() + 10));
  EXPECT_NE(NumbersOf(dataset.Take(10), 0), NumbersOf(dataset.Take(10), 1));
}

TEST(Skip, GivesTheRowsBehind) {
  for (const Dataset& source : {NumberDataset(5), GeneratedNumbers(5)}) {
    EXPECT_THAT(NumbersOf(source.Skip(3)), ElementsAre(3, 4));
    EXPECT_THAT(NumbersOf(source.Skip(1).Take(2).Skip(1)), ElementsAre(2));
    EXPECT_EQ(*source.Skip(3).size(), 2);
    EXPECT_THAT(NumbersOf(source.Skip(0)), SizeIs(5));
    EXPECT_EQ(MessageOf(source.Skip(5)), "Skip(5) leaves no row: the data set has 5");
    EXPECT_EQ(MessageOf(source.Skip(7)), "Skip(7) leaves no row: the data set has 5");
    EXPECT_THAT(MessageOf(source.Skip(-1)), HasSubstr("at least 0, got -1"));
  }
}

TEST(Skip, KeepsRandomAccess) {
  const std::vector<int> shuffled = NumbersOf(NumberDataset(20).Skip(5).Take(10).Shuffle(3), 2);
  EXPECT_EQ(shuffled, NumbersOf(GeneratedNumbers(20).Skip(5).Take(10).Shuffle(3), 2));
}

TEST(Filter, KeepsRowsOfItsColumns) {
  for (const Dataset& source : {NumberDataset(6, {"x", "y"}), GeneratedNumbers(6, {"x", "y"})}) {
    const Dataset even = source.Filter(IsEven, "x");
    EXPECT_THAT(NumbersOf(even), ElementsAre(0, 2, 4));
    EXPECT_EQ(*even.size(), 3);
    EXPECT_EQ(*even.Batch(2).size(), 2);
    const auto large = [](const Row& row) { return row[0].Item<int>() + row[1].Item<int>() > 7; };
    EXPECT_THAT(NumbersOf(source.Filter(large)), ElementsAre(4, 5));
    const auto odd_epochs = [](const Row&, const RowPosition& at) { return (at.epoch + at.row) % 2 == 0; };
    EXPECT_THAT(NumbersOf(source.Filter(odd_epochs), 1), ElementsAre(1, 3, 5));
  }
}

TEST(Filter, RepetitionsOfSeveralSizesAreAllCounted) {
  // Epoch 0 has one row, epoch 1 has two, and so on.
  const auto up_to_epoch = [](const Row&, const RowPosition& at) { return at.row <= at.epoch; };
  const Dataset rising = NumberDataset(9).Filter(up_to_epoch);
  for (const Dataset& counted : {rising.Repeat(3), rising.Repeat(3).Prefetch(2)}) {
    EXPECT_EQ(*counted.size(), 1 + 2 + 3);
    EXPECT_THAT(NumbersOf(counted), ElementsAre(0, 0, 1, 0, 1, 2));
    EXPECT_EQ(*counted.Batch(2).size(), 3);
  }
  EXPECT_EQ(*rising.size(), 1);
  EXPECT_EQ(*rising.Repeat(3).size(), 6) << "also where epoch 0 has been counted";
  EXPECT_EQ(*rising.Repeat(2).Repeat(2).size(), 1 + 2 + 3 + 4);
  // What epoch 0 has says nothing of others.
  EXPECT_THAT(NumbersOf(rising.Skip(2), 3), ElementsAre(2, 3));
}

TEST(Filter, BadArgumentsAndErrorsOfThePredicateAreNamed) {
  EXPECT_THAT(MessageOf(NumberDataset(3).Filter(IsEven, "y")), HasSubstr("Filter: no column 'y'; columns are x"));
  EXPECT_THAT(MessageOf(NumberDataset(3, {"x", "y"}).Filter(IsEven)), HasSubstr("there are 2 input columns"));
  EXPECT_EQ(MessageOf(NumberDataset(3).Filter([](const Tensor&) { return false; })),
            "Filter leaves none of the 3 rows of the epoch");
  const auto fail = [](const Tensor& x) -> absl::StatusOr<bool> {
    if (x.Item<int>() == 2) return absl::DataLossError("gone");
    return true;
  };
  EXPECT_EQ(MessageOf(NumberDataset(4).Filter(fail)), "column 'x', row 2: gone");
  const auto leave = [](const Tensor&) -> bool { throw std::runtime_error("left"); };
  auto iterator = *NumberDataset(4).Filter(leave).NewIterator(0);
  Row row;
  EXPECT_THROW((void)iterator->Next(&row), MapException);
  EXPECT_FALSE(*iterator->Next(&row));
}

TEST(Split, GivesDisjointPartsThatNoEpochChanges) {
  const std::vector<Dataset> parts = NumberDataset(10).Split({0.8, 0.2}, 3);
  ASSERT_THAT(parts, SizeIs(2));
  std::vector<int> all = NumbersOf(parts[0]);
  EXPECT_THAT(all, SizeIs(8));
  EXPECT_EQ(NumbersOf(parts[0], 5), all);
  for (int x : NumbersOf(parts[1])) all.push_back(x);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, NumbersOf(NumberDataset(10)));
  EXPECT_NE(NumbersOf(parts[0]), NumbersOf(NumberDataset(10).Split({0.8, 0.2}, 4)[0]));
  std::vector<int> shuffled = NumbersOf(parts[0].Shuffle(1));
  std::vector<int> plain = NumbersOf(parts[0]);
  std::sort(shuffled.begin(), shuffled.end());
  std::sort(plain.begin(), plain.end());
  EXPECT_EQ(shuffled, plain);
}

TEST(Split, WithoutASeedKeepsTheOrder) {
  const std::vector<Dataset> parts = NumberDataset(5).Split({2, 3}, std::nullopt);
  EXPECT_THAT(NumbersOf(parts[0]), ElementsAre(0, 1));
  EXPECT_THAT(NumbersOf(parts[1]), ElementsAre(2, 3, 4));
}

TEST(Split, RoundsAsMindSpore) {
  const auto sizes = [](int rows, const std::vector<double>& fractions) {
    std::vector<std::int64_t> counts;
    for (const Dataset& part : NumberDataset(rows).Split(fractions, 1)) counts.push_back(*part.size());
    return counts;
  };
  // 10 / 3 rounds to 3 each: the first part takes the row that is missing.
  EXPECT_THAT(sizes(10, {1.0 / 3, 1.0 / 3, 1.0 / 3}), ElementsAre(4, 3, 3));
  // 1.5 and 1.5 round to 2 and 2 of 3 rows: the first part gives one up.
  EXPECT_THAT(sizes(3, {0.5, 0.5}), ElementsAre(1, 2));
  EXPECT_THAT(sizes(4, {1}), ElementsAre(4));
  // 4.5 rounds to 5, ten times: no part can give up five rows, so five give up one.
  EXPECT_THAT(sizes(45, std::vector<double>(10, 0.1)), ElementsAre(4, 4, 4, 4, 4, 5, 5, 5, 5, 5));
}

/// Expects that the parts of `rows` rows hold each row once, or that none can be made.
void ExpectPartsOrError(int rows, const std::vector<double>& sizes) {
  SCOPED_TRACE(absl::StrCat(rows, " rows into ", absl::StrJoin(sizes, ", ")));
  std::vector<int> all;
  for (const Dataset& part : NumberDataset(rows).Split(sizes, 1)) {
    if (!part.status().ok()) {
      EXPECT_THAT(MessageOf(part), HasSubstr("a part would have no rows"));
      const double smallest = *std::min_element(sizes.begin(), sizes.end());
      EXPECT_TRUE(rows < static_cast<int>(sizes.size()) || smallest * rows < 0.5) << "each part could have a row";
      return;
    }
    for (int x : NumbersOf(part)) all.push_back(x);
  }
  std::sort(all.begin(), all.end());
  std::vector<int> expected(static_cast<std::size_t>(rows));
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(Split, DealsEachRowOnceOrSaysThatAPartHasNone) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> drawn(0.01, 1);
  for (int rows = 1; rows <= 200; ++rows) {
    for (std::size_t parts = 1; parts <= 20; ++parts) {
      ExpectPartsOrError(rows, std::vector<double>(parts, 1.0 / static_cast<double>(parts)));
      std::vector<double> fractions(parts);
      for (double& fraction : fractions) fraction = drawn(random);
      const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
      for (double& fraction : fractions) fraction /= sum;
      ExpectPartsOrError(rows, fractions);
    }
  }
  EXPECT_THAT(MessageOf(NumberDataset(1).Split({0.5, 0.5}, 1)[1]),
              HasSubstr("Split of 1 rows into {0.5, 0.5}: a part would have no rows"));
}

TEST(Split, BadSizesAreErrorsOfEachPart) {
  const char* accepted = "the sizes must be fractions that sum to 1, or numbers of rows that sum to all";
  for (const auto& sizes : {std::vector<double>{0.5, 0.4}, std::vector<double>{3, 3}, std::vector<double>()}) {
    const std::vector<Dataset> parts = NumberDataset(5).Split(sizes, 1);
    ASSERT_THAT(parts, SizeIs(std::max<std::size_t>(sizes.size(), 1)));
    for (const Dataset& part : parts) EXPECT_THAT(MessageOf(part), HasSubstr(accepted));
  }
  EXPECT_THAT(MessageOf(NumberDataset(5).Split({1.5, -0.5}, 1)[0]),
              HasSubstr("Split of 5 rows into {1.5, -0.5}: each size must be above 0"));
  EXPECT_THAT(MessageOf(NumberDataset(5).Split({0.99, 0.01}, 1)[1]), HasSubstr("a part would have no rows"));
  EXPECT_THAT(MessageOf(NumberDataset(5).Shuffle(1).Split({0.6, 0.4}, 1)[0]), HasSubstr("Split needs random access"));
}

TEST(Zip, PutsColumnsSideBySideUpToTheShortest) {
  const Dataset zipped = NumberDataset(5, {"a"}).Zip({GeneratedNumbers(3, {"b"}), NumberDataset(9, {"c"}).Skip(1)});
  EXPECT_THAT(zipped.column_names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(*zipped.size(), 3);
  EXPECT_THAT(NumbersOf(zipped, 0, 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(NumbersOf(zipped, 0, 2), ElementsAre(1, 2, 3));
  EXPECT_THAT(MessageOf(NumberDataset(5).Zip({NumberDataset(5)})), HasSubstr("Zip: two columns are called 'x'"));
  EXPECT_THAT(MessageOf(NumberDataset(5).Zip({})), HasSubstr("Zip needs another data set"));
  EXPECT_THAT(MessageOf(NumberDataset(5).Zip({NumberDataset(0, {"y"})})), HasSubstr("no rows"));
}

TEST(Zip, ReadsAnEndlessSourceUpToTheShortest) {
  std::int64_t reads = 0;
  const Dataset known = NumberDataset(5, {"a"}).Zip({EndlessNumbers(&reads)});
  EXPECT_EQ(*known.size(), 5);
  EXPECT_EQ(*known.size(), 5);
  EXPECT_EQ(reads, 5);
  const Dataset generated = GeneratedNumbers(3, {"a"}).Zip({EndlessNumbers(&reads)});
  EXPECT_EQ(*generated.size(), 3);
  EXPECT_EQ(reads, 8);
  EXPECT_EQ(*GeneratedNumbers(3, {"a"}).Zip({NumberDataset(9, {"b"})}).size(), 3);
}

TEST(Zip, IsShuffledAsOne) {
  const Dataset zipped = NumberDataset(20, {"a"}).Zip({NumberDataset(20, {"b"})}).Shuffle(4);
  EXPECT_EQ(NumbersOf(zipped, 1, 0), NumbersOf(zipped, 1, 1));
  EXPECT_EQ(NumbersOf(zipped, 1, 0), NumbersOf(NumberDataset(20).Shuffle(4), 1));
}

TEST(Concat, GivesOneAfterTheOther) {
  for (const Dataset& second : {NumberDataset(2), GeneratedNumbers(2)}) {
    const Dataset both = NumberDataset(3).Concat({second});
    EXPECT_EQ(*both.size(), 5);
    EXPECT_THAT(NumbersOf(both), ElementsAre(0, 1, 2, 0, 1));
    EXPECT_EQ(NumbersOf(both.Shuffle(1)), NumbersOf(NumberDataset(3).Concat({GeneratedNumbers(2)}).Shuffle(1)));
  }
  EXPECT_EQ(MessageOf(NumberDataset(3).Concat({NumberDataset(3, {"y"})})),
            "Concat: a data set has the columns y, but the first one has x");
}

TEST(Concat, EndsWithTheFirstError) {
  const auto fail = [](const Tensor&) -> absl::StatusOr<Tensor> { return absl::DataLossError("gone"); };
  EXPECT_EQ(MessageOf(NumberDataset(3).Concat({NumberDataset(2).Map(fail, "x"), NumberDataset(3)})),
            "column 'x', row 0: gone");
}

TEST(Concat, MoreRowsThan64BitsCountAreAnError) {
  const auto row = [](std::int64_t) { return Row{Tensor::Scalar<std::int32_t>(1)}; };
  const Dataset quarter = GeneratorDataset(row, std::int64_t{1} << 62, {"x"});
  const absl::Status status = quarter.Concat({quarter, quarter, quarter}).size().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(), "Concat: the rows of its data sets are more than 64 bits count");
}

TEST(Shuffle, OfMoreRowsThanMemoryHoldsIsAnError) {
  const auto row = [](std::int64_t) { return Row{Tensor::Scalar<std::int32_t>(1)}; };
  const Dataset dataset = GeneratorDataset(row, std::int64_t{1} << 62, {"x"}).Shuffle(1);
  EXPECT_EQ(MessageOf(dataset), "Shuffle: the order of 4611686018427387904 rows needs more memory than there is");
  EXPECT_EQ(dataset.NewIterator(0).status().code(), absl::StatusCode::kResourceExhausted);
  const auto share = dataset.Batch(4).NewShareIterator(0, {.micro_batches = 2, .rank = 1, .ranks = 2});
  EXPECT_EQ(share.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace mpc::data
