// Batches: Batch, PaddedBatch and BucketBatchByLength. Not part of the public API.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/data/pad_info.h"
#include "frontend/data/stages.h"

namespace mpc::data::internal {

/// How one column of a batch is padded.
struct ColumnPadding {
  bool padded = false;         ///< false: the rows must agree
  std::optional<Shape> shape;  ///< as in Padding
  double value = 0;
  bool all_axes_to_boundary = false;    ///< extents that are open take the boundary's, where there is one
  bool first_axis_to_boundary = false;  ///< extent 0 alone does
};

/// By column. Errors (INVALID_ARGUMENT, NOT_FOUND): a column that does not exist; an extent below -1.
absl::StatusOr<std::vector<ColumnPadding>> PaddingOf(const ColumnNames& columns, const PadInfo& pad_info);

/// Rows of a batch that is being gathered, with their places in the epoch.
struct GatheredRows {
  std::vector<Row> rows;
  std::vector<std::int64_t> places;
};

/// One batch. `boundary_extent` is what extents become that are padded to a bucket's boundary. Errors name the column,
/// the row, what it is and what the batch takes.
absl::StatusOr<Row> PadAndStack(const GatheredRows& gathered, const ColumnNames& columns,
                                const std::vector<ColumnPadding>& padding,
                                std::optional<std::int64_t> boundary_extent = std::nullopt);

/// The error of a batch that no batch can be made of.
absl::Status BatchTooLarge(std::int64_t batch_size, std::int64_t rows);

/// Batch and PaddedBatch: batches of consecutive rows.
class BatchNode : public DatasetNode {
 public:
  BatchNode(NodePointer input, std::int64_t batch_size, bool drop_remainder, std::vector<ColumnPadding> padding)
      : DatasetNode(input->column_names()),
        input_(std::move(input)),
        batch_size_(batch_size),
        drop_remainder_(drop_remainder),
        padding_(std::move(padding)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override;
  bool size_is_known() const override { return input_->size_is_known(); }
  bool reads_parts() const override { return input_->reads_parts(); }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;
  absl::StatusOr<bool> IsShort(std::int64_t place) const override;
  std::int64_t batch_rows() const override { return batch_size_; }

 private:
  NodePointer input_;
  std::int64_t batch_size_;
  bool drop_remainder_;
  std::vector<ColumnPadding> padding_;
};

/// The buckets of BucketBatchByLength.
struct Buckets {
  std::vector<std::size_t> columns;  ///< what tells the length
  std::vector<std::int64_t> boundaries;
  std::vector<std::int64_t> batch_sizes;
  std::vector<ColumnPadding> padding;
  BucketBatchOptions options;
};

class BucketBatchNode : public CountedNode {
 public:
  BucketBatchNode(NodePointer input, Buckets buckets)
      : CountedNode(input->column_names()), input_(std::move(input)), buckets_(std::move(buckets)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;

  /// The bucket of row `place` of the epoch.
  absl::StatusOr<std::size_t> BucketOf(const Row& row, std::int64_t place) const;
  const Buckets& buckets() const { return buckets_; }
  std::int64_t batch_rows() const override;

 private:
  absl::StatusOr<std::int64_t> LengthOf(const Row& row) const;

  NodePointer input_;
  Buckets buckets_;
};

}  // namespace mpc::data::internal
