#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "frontend/data/uniform_draw.h"
#include "tests/data/number_rows.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Number(int value) { return Tensor::Scalar<std::int32_t>(value); }

Tensor AddOne(const Tensor& x) { return Number(x.Item<int>() + 1); }
Tensor Double(const Tensor& x) { return Number(x.Item<int>() * 2); }

/// Draws from (seed, epoch, row), and takes longer for some rows than for others.
Tensor AddNoise(const Tensor& x, const RowPosition& position) {
  if (position.row % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return Number(x.Item<int>() + static_cast<int>(internal::UniformBelow(1000, 3, position.epoch, 1, position.row)));
}

TEST(MapOperations, AreAppliedInOrder) {
  EXPECT_THAT(NumbersOf(NumberDataset(3).Map({AddOne, Double}, "x")), ElementsAre(2, 4, 6));
  EXPECT_THAT(NumbersOf(NumberDataset(3).Map({Double, AddOne}, {"x"})), ElementsAre(1, 3, 5));
  const std::vector<MapOperation> list(3, AddOne);
  EXPECT_THAT(NumbersOf(NumberDataset(3).Map(list, std::string("x"))), ElementsAre(3, 4, 5));
}

TEST(MapOperations, OverSeveralColumnsTakeARow) {
  const auto swap = [](const Row& row) { return Row{row[1], AddOne(row[0])}; };
  const Dataset mapped = NumberDataset(2, {"a", "b", "c"}).Map({swap, swap}, {"a", "c"});
  EXPECT_THAT(mapped.column_names(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(NumbersOf(mapped, 0, 0), ElementsAre(1, 2));
  EXPECT_THAT(NumbersOf(mapped, 0, 1), ElementsAre(0, 1));
  EXPECT_THAT(NumbersOf(mapped, 0, 2), ElementsAre(1, 2));
  EXPECT_THAT(MessageOf(NumberDataset(2, {"a", "b"}).Map(AddOne, {"a", "b"})),
              HasSubstr("a function of one tensor, but there are 2 input columns"));
}

TEST(MapOperations, NameTheirOutputColumns) {
  const auto sum = [](const Row& row) { return Row{Number(row[0].Item<int>() + row[1].Item<int>())}; };
  const Dataset source = NumberDataset(3, {"a", "label", "b"});
  const Dataset summed = source.Map(sum, {"a", "b"}, {.output_columns = {"sum"}});
  EXPECT_THAT(summed.column_names(), ElementsAre("sum", "label"));
  EXPECT_THAT(NumbersOf(summed, 0, 0), ElementsAre(0, 2, 4));
  EXPECT_THAT(NumbersOf(summed, 0, 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(source.Map(AddOne, "label", {.output_columns = {"y"}}).column_names(), ElementsAre("a", "y", "b"));
  EXPECT_EQ(MessageOf(source.Map(sum, {"a", "b"})),
            "columns 'a', 'b', row 0: the map returned 1 tensors, but there are 2 output columns");
  EXPECT_THAT(MessageOf(source.Map(AddOne, "label", {.output_columns = {"a"}})),
              HasSubstr("two columns are called 'a'"));
}

TEST(MapOperations, BadArgumentsAreErrors) {
  EXPECT_THAT(MessageOf(NumberDataset(2).Map(std::vector<MapOperation>(), "x")), HasSubstr("needs a function"));
  EXPECT_THAT(MessageOf(NumberDataset(2).Map(MapFunction(), "x")), HasSubstr("needs a function"));
  EXPECT_THAT(MessageOf(NumberDataset(2).Map(AddOne, {"x", "x"})), HasSubstr("column 'x' is named twice"));
  EXPECT_THAT(MessageOf(NumberDataset(2).Map(AddOne, {"x", "y"})), HasSubstr("no column 'y'; columns are x"));
  EXPECT_THAT(MessageOf(NumberDataset(2).Map(AddOne, "x", {.num_parallel_workers = -1})),
              HasSubstr("num_parallel_workers is -1; accepted are 0 to 256"));
}

TEST(MapWorkers, GiveTheSameBitsInTheSameOrder) {
  for (const Dataset& source : {NumberDataset(60), GeneratedNumbers(60), NumberDataset(60).Shuffle(2)}) {
    const Dataset plain = source.Map({AddNoise, AddOne}, "x");
    for (std::int64_t workers : {1, 4}) {
      const Dataset parallel = source.Map({AddNoise, AddOne}, "x", {.num_parallel_workers = workers});
      EXPECT_EQ(*parallel.size(), 60);
      for (std::int64_t epoch : {0, 3}) EXPECT_EQ(NumbersOf(parallel, epoch), NumbersOf(plain, epoch));
    }
  }
}

TEST(MapWorkers, WorkBeforeAShuffleToo) {
  std::atomic<bool> elsewhere = false;
  const auto note = [&elsewhere, consumer = std::this_thread::get_id()](const Tensor& x) {
    if (std::this_thread::get_id() != consumer) elsewhere = true;
    return AddOne(x);
  };
  const Dataset shuffled = NumberDataset(30).Map(note, "x", {.num_parallel_workers = 4}).Take(20).Shuffle(5);
  EXPECT_EQ(NumbersOf(shuffled, 1), NumbersOf(NumberDataset(30).Map(AddOne, "x").Take(20).Shuffle(5), 1));
  EXPECT_TRUE(elsewhere);
}

TEST(MapWorkers, GoOnAnywhereAfterAResume) {
  const Dataset dataset = NumberDataset(40).Shuffle(1).Map(AddNoise, "x", {.num_parallel_workers = 4});
  const std::vector<int> expected = NumbersOf(dataset, 2);
  for (std::size_t done : {0u, 1u, 17u, 39u, 40u}) {
    auto iterator = *dataset.NewIterator(2);
    Row row;
    for (std::size_t i = 0; i < done; ++i) ASSERT_TRUE(*iterator->Next(&row));
    for (std::size_t i = done; i < expected.size(); ++i) {
      ASSERT_TRUE(*iterator->Next(&row));
      EXPECT_EQ(row[0].Item<int>(), expected[i]);
    }
    EXPECT_FALSE(*iterator->Next(&row));
  }
}

TEST(MapWorkers, ReadAtMostTwiceAsManyRowsAhead) {
  auto reads = std::make_shared<std::atomic<int>>(0);
  const auto count = [reads](const Tensor& x) {
    ++*reads;
    return x;
  };
  auto iterator = *NumberDataset(100).Map(count, "x", {.num_parallel_workers = 3}).NewIterator(0);
  Row row;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(*iterator->Next(&row));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(reads->load(), 4 + 6);
}

TEST(MapWorkers, CarryTheFirstErrorInOrder) {
  // Row 5 takes longer to fail than the rows behind it.
  const auto fail = [](const Tensor& x) -> absl::StatusOr<Tensor> {
    if (x.Item<int>() == 5) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (x.Item<int>() >= 5) return absl::DataLossError("gone");
    return x;
  };
  for (std::int64_t workers : {0, 1, 4}) {
    const Dataset dataset = NumberDataset(30).Map({AddOne, fail}, "x", {.num_parallel_workers = workers});
    auto iterator = *dataset.NewIterator(0);
    Row row;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(*iterator->Next(&row));
    const absl::StatusOr<bool> more = iterator->Next(&row);
    EXPECT_EQ(more.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(std::string(more.status().message()), "column 'x', row 4, operation 1: gone");
    EXPECT_FALSE(*iterator->Next(&row));
  }
}

TEST(MapWorkers, CarryExceptionsWithColumnAndRow) {
  struct OutOfPaper : std::logic_error {
    using std::logic_error::logic_error;
  };
  const auto fail = [](const Tensor& x) {
    if (x.Item<int>() >= 3) throw OutOfPaper("user code");
    return x;
  };
  for (std::int64_t workers : {0, 1, 4}) {
    auto iterator = *NumberDataset(30).Map(fail, "x", {.num_parallel_workers = workers}).NewIterator(0);
    Row row;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(*iterator->Next(&row));
    try {
      (void)iterator->Next(&row);
      ADD_FAILURE() << "no exception";
    } catch (const MapException& exception) {
      EXPECT_EQ(std::string(exception.what()), "column 'x', row 3: user code");
      EXPECT_THROW(std::rethrow_if_nested(exception), OutOfPaper);
    }
    EXPECT_FALSE(*iterator->Next(&row));
  }
}

TEST(MapWorkers, CarryErrorsOfTheirInputInOrder) {
  const auto fail = [](const Tensor& x) -> absl::StatusOr<Tensor> {
    if (x.Item<int>() == 6) return absl::DataLossError("gone");
    return x;
  };
  const auto leave = [](const Tensor& x) -> Tensor {
    if (x.Item<int>() == 6) throw std::runtime_error("left");
    return x;
  };
  auto iterator = *NumberDataset(30).Map(fail, "x").Map(AddOne, "x", {.num_parallel_workers = 4}).NewIterator(0);
  auto throws = *NumberDataset(30).Map(leave, "x").Map(AddOne, "x", {.num_parallel_workers = 4}).NewIterator(0);
  Row row;
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(*iterator->Next(&row) && *throws->Next(&row));
  EXPECT_EQ(std::string(iterator->Next(&row).status().message()), "column 'x', row 6: gone");
  EXPECT_THROW((void)throws->Next(&row), MapException);
  EXPECT_FALSE(*iterator->Next(&row));
  EXPECT_FALSE(*throws->Next(&row));
}

TEST(MapWorkers, CanBeAbandonedAtAnyPoint) {
  for (int taken = 0; taken < 20; ++taken) {
    const Dataset dataset = NumberDataset(40).Map(AddNoise, "x", {.num_parallel_workers = 4}).Batch(2).Prefetch();
    auto iterator = *dataset.NewIterator(0);
    Row row;
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(*iterator->Next(&row));
  }
}

}  // namespace
}  // namespace mpc::data
