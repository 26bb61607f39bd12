// Data pipelines: a source of rows, then Map, Filter, Shuffle, Batch and the other stages. The stages have MindSpore's
// names. Split by seed and Prefetch have no counterpart there.
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
#include "frontend/data/map_operation.h"
#include "frontend/data/named_rows.h"
#include "frontend/data/pad_info.h"
#include "frontend/data/sampler.h"
#include "frontend/data/share.h"
#include "frontend/graph/tensor.h"

namespace mpc::data {

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
  /// What the labels stand for: label i is class_names()[i]. Stages keep them. Empty where the source does not say.
  const std::vector<std::string>& class_names() const { return *class_names_; }
  /// The same rows with other class names.
  Dataset WithClassNames(std::vector<std::string> names) const;
  /// Rows of an epoch: batches after Batch. A pipeline over a generator function is run once to count them.
  absl::StatusOr<std::int64_t> size() const;

  /// Applies operations in order to the input columns of each row, which become the output columns. Errors and
  /// exceptions of an operation carry the columns and the row, and arrive in the order of rows. The rows are the same
  /// with any number of workers. If an operation reads its position, the result has no random access: a later Shuffle
  /// holds its rows in memory. Errors: unknown columns; an operation of one tensor that is first over several columns.
  Dataset Map(const MapOperations& operations, const InputColumns& input_columns, const MapOptions& options = {}) const;
  /// Keeps the rows for which `predicate` is true of the input columns, which are all columns if none is named. The
  /// result has no random access. Its size is counted by a run of epoch 0. An epoch without rows is an error.
  Dataset Filter(const RowPredicate& predicate, const InputColumns& input_columns = ColumnNames()) const;
  /// The first `count` rows of each epoch, or all where there are fewer; -1: all. Another count below 1 is an error.
  Dataset Take(std::int64_t count = -1) const;
  /// All but the first `count` >= 0 rows of each epoch. An epoch without rows is an error.
  Dataset Skip(std::int64_t count) const;
  /// Rows side by side: the columns of this data set, then those of the others. An epoch ends with the shortest of
  /// them. Class names are the first that there are. Errors: two columns of one name; other class names.
  Dataset Zip(const std::vector<Dataset>& others) const;
  /// The rows of this data set, then those of the others. Class names are the first that there are. Errors: other
  /// column names, or another order of them; other class names.
  Dataset Concat(const std::vector<Dataset>& others) const;
  /// Disjoint parts that are the same in every epoch. `sizes` are fractions that sum to 1, or numbers of rows that sum
  /// to the size. A fraction gives round(fraction * rows) rows. What is missing is added to the first part. What is too
  /// much is taken from the first part that keeps a row, or a row each from the first parts that keep one. The rows
  /// are dealt in an order that is a function of `seed`, or in their own order without one (MindSpore's `randomize =
  /// false`).
  ///
  /// Errors, in each part's status: no random access, as behind Shuffle, Batch or a generator function; other sums; a
  /// part without rows.
  std::vector<Dataset> Split(const std::vector<double>& sizes, std::optional<std::uint64_t> seed) const;
  /// The rows that `options` choose, as the sources with SamplingOptions do. Without random access num_samples alone is
  /// Take. Errors: no random access otherwise; a number below what is accepted; num_shards without shard_id, or the
  /// reverse; a sampler beside these; what the sampler refuses.
  Dataset Sample(const SamplingOptions& options) const;
  /// A new random order every epoch, a function of (seed, epoch) alone. Over a source without random access (a
  /// generator function, batches, repetitions) the rows of an epoch are held in memory.
  Dataset Shuffle(std::uint64_t seed) const;
  /// Stacks `batch_size` rows into one along a new axis 0. The last batch holds the remainder unless it is dropped.
  /// Errors: batch_size < 1; rows whose specs differ (column, row and both specs are named). With `drop_remainder`, a
  /// batch size beyond the number of rows is an error too: no batch would be left.
  Dataset Batch(std::int64_t batch_size, bool drop_remainder = false) const;
  /// As Batch, for rows whose extents differ: they are padded at their ends. Columns in `pad_info` are padded as it
  /// says, and others must agree. An empty `pad_info` pads every column with 0 to the largest extents of the batch.
  /// Errors beyond Batch's: a column of another rank or type than the batch's first row; a row beyond the stated shape.
  Dataset PaddedBatch(std::int64_t batch_size, bool drop_remainder = false, const PadInfo& pad_info = {}) const;
  /// Batches rows of similar length. Bucket i takes the lengths from boundary i - 1 to below boundary i, and the last
  /// one those from the last boundary. `bucket_batch_sizes` has one entry more than `bucket_boundaries`. A batch comes
  /// when its bucket is full; at the end of the epoch the remainders come in the order of buckets. The length is extent
  /// 0 of the one input column, or what `options.element_length_function` says of the input columns.
  ///
  /// With `pad_to_bucket_boundary` and `drop_remainder` there are at most as many batch shapes as boundaries, if the
  /// other extents agree. Each shape is one Program. Errors: boundaries that are not positive or do not rise; sizes
  /// below 1; an epoch without batches. With `pad_to_bucket_boundary` a row in the last bucket is an error too, with
  /// its row and length.
  Dataset BucketBatchByLength(const InputColumns& column_names, const std::vector<std::int64_t>& bucket_boundaries,
                              const std::vector<std::int64_t>& bucket_batch_sizes,
                              const BucketBatchOptions& options = {}) const;
  /// One epoch holds `count` epochs of this data set, each shuffled anew; from 1 to 2^31 - 1. Behind Filter its size
  /// is counted by a run of all of them. Errors (OUT_OF_RANGE): 64 bits do not count the rows or the epochs.
  Dataset Repeat(std::int64_t count) const;
  /// Up to `depth` >= 1 rows are made ahead on a thread of their own. Errors and exceptions reach the consumer in
  /// order. The source and map functions must not share unguarded state with the consumer.
  Dataset Prefetch(std::int64_t depth = 2) const;

