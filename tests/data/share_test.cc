// What each of several ranks reads, together, is what one rank reads.
#include "frontend/data/share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/data/dataset.h"
#include "frontend/data/uniform_draw.h"
#include "tests/data/number_rows.h"

namespace mpc::data {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TextOf(const Row& row) {
  std::string text;
  for (const Tensor& tensor : row) {
    absl::StrAppend(&text, tensor.spec().ToString(), ":");
    for (float value : tensor.ToFloats()) absl::StrAppend(&text, " ", value);
    absl::StrAppend(&text, ";");
  }
  return text;
}

struct Epoch {
  std::vector<std::string> batches;
  std::vector<std::int64_t> rows;  ///< of each batch
  std::int64_t dropped = 0;
};

Epoch Drain(DatasetIterator& iterator) {
  Epoch epoch;
  for (Row row;;) {
    const absl::StatusOr<bool> more = iterator.Next(&row);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return epoch;
    epoch.batches.push_back(TextOf(row));
    epoch.rows.push_back(row[0].dim(0));
  }
}

Epoch ReadAll(const Dataset& dataset, std::int64_t epoch) {
  auto iterator = dataset.NewIterator(epoch);
  EXPECT_TRUE(iterator.ok()) << iterator.status();
  return iterator.ok() ? Drain(**iterator) : Epoch{};
}

Epoch ReadShare(const Dataset& dataset, std::int64_t epoch, const ShareOfUpdates& share) {
  auto iterator = dataset.NewShareIterator(epoch, share);
  EXPECT_TRUE(iterator.ok()) << iterator.status();
  if (!iterator.ok()) return {};
  EXPECT_EQ((*iterator)->dropped_batches(), 0);
  Epoch read = Drain(**iterator);
  read.dropped = (*iterator)->dropped_batches();
  return read;
}

/// The batches of all ranks in the order of the epoch. `share.rank` is ignored.
std::vector<std::string> ReadByAllRanks(const Dataset& dataset, std::int64_t epoch, ShareOfUpdates share,
                                        std::int64_t dropped) {
  std::vector<Epoch> ranks;
  for (share.rank = 0; share.rank < share.ranks; ++share.rank) {
    ranks.push_back(ReadShare(dataset, epoch, share));
    EXPECT_EQ(ranks.back().dropped, dropped) << "rank " << share.rank;
  }
  const auto of_update = static_cast<std::size_t>(share.micro_batches / share.ranks);
  std::vector<std::string> batches;
  for (std::size_t update = 0; update * of_update < ranks[0].batches.size(); ++update) {
    for (const Epoch& rank : ranks) {
      for (std::size_t i = update * of_update; i < std::min((update + 1) * of_update, rank.batches.size()); ++i) {
        batches.push_back(rank.batches[i]);
      }
    }
  }
  return batches;
}

/// Changes "x" by (epoch, row), so that a wrong position shows.
Tensor AddPosition(const Tensor& x, const RowPosition& position) {
  const auto draw = internal::UniformBelow(1000, 7, position.epoch, 2, position.row);
  return Tensor::Scalar<float>(x.ToFloats()[0] + static_cast<float>(draw));
}

Tensor Negate(const Tensor& x) {
  std::vector<float> values = x.ToFloats();
  for (float& value : values) value = -value;
  return Tensor::From<float>(values, x.shape());
}

bool IsNotThird(const Tensor& label) { return label.Item<int>() % 3 != 0; }

Dataset Source(int rows, bool random_access) {
  const auto row = [](std::int64_t i) {
    return Row{Tensor::Scalar<float>(static_cast<float>(i)), Tensor::Scalar<std::int32_t>(static_cast<int>(i))};
  };
  if (random_access) return GeneratorDataset(row, rows, {"x", "label"});
  return GeneratorDataset(
      [rows, row]() -> Generator {
        return [rows, row, i = 0]() mutable -> std::optional<Row> {
          return i < rows ? std::optional<Row>(row(i++)) : std::nullopt;
        };
      },
      {"x", "label"});
}

/// A pipeline that is drawn stage by stage.
class DrawnPipeline {
 public:
  explicit DrawnPipeline(unsigned seed) : random_(seed), dataset_(Source(60 + Below(40), Below(5) != 0)) {
    for (int stage = Below(5); stage > 0; --stage) AddBeforeBatch();
    AddBatch();
    for (int stage = Below(4); stage > 0; --stage) AddBehindBatch();
  }

