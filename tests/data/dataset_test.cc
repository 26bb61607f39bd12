#include "frontend/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "frontend/data/permutation.h"
#include "frontend/data/uniform_draw.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Rows (i, 10 i), i from 0 to `count` - 1: "data" f32 [2] and "label" i32 [].
std::vector<Row> Rows(int count) {
  std::vector<Row> rows;
  for (int i = 0; i < count; ++i) {
    const float value = static_cast<float>(i);
    rows.push_back({Tensor::From<float>({value, -value}, {2}), Tensor::Scalar<std::int32_t>(10 * i)});
  }
  return rows;
}

Dataset Numbers(int count) { return GeneratorDataset(Rows(count), {"data", "label"}); }

/// The rows of Numbers in columns of other names.
Dataset Others(int count) { return GeneratorDataset(Rows(count), {"features", "target"}); }

Dataset Generated(int count) {
  return GeneratorDataset(
      [count]() -> Generator {
        return [count, i = 0]() mutable -> std::optional<Row> {
          if (i == count) return std::nullopt;
          return Rows(count)[static_cast<std::size_t>(i++)];
        };
      },
      {"data", "label"});
}

/// First label of every row of an epoch, each divided by 10.
std::vector<int> Labels(const Dataset& dataset, std::int64_t epoch) {
  std::vector<int> labels;
  auto iterator = dataset.NewIterator(epoch);
  EXPECT_TRUE(iterator.ok()) << iterator.status();
  if (!iterator.ok()) return labels;
  for (Row row;;) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&row);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return labels;
    for (std::int32_t label : row[1].data<std::int32_t>()) labels.push_back(label / 10);
  }
}

/// The error that an epoch ends with.
absl::Status EpochError(const Dataset& dataset) {
  auto iterator = dataset.NewIterator(0);
  if (!iterator.ok()) return iterator.status();
  for (Row row;;) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&row);
    if (!more.ok()) {
      EXPECT_FALSE(*(*iterator)->Next(&row)) << "an error ends the epoch";
      return more.status();
    }
    if (!*more) return absl::OkStatus();
  }
}

