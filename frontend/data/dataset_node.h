// One stage of a data pipeline. Not part of the public API.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/data/places.h"
#include "frontend/graph/tensor.h"

namespace mpc::data {

/// One tensor a column: a sample, or after Batch a batch.
using Row = std::vector<Tensor>;
using ColumnNames = std::vector<std::string>;

/// The rows of one epoch, in order. Not thread-safe.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  /// Replaces `*row` by the next row; false at the end of the epoch, where `*row` is left as it is. After an error the
  /// iterator is at its end.
  virtual absl::StatusOr<bool> Next(Row* row) = 0;
};

namespace internal {

/// Immutable, shared by datasets and by the threads that iterate over them.
class DatasetNode : public std::enable_shared_from_this<DatasetNode> {
 public:
  explicit DatasetNode(ColumnNames column_names) : column_names_(std::move(column_names)) {}
  virtual ~DatasetNode() = default;

  const ColumnNames& column_names() const { return column_names_; }

  virtual absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const = 0;
  /// Rows of an epoch. Where only a run can tell, it runs an epoch.
  virtual absl::StatusOr<std::int64_t> size() const = 0;
  /// False where size() would run an epoch.
  virtual bool size_is_known() const = 0;

  /// True if Get answers for every index below size().
  virtual bool random_access() const { return false; }
  virtual absl::StatusOr<Row> Get(std::int64_t index) const {
    return absl::UnimplementedError("this data set has no random access");
  }
  /// True if NewOrderedIterator gives rows at any index below size(): all nodes with random access do. Those whose rows
  /// depend on the epoch have no Get.
  virtual bool ordered_access() const { return random_access(); }
  /// Rows order[0], order[1], ... of epoch `epoch`, for nodes with ordered access.
  virtual absl::StatusOr<std::unique_ptr<DatasetIterator>> NewOrderedIterator(std::int64_t epoch,
                                                                              std::vector<std::int64_t> order) const;

  /// True if every epoch has size() rows, known without a run, and NewPartIterator reads the rows asked for alone.
  virtual bool reads_parts() const { return false; }
  /// The rows of epoch `epoch` at `places`, of which none is beyond size(). For nodes that read parts.
  virtual absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                           const Places& places) const {
    return absl::UnimplementedError("this data set does not read parts of an epoch");
  }
  /// True if row `place` is a batch with fewer rows than the batches before it. For nodes that read parts.
  virtual absl::StatusOr<bool> IsShort(std::int64_t place) const { return false; }
  /// Rows of a complete batch. 0: the rows are no batches, or batches of several sizes.
  virtual std::int64_t batch_rows() const { return 0; }

 private:
  ColumnNames column_names_;
};

using NodePointer = std::shared_ptr<const DatasetNode>;

}  // namespace internal
}  // namespace mpc::data