  const Dataset& dataset() const { return dataset_; }
  const std::string& stages() const { return stages_; }
  /// Rows of a complete batch; 0 where there are several sizes.
  std::int64_t batch_rows() const { return batch_rows_; }
  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

 private:
  void Note(const char* stage, Dataset made) {
    absl::StrAppend(&stages_, " ", stage);
    ASSERT_TRUE(made.status().ok()) << made.status() << stages_;
    dataset_ = std::move(made);
  }

  void AddBeforeBatch() {
    const MapOptions workers{.num_parallel_workers = Below(2) * 3};
    switch (Below(10)) {
      case 0:
      case 1:
        return Note("Shuffle", dataset_.Shuffle(random_()));
      case 2:
      case 3:
        return Note("Map", dataset_.Map(Negate, "x", workers));
      case 4:
        return Note("MapByPosition", dataset_.Map(AddPosition, "x", workers));
      case 5:
        return Note("Repeat", dataset_.Repeat(2));
      case 6:
        return Note("Prefetch", dataset_.Prefetch(1 + Below(3)));
      case 7:
        return Note("SkipTake", dataset_.Skip(3).Take(50));
      case 8:
        return Note("Concat", dataset_.Concat({Source(13, true)}));
      default:
        return Below(3) == 0 ? Note("Filter", dataset_.Filter(IsNotThird, "label")) : Note("Take", dataset_.Take());
    }
  }

  void AddBatch() {
    batch_rows_ = 2 + Below(4);
    const bool drops = Below(2) == 0;
    switch (Below(6)) {
      case 0:
        return Note("PaddedBatch", dataset_.PaddedBatch(batch_rows_, drops));
      case 1: {
        const std::int64_t second = batch_rows_ + Below(2);
        const BucketBatchOptions options{
            .element_length_function = [](const Row& row) { return row[0].Item<int>() % 10; }, .drop_remainder = drops};
        Note("Buckets", dataset_.BucketBatchByLength("label", {6}, {batch_rows_, second}, options));
        if (second != batch_rows_) batch_rows_ = 0;
        return;
      }
      default:
        return Note("Batch", dataset_.Batch(batch_rows_, drops));
    }
  }

  void AddBehindBatch() {
    switch (Below(6)) {
      case 0:
        return Note("Prefetch", dataset_.Prefetch());
      case 1:
        return Note("Map", dataset_.Map(Negate, "x"));
      case 2:
        return Note("Repeat", dataset_.Repeat(2));
      case 3:
        return Note("Shuffle", dataset_.Shuffle(random_()));
      case 4:
        return Note("SkipTake", dataset_.Skip(1).Take(9));
      default:
        return AddZip();
    }
  }

  /// Columns y and label of one data set, w and z of another.
  void AddZip() {
    const Dataset left = dataset_.Map(Negate, "x", {.output_columns = {"y"}});
    const Dataset right =
        dataset_.Map(Negate, "x", {.output_columns = {"w"}}).Map(Negate, "label", {.output_columns = {"z"}});
    const auto first_two = [](const Row& row) { return Row{row[0], row[1]}; };
    Note("Zip", left.Zip({right}).Map(first_two, {"y", "label", "w", "z"}, {.output_columns = {"x", "label"}}));
  }

  std::mt19937 random_;
  Dataset dataset_;
  std::int64_t batch_rows_ = 0;
  std::string stages_ = "Source";
};

TEST(ShareOfUpdates, RanksTogetherReadWhatOneReads) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    DrawnPipeline pipeline(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", pipeline.stages()));
    const std::int64_t epoch = pipeline.Below(3);
    const Epoch all = ReadAll(pipeline.dataset(), epoch);
    const auto batches = static_cast<std::int64_t>(all.batches.size());
    ASSERT_GT(batches, 0);
    const std::int64_t short_ends = all.rows.back() < pipeline.batch_rows() ? 1 : 0;
    for (std::int64_t micro_batches : {4, 8}) {
      const std::int64_t updates = (batches - short_ends) / micro_batches;
      const std::int64_t complete = updates * micro_batches;
      const std::vector<std::string> trained(all.batches.begin(), all.batches.begin() + complete);
      const std::int64_t first = pipeline.Below(static_cast<int>(updates) + 1);
      const std::vector<std::string> rest(trained.begin() + first * micro_batches, trained.end());
      for (std::int64_t ranks : {1, 2, 4}) {
        SCOPED_TRACE(absl::StrCat(micro_batches, " micro-batches, ", ranks, " ranks"));
        ShareOfUpdates share{.micro_batches = micro_batches, .ranks = ranks};
        EXPECT_EQ(ReadByAllRanks(pipeline.dataset(), epoch, share, batches - complete), trained);
        share.first_update = first;
        EXPECT_EQ(ReadByAllRanks(pipeline.dataset(), epoch, share, batches - complete), rest);
        share.first_update = 0;
        share.partial = PartialUpdate::kKeep;
        EXPECT_EQ(ReadByAllRanks(pipeline.dataset(), epoch, share, 0), all.batches);
      }
    }
  }
}