TEST(GeneratorDataset, GivesItsRowsInOrderEveryEpoch) {
  for (const Dataset& dataset : {Numbers(4), Generated(4)}) {
    EXPECT_THAT(Labels(dataset, 0), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(Labels(dataset, 7), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(*dataset.size(), 4);
    EXPECT_THAT(dataset.column_names(), ElementsAre("data", "label"));
  }
}

TEST(GeneratorDataset, TakesAnythingWithSizeAndIndex) {
  struct Squares {
    std::size_t size() const { return 3; }
    Row operator[](std::size_t i) const {
      return {Tensor::Scalar(0.0f), Tensor::Scalar<std::int32_t>(static_cast<std::int32_t>(10 * i * i))};
    }
  };
  EXPECT_THAT(Labels(GeneratorDataset(Squares(), {"data", "label"}), 0), ElementsAre(0, 1, 4));
}

TEST(GeneratorDataset, TakesAFunctionOfTheIndexOfARow) {
  const auto square = [](std::int64_t i) {
    return Row{Tensor::Scalar(0.0f), Tensor::Scalar(static_cast<std::int32_t>(10 * i * i))};
  };
  EXPECT_THAT(Labels(GeneratorDataset(square, 4, {"data", "label"}), 0), ElementsAre(0, 1, 4, 9));
  EXPECT_THAT(Labels(GeneratorDataset(square, 4, {"data", "label"}, {.num_shards = 2, .shard_id = 1}), 0),
              ElementsAre(1, 9));
  const auto fail = [](std::int64_t i) -> absl::StatusOr<Row> { return absl::DataLossError(std::to_string(i)); };
  EXPECT_EQ(EpochError(GeneratorDataset(fail, 2, {"data", "label"})).message(), "0");
  EXPECT_THAT(std::string(GeneratorDataset(square, 0, {"data", "label"}).status().message()), HasSubstr("no rows"));
  const std::function<absl::StatusOr<Row>(std::int64_t)> none;
  EXPECT_THAT(std::string(GeneratorDataset(none, 2, {"data"}).status().message()), HasSubstr("needs a source"));
}

TEST(GeneratorDataset, GivesTheRowsThatItsSamplingChooses) {
  EXPECT_THAT(Labels(GeneratorDataset(Rows(5), {"data", "label"}, {.sampler = SubsetSampler({3, 1})}), 0),
              ElementsAre(3, 1));
  struct Source {
    std::vector<Row> rows = Rows(5);
    std::size_t size() const { return rows.size(); }
    Row operator[](std::size_t i) const { return rows[i]; }
  };
  EXPECT_THAT(Labels(GeneratorDataset(Source(), {"data", "label"}, {.num_samples = 2}), 0), ElementsAre(0, 1));
}

TEST(Dataset, KeepsClassNamesThroughStages) {
  const Dataset named = Numbers(8).WithClassNames({"ant", "bee"});
  EXPECT_THAT(Numbers(8).class_names(), ElementsAre());
  const auto same = [](const Tensor& x) { return x; };
  const Dataset other = Others(8);
  for (const Dataset& dataset :
       {named, named.Map(same, "data").Shuffle(1).Batch(2).Prefetch(), named.Split({0.5, 0.5}, 1)[1],
        named.Take(3).Skip(1).Repeat(2), named.Concat({Numbers(2)}), named.Sample({.num_samples = 2}),
        Numbers(2).Concat({Numbers(2), named}), named.Zip({other}), other.Zip({named})}) {
    EXPECT_THAT(dataset.class_names(), ElementsAre("ant", "bee"));
  }
  EXPECT_THAT(named.WithClassNames({"cow"}).class_names(), ElementsAre("cow"));
  EXPECT_THAT(named.class_names(), ElementsAre("ant", "bee"));
}

TEST(Dataset, ZipRefusesOtherClassNames) {
  const Dataset all = Numbers(8).WithClassNames({"ant", "bee", "cow"});
  const Dataset some = Others(8).WithClassNames({"ant", "cow"});
  EXPECT_EQ(all.Zip({some}).status().message(),
            "Zip: a data set has the classes ant, cow, but the first one has ant, bee, cow: labels would mean other "
            "classes");
  EXPECT_TRUE(all.Zip({some.WithClassNames({"ant", "bee", "cow"})}).status().ok());
}

TEST(Dataset, ConcatRefusesOtherClassNames) {
  const Dataset all = Numbers(8).WithClassNames({"ant", "bee", "cow"});
  const Dataset some = Numbers(8).WithClassNames({"ant", "cow"});
  EXPECT_EQ(some.Concat({all}).status().message(),
            "Concat: a data set has the classes ant, bee, cow, but the first one has ant, cow: labels would mean other "
            "classes");
  EXPECT_EQ(Numbers(2).Concat({some, Numbers(2), all}).status().message(),
            "Concat: a data set has the classes ant, bee, cow, but one before it has ant, cow: labels would mean other "
            "classes");
  EXPECT_TRUE(all.Concat({all, Numbers(2)}).status().ok()) << "one without names says nothing";
  EXPECT_TRUE(some.WithClassNames({"ant", "bee", "cow"}).Concat({all}).status().ok());
}

TEST(GeneratorDataset, BadSourcesAreErrors) {
  EXPECT_THAT(std::string(Numbers(0).status().message()), HasSubstr("no rows"));
  EXPECT_THAT(std::string(EpochError(Generated(0)).message()), HasSubstr("before its first row"));
  EXPECT_THAT(std::string(GeneratorDataset(Rows(1), {"a", "a"}).status().message()), HasSubstr("called 'a'"));
  EXPECT_FALSE(GeneratorDataset(Rows(1), {}).status().ok());
  EXPECT_THAT(std::string(EpochError(GeneratorDataset(Rows(1), {"a"})).message()),
              HasSubstr("row 0 of the source has 2 tensors, but there are 1 columns"));
  std::vector<Row> rows = Rows(2);
  rows[1][0] = Tensor::Zeros({-1});
  EXPECT_THAT(std::string(EpochError(GeneratorDataset(rows, {"data", "label"})).message()),
              HasSubstr("column 'data', row 1 of the source: the tensor shape"));
  rows[1][0] = Tensor();
  EXPECT_THAT(std::string(EpochError(GeneratorDataset(rows, {"data", "label"})).message()), HasSubstr("is empty"));
}

TEST(Map, ChangesOneColumn) {
  const auto half = [](const Tensor& tensor) { return tensor.To(DType::kF16); };
  for (const Dataset& source : {Numbers(3), Generated(3)}) {
    const Dataset mapped = source.Map(half, "data");
    auto iterator = *mapped.NewIterator(0);
    Row row;
    ASSERT_TRUE(*iterator->Next(&row));
    EXPECT_EQ(row[0].dtype(), DType::kF16);
    EXPECT_EQ(row[1].dtype(), DType::kI32);
    EXPECT_EQ(*mapped.size(), 3);
  }
}

TEST(Map, ErrorsNameColumnAndRow) {
  EXPECT_THAT(std::string(Numbers(3).Map([](const Tensor& t) { return t; }, "image").status().message()),
              HasSubstr("no column 'image'; columns are data, label"));
  const auto fail_on_two = [](const Tensor& tensor) -> absl::StatusOr<Tensor> {
    if (tensor.Item<int>() == 20) return absl::OutOfRangeError("too much");
    return tensor;
  };
  for (const Dataset& source : {Numbers(4), Generated(4)}) {
    const absl::Status status = EpochError(source.Map(fail_on_two, "label").Batch(2));
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(std::string(status.message()), "column 'label', row 2: too much");
  }
}

TEST(Permutation, HoldsEveryIndexOnceAndDependsOnSeedAndEpoch) {
  const std::vector<std::int64_t> order = Permutation(1000, 1, 0);
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> identity(1000);
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_EQ(sorted, identity);
  EXPECT_EQ(order, Permutation(1000, 1, 0));
  EXPECT_NE(order, Permutation(1000, 1, 1));
  EXPECT_NE(order, Permutation(1000, 2, 0));
  EXPECT_TRUE(Permutation(0, 1, 0).empty());
}

TEST(Permutation, DrawsFromAll64Bits) {
  const auto words = PhiloxBlock(/*seed=*/5, /*step=*/6, /*call_site=*/7, /*block=*/8);
  const std::uint64_t random = static_cast<std::uint64_t>(words[0]) << 32 | words[1];
  EXPECT_EQ(internal::UniformBelow(std::uint64_t{1} << 63, 5, 6, 7, 8), random >> 1);
}

TEST(Permutation, IsUniform) {
  // 24,000 orders of 4 elements over 24 outcomes: chi-square with 23 degrees of freedom exceeds 58.6 with probability
  // 6e-5.
  std::map<std::vector<std::int64_t>, int> counts;
  for (int epoch = 0; epoch < 24000; ++epoch) ++counts[Permutation(4, 0, epoch)];
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 58.6);
}

TEST(Shuffle, IsANewOrderEveryEpochAndTheSameEveryRun) {
  for (const Dataset& source : {Numbers(50), Generated(50)}) {
    const Dataset shuffled = source.Shuffle(3);
    const std::vector<int> first = Labels(shuffled, 0);
    EXPECT_EQ(first, Labels(source.Shuffle(3), 0));
    EXPECT_NE(first, Labels(shuffled, 1));
    EXPECT_NE(first, Labels(source.Shuffle(4), 0));
    EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 50u);
  }
  EXPECT_EQ(Labels(Numbers(50).Shuffle(3), 5), Labels(Generated(50).Shuffle(3), 5));
}

