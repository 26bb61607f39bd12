// Data pipelines: a source of rows, then Map, Shuffle, Batch, Repeat, Prefetch.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/data/dataset_node.h"
#include "frontend/data/named_rows.h"
#include "frontend/graph/tensor.h"

namespace mpc::data {

/// Changes one column of one row (one sample before Batch, one batch after it). A function that returns a plain Tensor
/// fits. With Prefetch it is called on another thread.
using MapFunction = std::function<absl::StatusOr<Tensor>(const Tensor&)>;

/// The position of a row in the input of a Map.
struct RowPosition {
  std::int64_t epoch = 0;
  std::int64_t row = 0;  ///< index within the epoch
};

/// Like MapFunction, for a change that depends on the position. Random augmentation that draws from (seed, position)
/// gives the same rows again when training resumes within an epoch.
using PositionMapFunction = std::function<absl::StatusOr<Tensor>(const Tensor&, const RowPosition&)>;

/// A cheap handle: copies share one pipeline, and each method returns a new one that reads from this.
///
///   auto train = data::GeneratorDataset(rows, {"data", "label"}).Shuffle(1).Batch(32, /*drop_remainder=*/true);
///   for (auto& batch : train.CreateDictIterator()) step(batch["data"], batch["label"]);
///
/// The first error of a chain is kept: `status()`, `size` and `NewIterator` return it.
class Dataset {
 public:
  /// A pipeline that only carries an error.
  explicit Dataset(absl::Status status);
  explicit Dataset(internal::NodePointer node);

  const absl::Status& status() const { return status_; }
  /// Empty if `status()` is an error.
  const ColumnNames& column_names() const;
  /// Rows of an epoch: batches after Batch. A pipeline over a generator function is run once to count them.
  absl::StatusOr<std::int64_t> size() const;

  /// Applies `function` to column `column`. Errors of the function carry the column and the row.
  Dataset Map(MapFunction function, std::string_view column) const;
  /// The result has no random access: a later Shuffle holds its rows in memory.
  Dataset Map(PositionMapFunction function, std::string_view column) const;
  /// A new random order every epoch, a function of (seed, epoch) alone. Over a source without random access (a
  /// generator function, batches, repetitions) the rows of an epoch are held in memory.
  Dataset Shuffle(std::uint64_t seed) const;
  /// Stacks `batch_size` rows into one along a new axis 0. The last batch holds the remainder unless it is dropped.
  /// Errors: batch_size < 1; rows whose specs differ (column, row and both specs are named). With `drop_remainder`, a
  /// batch size beyond the number of rows is an error too: no batch would be left.
  Dataset Batch(std::int64_t batch_size, bool drop_remainder = false) const;
  /// One epoch holds `count` >= 1 epochs of this data set, each shuffled anew.
  Dataset Repeat(std::int64_t count) const;
  /// Up to `depth` >= 1 rows are made ahead on a thread of their own. Errors and exceptions reach the consumer in
  /// order. The source and map functions must not share unguarded state with the consumer.
  Dataset Prefetch(std::int64_t depth = 2) const;

  /// The rows of epoch `epoch` (from 0).
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const;

  /// The rows of the next epoch by column name; the first call on this data set (and its copies) gives epoch 0.
  NamedRows CreateDictIterator() const;

 private:
  template <typename Node, typename... Arguments>
  Dataset Then(Arguments&&... arguments) const;
  Dataset MapRows(PositionMapFunction function, std::string_view column, bool positional) const;

  absl::Status status_;
  internal::NodePointer node_;
  std::shared_ptr<std::atomic<std::int64_t>> epochs_begun_;
};

/// Returns the rows of one epoch, one a call, then nullopt. Functions that return a plain `std::optional<Row>` fit.
using Generator = std::function<absl::StatusOr<std::optional<Row>>()>;

/// Something with `size()` and `source[index]` that gives a Row (or absl::StatusOr<Row>); const access from one thread
/// at a time for each iterator.
template <typename Source>
concept RandomAccessSource = requires(const Source& source, std::size_t index) {
  { source.size() } -> std::convertible_to<std::int64_t>;
  { source[index] } -> std::convertible_to<absl::StatusOr<Row>>;
};

/// The rows of a source under column names, which must be unique and as many as a row has tensors. Errors
/// (INVALID_ARGUMENT): no rows; a row with another number of tensors; a tensor that is symbolic, empty or in error.
Dataset GeneratorDataset(std::vector<Row> rows, ColumnNames column_names);
/// `begin_epoch` is called at the start of every epoch and returns that epoch's generator.
Dataset GeneratorDataset(std::function<Generator()> begin_epoch, ColumnNames column_names);

namespace internal {

Dataset RandomAccessDataset(std::int64_t size, std::function<absl::StatusOr<Row>(std::int64_t)> get,
                            ColumnNames column_names);

}  // namespace internal

template <RandomAccessSource Source>
Dataset GeneratorDataset(Source source, ColumnNames column_names) {
  auto shared = std::make_shared<const Source>(std::move(source));
  const auto size = static_cast<std::int64_t>(shared->size());
  return internal::RandomAccessDataset(
      size, [shared](std::int64_t index) -> absl::StatusOr<Row> { return (*shared)[static_cast<std::size_t>(index)]; },
      std::move(column_names));
}

}  // namespace mpc::data