/// 64 rows whose decoding is counted.
struct CountedRows {
  std::shared_ptr<std::atomic<int>> decoded = std::make_shared<std::atomic<int>>(0);
  Dataset Decode(const Dataset& source, std::int64_t workers) const {
    const auto decode = [decoded = decoded](const Tensor& x) {
      ++*decoded;
      return x;
    };
    return source.Map(decode, "x", {.num_parallel_workers = workers});
  }
};

TEST(ShareOfUpdates, ARankDecodesItsRowsAlone) {
  for (std::int64_t workers : {0, 3}) {
    const CountedRows counted;
    const Dataset dataset = counted.Decode(Source(64, true).Shuffle(1), workers).Repeat(2).Batch(2).Prefetch(3);
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      *counted.decoded = 0;
      EXPECT_EQ(ReadShare(dataset, 1, {.micro_batches = 8, .rank = rank, .ranks = 4}).batches.size(), 16);
      EXPECT_EQ(*counted.decoded, 32) << "of 128 rows, rank " << rank;
      *counted.decoded = 0;
      ReadShare(dataset, 1, {.micro_batches = 8, .rank = rank, .ranks = 4, .first_update = 7});
      EXPECT_EQ(*counted.decoded, 4) << "of the last update, rank " << rank;
    }
  }
}

TEST(ShareOfUpdates, DecodesAllRowsWithoutRandomAccess) {
  const CountedRows counted;
  const Dataset dataset = counted.Decode(Source(64, false), 0).Batch(2);
  EXPECT_EQ(ReadShare(dataset, 0, {.micro_batches = 8, .rank = 3, .ranks = 4}).batches.size(), 8);
  EXPECT_EQ(*counted.decoded, 64);
}

TEST(ShareOfUpdates, AShortLastBatchIsDroppedWithItsUpdate) {
  for (bool random_access : {true, false}) {
    const Dataset dataset = Source(15, random_access).Batch(2);  // 8 batches, the last with one row
    const ShareOfUpdates share{.micro_batches = 4, .rank = 1, .ranks = 2};
    EXPECT_EQ(ReadShare(dataset, 0, share).batches.size(), 2);
    EXPECT_EQ(ReadShare(dataset, 0, share).dropped, 4);
    const ShareOfUpdates one{.micro_batches = 1};
    EXPECT_EQ(ReadShare(dataset, 0, one).batches.size(), 7);
    EXPECT_EQ(ReadShare(dataset, 0, one).dropped, 1);
  }
}

TEST(ShareOfUpdates, ARankMayHaveNoBatchInEvaluation) {
  for (bool random_access : {true, false}) {
    for (bool drop_remainder : {true, false}) {
      const Dataset dataset = Source(2, random_access).Batch(2, drop_remainder);
      const ShareOfUpdates share{.micro_batches = 4, .rank = 3, .ranks = 4, .partial = PartialUpdate::kKeep};
      EXPECT_THAT(ReadShare(dataset, 0, share).batches, IsEmpty());
    }
  }
}