TEST(Batch, StacksRowsAndKeepsOrDropsTheRemainder) {
  const Dataset batches = Numbers(7).Batch(3);
  EXPECT_EQ(*batches.size(), 3);
  EXPECT_EQ(*Numbers(7).Batch(3, true).size(), 2);
  EXPECT_EQ(*Numbers(6).Batch(3).size(), 2);
  auto iterator = *batches.NewIterator(0);
  Row row;
  ASSERT_TRUE(*iterator->Next(&row));
  EXPECT_EQ(row[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(row[1].shape(), (Shape{3}));
  EXPECT_THAT(row[0].data<float>(), ElementsAre(0, 0, 1, -1, 2, -2));
  ASSERT_TRUE(*iterator->Next(&row));
  ASSERT_TRUE(*iterator->Next(&row));
  EXPECT_EQ(row[0].shape(), (Shape{1, 2}));
  EXPECT_FALSE(*iterator->Next(&row));
  EXPECT_FALSE(*iterator->Next(&row));
  EXPECT_THAT(Labels(Numbers(7).Batch(3, true), 0), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Labels(Generated(7).Batch(3, true), 0), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Labels(Numbers(2).Batch(3), 0), ElementsAre(0, 1));
}

TEST(Batch, SpecsThatDifferAreNamed) {
  std::vector<Row> rows = Rows(6);
  rows[4][0] = Tensor::Zeros({3});
  const absl::Status status = EpochError(GeneratorDataset(rows, {"data", "label"}).Batch(3));
  EXPECT_EQ(std::string(status.message()),
            "column 'data': row 4 of the epoch is tensor<3xf32>, but row 3 of the same batch is tensor<2xf32>");
  rows[4][0] = Tensor::Zeros({2}, DType::kF16);
  EXPECT_THAT(std::string(EpochError(GeneratorDataset(rows, {"data", "label"}).Batch(3)).message()),
              HasSubstr("tensor<2xf16>"));
}

TEST(Batch, LargerThanTheDataSetIsAnErrorWithBothNumbers) {
  const char* expected = "batch size 64 is larger than the data set (40 rows)";
  EXPECT_THAT(std::string(Numbers(40).Batch(64, true).status().message()), HasSubstr(expected));
  EXPECT_THAT(std::string(EpochError(Generated(40).Batch(64, true)).message()), HasSubstr(expected));
  EXPECT_THAT(std::string(Generated(40).Batch(64, true).size().status().message()), HasSubstr(expected));
  EXPECT_FALSE(Numbers(4).Batch(0).status().ok());
}

TEST(Repeat, ShufflesEachRepetitionAnew) {
  const Dataset repeated = Numbers(20).Shuffle(1).Repeat(2);
  EXPECT_EQ(*repeated.size(), 40);
  const std::vector<int> labels = Labels(repeated, 1);
  const std::vector<int> halves[] = {{labels.begin(), labels.begin() + 20}, {labels.begin() + 20, labels.end()}};
  EXPECT_EQ(halves[0], Labels(Numbers(20).Shuffle(1), 2));
  EXPECT_EQ(halves[1], Labels(Numbers(20).Shuffle(1), 3));
  EXPECT_FALSE(Numbers(4).Repeat(0).status().ok());
}

TEST(Repeat, CountsThatOverflowAreErrors) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  EXPECT_THAT(std::string(Numbers(4).Repeat(kMost + 1).status().message()),
              HasSubstr("the count of Repeat must be at most 2147483647, got 2147483648"));
  const Dataset twice = Numbers(4).Repeat(kMost).Repeat(kMost);
  EXPECT_EQ(twice.size().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Numbers(1).Repeat(kMost).Repeat(kMost).size().value(), kMost * kMost);
  EXPECT_EQ(Numbers(4).Repeat(kMost).NewIterator(std::int64_t{1} << 40).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(*Numbers(4).Repeat(kMost).size(), 4 * kMost);
}

TEST(Repeat, EndsWithTheFirstError) {
  const auto fail = [](const Tensor&) -> absl::StatusOr<Tensor> { return absl::DataLossError("gone"); };
  EXPECT_EQ(EpochError(Numbers(3).Map(fail, "data").Repeat(2)).code(), absl::StatusCode::kDataLoss);
}

TEST(Dataset, KeepsTheFirstErrorOfAChain) {
  const Dataset dataset = Numbers(4).Batch(-1).Shuffle(1).Repeat(0).Prefetch(0);
  EXPECT_THAT(std::string(dataset.status().message()), HasSubstr("batch size must be at least 1, got -1"));
  EXPECT_EQ(dataset.size().status(), dataset.status());
  EXPECT_EQ(dataset.NewIterator(0).status(), dataset.status());
}

TEST(DictIterator, GivesColumnsByNameAndANewEpochEachTime) {
  const Dataset dataset = Numbers(8).Shuffle(5).Batch(4);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> labels;
    for (auto& d : dataset.CreateDictIterator()) {
      EXPECT_EQ(d["data"].shape(), (Shape{4, 2}));
      for (std::int32_t label : d["label"].data<std::int32_t>()) labels.push_back(label / 10);
      EXPECT_TRUE(d.contains("data"));
      EXPECT_FALSE(d.contains("image"));
      EXPECT_THAT(std::string(d["image"].status().message()), HasSubstr("no column 'image'; columns are data, label"));
    }
    EXPECT_EQ(labels, Labels(dataset, epoch));
  }
}

TEST(DictIterator, AnErrorReachesTheLoopAsALastRow) {
  const auto fail = [](const Tensor&) -> absl::StatusOr<Tensor> { return absl::DataLossError("gone"); };
  for (const Dataset& dataset : {Numbers(3).Map(fail, "data"), Dataset(absl::DataLossError("gone"))}) {
    int rows = 0;
    NamedRows range = dataset.CreateDictIterator();
    for (auto& d : range) {
      ++rows;
      EXPECT_EQ(d["data"].status().code(), absl::StatusCode::kDataLoss);
      EXPECT_EQ(d["label"].status().code(), absl::StatusCode::kDataLoss);
    }
    EXPECT_EQ(rows, 1);
    EXPECT_EQ(range.status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace mpc::data