  /// The rows of epoch `epoch` (from 0).
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const;

  /// The batches of epoch `epoch` that are a rank's: see ShareOfUpdates. The batches of all ranks are those that one
  /// rank reads. Where the pipeline has sizes without a run, and random access below a Shuffle, the rows of other ranks
  /// are not made. That holds for all but Filter, generator functions, BucketBatchByLength, a Map that skips rows, and
  /// a Shuffle that holds rows in memory. There all rows are read, and those of other ranks are dropped.
  ///
  /// Errors (INVALID_ARGUMENT): those of CheckShare. Errors (FAILED_PRECONDITION), here or at the end of the epoch: the
  /// epoch has fewer updates than `first_update`.
  absl::StatusOr<std::unique_ptr<ShareIterator>> NewShareIterator(std::int64_t epoch,
                                                                  const ShareOfUpdates& share) const;

  /// The rows of the next epoch by column name; the first call on this data set (and its copies) gives epoch 0.
  NamedRows CreateDictIterator() const;

 private:
  template <typename Node, typename... Arguments>
  Dataset Then(Arguments&&... arguments) const {
    return Keeping(Dataset(std::make_shared<const Node>(node_, std::forward<Arguments>(arguments)...)));
  }
  /// `made` with the class names of this.
  Dataset Keeping(Dataset made) const {
    made.class_names_ = class_names_;
    return made;
  }
  /// This and `others`; the first error of them.
  absl::StatusOr<std::vector<internal::NodePointer>> WithOthers(const char* stage,
                                                                const std::vector<Dataset>& others) const;
  /// Why no batch of `batch_size` rows can be made of this, as far as is known; also this data set's error.
  absl::Status CheckBatch(std::int64_t batch_size, bool drop_remainder) const;
  /// The indices of columns. Errors (NOT_FOUND): an unknown name, with `stage`.
  absl::StatusOr<std::vector<std::size_t>> FindColumns(const char* stage, const ColumnNames& names) const;

  absl::Status status_;
  internal::NodePointer node_;
  std::shared_ptr<const std::vector<std::string>> class_names_;
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
/// MindSpore's GeneratorDataset shuffles by default, and its workers are those of Map here.
Dataset GeneratorDataset(std::vector<Row> rows, ColumnNames column_names, const SamplingOptions& sampling = {});
/// Row i is get(i), for i below `rows`. A function that returns a plain Row fits. It is called from one thread at a
/// time for each iterator.
Dataset GeneratorDataset(std::function<absl::StatusOr<Row>(std::int64_t)> get, std::int64_t rows,
                         ColumnNames column_names, const SamplingOptions& sampling = {});
/// `begin_epoch` is called at the start of every epoch and returns that epoch's generator. Of `sampling` such a source
/// takes num_samples alone.
Dataset GeneratorDataset(std::function<Generator()> begin_epoch, ColumnNames column_names,
                         const SamplingOptions& sampling = {});

template <RandomAccessSource Source>
Dataset GeneratorDataset(Source source, ColumnNames column_names, const SamplingOptions& sampling = {}) {
  auto shared = std::make_shared<const Source>(std::move(source));
  const auto size = static_cast<std::int64_t>(shared->size());
  const auto get = [shared](std::int64_t index) -> absl::StatusOr<Row> {
    return (*shared)[static_cast<std::size_t>(index)];
  };
  return GeneratorDataset(get, size, std::move(column_names), sampling);
}

}  // namespace mpc::data