TEST(ShareOfUpdates, RefusesWhatCannotBeByName) {
  const auto error = [](const ShareOfUpdates& share, bool random_access = true) {
    const Dataset dataset = Source(20, random_access).Batch(2);
    auto iterator = dataset.NewShareIterator(0, share);
    if (!iterator.ok()) return std::string(iterator.status().message());
    Row row;
    const absl::StatusOr<bool> more = (*iterator)->Next(&row);
    EXPECT_FALSE(more.ok());
    const absl::StatusOr<bool> after = (*iterator)->Next(&row);
    EXPECT_TRUE(after.ok() && !*after);
    return std::string(more.status().message());
  };
  EXPECT_EQ(error({.micro_batches = 6}), "ShareOfUpdates: micro_batches is 6; accepted are powers of two");
  EXPECT_EQ(error({.micro_batches = 4, .ranks = 8}),
            "ShareOfUpdates: ranks is 8; accepted are powers of two up to micro_batches, which is 4");
  EXPECT_THAT(error({.micro_batches = 4, .ranks = 0}), HasSubstr("ranks is 0"));
  EXPECT_EQ(error({.micro_batches = 4, .rank = 2, .ranks = 2}), "ShareOfUpdates: rank is 2; accepted are 0 to 1");
  EXPECT_EQ(error({.first_update = -1}), "ShareOfUpdates: first_update is -1; accepted is 0 and above");
  for (bool random_access : {true, false}) {
    EXPECT_EQ(error({.micro_batches = 4, .first_update = 3}, random_access),
              "the epoch has 2 updates of 4 batches, but it is to be read from update 3");
  }
  EXPECT_EQ(Source(3, true).Batch(5, true).NewShareIterator(0, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ShareOfUpdates, AnErrorOfARowReachesItsRank) {
  const auto fail_at_nine = [](const Tensor& x) -> absl::StatusOr<Tensor> {
    if (x.ToFloats()[0] == 9) return absl::DataLossError("damaged");
    return x;
  };
  const Dataset dataset = Source(16, true).Map(fail_at_nine, "x").Batch(1);
  EXPECT_EQ(ReadShare(dataset, 0, {.micro_batches = 4, .rank = 1, .ranks = 2}).batches.size(), 8);
  auto iterator = dataset.NewShareIterator(0, {.micro_batches = 4, .rank = 0, .ranks = 2});
  ASSERT_TRUE(iterator.ok());
  Row row;
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = (*iterator)->Next(&row);
  EXPECT_EQ(more.status().message(), "column 'x', row 9: damaged");
}

TEST(ShareOfUpdates, ABatchLargerThanTheEpochIsOneBatch) {
  for (const std::int64_t batch_size : {std::int64_t{1} << 61, std::int64_t{1} << 62, INT64_MAX}) {
    const Dataset dataset = Source(20, true).Batch(batch_size);
    ShareOfUpdates share{.micro_batches = 4, .ranks = 2, .partial = PartialUpdate::kKeep};
    EXPECT_EQ(ReadShare(dataset, 0, share).batches, ReadAll(dataset, 0).batches) << batch_size;
    share.rank = 1;
    EXPECT_THAT(ReadShare(dataset, 0, share).batches, IsEmpty()) << batch_size;
    share.partial = PartialUpdate::kDrop;
    EXPECT_EQ(ReadShare(dataset, 0, share).dropped, 1) << batch_size;
  }
}

TEST(ShareOfUpdates, MoreRowsInAnUpdateThan64BitsCountAreAnError) {
  const auto iterator = Source(20, true).Batch(8).NewShareIterator(
      0, {.micro_batches = std::int64_t{1} << 62, .rank = 1, .ranks = 2, .partial = PartialUpdate::kKeep});
  EXPECT_EQ(iterator.status(), absl::OutOfRangeError("Batch: updates of 4611686018427387904 batches of 8 rows are more "
                                                     "rows than 64 bits count"));
}

TEST(Places, AgreeWithTheirDefinition) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto below = [&](int limit) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit)); };
    internal::Places places{.begin = below(20), .phase = below(60) - 30, .period = 1 + below(9)};
    places.end = places.begin + below(30) - 3;
    places.count = 1 + below(static_cast<int>(places.period));
    std::vector<std::int64_t> expected;
    for (std::int64_t place = places.begin; place < places.end; ++place) {
      const std::int64_t in_block = ((place - places.phase) % places.period + places.period) % places.period;
      if (in_block < places.count) expected.push_back(place);
    }
    EXPECT_EQ(places.ToVector(), expected);
    const std::int64_t distance = below(40) - 20;
    std::vector<std::int64_t> moved;
    for (std::int64_t place : expected) {
      if (place + distance >= 0 && place + distance < 15) moved.push_back(place + distance);
    }
    EXPECT_EQ(places.Moved(distance).Within(15).ToVector(), moved);
    std::vector<std::int64_t> rows;
    for (std::int64_t place : expected) {
      for (std::int64_t row = 3 * place; row < 3 * place + 3 && row < 40; ++row) rows.push_back(row);
    }
    EXPECT_EQ(places.OfRows(3, 40).ToVector(), rows);
  }
}

}  // namespace
}  // namespace mpc::data
