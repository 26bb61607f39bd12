// The bits of an epoch do not depend on the number of workers, whatever stages stand behind and before them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/uniform_draw.h"
#include "tests/data/number_rows.h"

namespace mpc::data {
namespace {

/// "words" f32 [1 to 7], whose length and values are drawn from (seed, epoch, row), and "label". Some rows take longer.
Row DrawWords(const Row& row, const RowPosition& position) {
  if (position.row % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::uint64_t draw = internal::UniformBelow(7000, 3, position.epoch, 1, position.row);
  return {Tensor::Full({1 + static_cast<std::int64_t>(draw % 7)}, static_cast<double>(draw)), row[1]};
}

bool IsLong(const Tensor& words) { return words.dim(0) > 3; }
bool IsOdd(const Tensor& label) { return label.Item<int>() % 2 == 1; }

/// Gives `source`'s rows to DrawWords, with some number of workers.
using Workers = std::function<Dataset(const Dataset& source)>;

struct Pipeline {
  const char* name;
  std::function<Dataset(const Dataset& source, const Workers& words)> make;
};

Pipeline Behind(const char* name, std::function<Dataset(const Dataset& words)> stage) {
  return {name,
          [stage = std::move(stage)](const Dataset& source, const Workers& words) { return stage(words(source)); }};
}

Pipeline Before(const char* name, std::function<Dataset(const Dataset& source)> stage) {
  return {name,
          [stage = std::move(stage)](const Dataset& source, const Workers& words) { return words(stage(source)); }};
}

std::vector<Pipeline> Pipelines() {
  return {
      Behind("Filter", [](const Dataset& words) { return words.Filter(IsLong, "words"); }),
      Before("FilterBefore", [](const Dataset& source) { return source.Filter(IsOdd, "label"); }),
      Behind("PaddedBatch", [](const Dataset& words) { return words.PaddedBatch(6); }),
      Behind("BucketBatchByLength",
             [](const Dataset& words) {
               return words.BucketBatchByLength("words", {3, 5}, {4, 3, 2});
             }),
      Behind("SkipTake", [](const Dataset& words) { return words.Skip(3).Take(20); }),
      Behind("ShuffleOfFiltered", [](const Dataset& words) { return words.Filter(IsLong, "words").Shuffle(2); }),
      Before("ShuffleBefore", [](const Dataset& source) { return source.Shuffle(1).Repeat(2); }),
      Before("SplitBefore",
             [](const Dataset& source) {
               return source.Split({0.75, 0.25}, 5)[0];
             }),
      Behind("PrefetchOfBatches", [](const Dataset& words) { return words.PaddedBatch(4).Prefetch(); }),
      {"Concat", [](const Dataset& source, const Workers& words) { return words(source).Concat({words(source)}); }},
      {"Zip",
       [](const Dataset& source, const Workers& words) {
         const auto first = [](const Row& row) { return Row{row[0]}; };
         return words(source).Zip({words(source.Skip(9)).Map(first, {"words", "label"}, {.output_columns = {"more"}})});
       }},
  };
}

/// Shapes and bytes of the rows of an epoch.
std::vector<std::string> RowsOf(const Dataset& dataset, std::int64_t epoch) {
  std::vector<std::string> rows;
  auto iterator = dataset.NewIterator(epoch);
  EXPECT_TRUE(iterator.ok()) << iterator.status();
  for (Row row; iterator.ok();) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&row);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) break;
    rows.emplace_back();
    for (const Tensor& tensor : row) {
      absl::StrAppend(&rows.back(), absl::StrJoin(tensor.shape(), "x"), " ");
      rows.back().append(tensor.bytes().begin(), tensor.bytes().end());
    }
  }
  return rows;
}

class StagesOfWorkers : public ::testing::TestWithParam<Pipeline> {
 protected:
  static Dataset Make(const Dataset& source, std::int64_t workers) {
    return GetParam().make(source, [workers](const Dataset& rows) {
      return rows.Map(DrawWords, {"words", "label"}, {.num_parallel_workers = workers});
    });
  }
};

TEST_P(StagesOfWorkers, GiveTheSameBitsWithAnyNumberOfThem) {
  const Dataset source = NumberDataset(40, {"words", "label"});
  for (std::int64_t epoch : {0, 3}) {
    const std::vector<std::string> expected = RowsOf(Make(source, 0), epoch);
    EXPECT_GT(expected.size(), 5u);
    for (std::int64_t workers : {1, 4}) EXPECT_EQ(RowsOf(Make(source, workers), epoch), expected) << workers;
  }
  EXPECT_NE(RowsOf(Make(source, 4), 1), RowsOf(Make(source, 4), 2));
}

INSTANTIATE_TEST_SUITE_P(Pipelines, StagesOfWorkers, ::testing::ValuesIn(Pipelines()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mpc::data
