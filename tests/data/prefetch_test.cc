#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "frontend/data/dataset.h"

namespace mpc::data {
namespace {

using ::testing::HasSubstr;

struct Source {
  std::size_t size() const { return 100; }
  Row operator[](std::size_t i) const {
    ++*reads;
    return {Tensor::Full({16}, static_cast<double>(i))};
  }
  std::shared_ptr<std::atomic<int>> reads = std::make_shared<std::atomic<int>>(0);
};

std::vector<std::vector<float>> Epoch(const Dataset& dataset, std::int64_t epoch) {
  std::vector<std::vector<float>> batches;
  auto iterator = *dataset.NewIterator(epoch);
  for (Row row; *iterator->Next(&row);) batches.push_back(row[0].ToFloats());
  return batches;
}

TEST(Prefetch, GivesWhatThePlainPipelineGives) {
  const Dataset plain = GeneratorDataset(Source(), {"x"}).Shuffle(2).Batch(7);
  for (std::int64_t depth : {1, 2, 50}) {
    const Dataset ahead = plain.Prefetch(depth);
    EXPECT_EQ(*ahead.size(), *plain.size());
    for (std::int64_t epoch : {0, 1}) EXPECT_EQ(Epoch(ahead, epoch), Epoch(plain, epoch));
  }
}

TEST(Prefetch, StaysWithinItsDepth) {
  const Source source;
  auto iterator = *GeneratorDataset(source, {"x"}).Prefetch(3).NewIterator(0);
  Row row;
  ASSERT_TRUE(*iterator->Next(&row));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // One was taken, three are ready, one waits for room.
  EXPECT_LE(source.reads->load(), 5);
}

TEST(Prefetch, CanBeAbandonedAtAnyPoint) {
  for (int taken = 0; taken < 20; ++taken) {
    auto iterator = *GeneratorDataset(Source(), {"x"}).Batch(2).Prefetch(2).NewIterator(0);
    Row row;
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(*iterator->Next(&row));
  }
}

TEST(Prefetch, CarriesErrorsInOrder) {
  const auto fail = [](const Tensor& tensor) -> absl::StatusOr<Tensor> {
    if (tensor.data<float>()[0] == 5) return absl::DataLossError("gone");
    return tensor;
  };
  auto iterator = *GeneratorDataset(Source(), {"x"}).Map(fail, "x").Prefetch().NewIterator(0);
  Row row;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(*iterator->Next(&row));
  const absl::StatusOr<bool> more = iterator->Next(&row);
  EXPECT_EQ(more.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(more.status().message()), HasSubstr("column 'x', row 5"));
  EXPECT_FALSE(*iterator->Next(&row));
}

TEST(Prefetch, CarriesExceptionsOfUserCode) {
  const auto fail = [](const Tensor& tensor) -> absl::StatusOr<Tensor> { throw std::runtime_error("user code"); };
  auto iterator = *GeneratorDataset(Source(), {"x"}).Map(fail, "x").Prefetch().NewIterator(0);
  Row row;
  EXPECT_THROW((void)iterator->Next(&row), std::runtime_error);
  EXPECT_FALSE(*iterator->Next(&row));
}

TEST(Prefetch, EpochsOfOneDataSetMayRunOnSeveralThreads) {
  // Counted by a pass over the generator, which each thread asks for.
  const Dataset rows = GeneratorDataset(
      [] {
        return [next = 0]() mutable -> std::optional<Row> {
          return next < 30 ? std::optional<Row>(Row{Tensor::Full({4}, next++)}) : std::nullopt;
        };
      },
      {"x"});
  const Dataset dataset = rows.Shuffle(1).Batch(4).Repeat(2).Prefetch(3);
  const std::vector<std::vector<float>> expected = Epoch(dataset, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(*dataset.size(), 16);
      EXPECT_EQ(Epoch(dataset, 0), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Prefetch, TwoEpochsMayRunAtOnce) {
  const Dataset dataset = GeneratorDataset(Source(), {"x"}).Shuffle(1).Batch(4).Prefetch();
  auto first = *dataset.NewIterator(0);
  auto second = *dataset.NewIterator(0);
  Row a;
  Row b;
  while (*first->Next(&a)) {
    ASSERT_TRUE(*second->Next(&b));
    EXPECT_EQ(a[0].ToFloats(), b[0].ToFloats());
  }
}

}  // namespace
}  // namespace mpc::data
