// The stages behind Dataset's methods. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "frontend/data/dataset.h"
#include "frontend/data/dataset_node.h"

namespace mpc::data::internal {

/// Reads node.Get(order(0)), node.Get(order(1)), ...
class IndexedIterator : public DatasetIterator {
 public:
  /// The identity order if `order` is not given.
  IndexedIterator(NodePointer node, std::int64_t size, std::optional<std::vector<std::int64_t>> order = std::nullopt)
      : node_(std::move(node)), size_(size), order_(std::move(order)) {}
  absl::StatusOr<bool> Next(Row* row) override;

 private:
  NodePointer node_;
  std::int64_t size_;
  std::optional<std::vector<std::int64_t>> order_;
  std::int64_t position_ = 0;
};

/// A source with random access.
class RandomAccessNode : public DatasetNode {
 public:
  RandomAccessNode(std::int64_t size, std::function<absl::StatusOr<Row>(std::int64_t)> get, ColumnNames column_names)
      : DatasetNode(std::move(column_names)), size_(size), get_(std::move(get)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override { return size_; }
  bool size_is_known() const override { return true; }
  bool random_access() const override { return true; }
  absl::StatusOr<Row> Get(std::int64_t index) const override;
  bool reads_parts() const override { return true; }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;

 private:
  std::int64_t size_;
  std::function<absl::StatusOr<Row>(std::int64_t)> get_;
};

/// A node whose size only a run can tell: the first call of size() counts the rows of epoch 0. Other epochs may have
/// other sizes, so that the size stays unknown to the stages behind it.
class CountedNode : public DatasetNode {
 public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::int64_t> size() const override;
  bool size_is_known() const override { return false; }

 protected:
  /// Runs epoch 0. The result is kept.
  virtual absl::StatusOr<std::int64_t> Count() const;

 private:
  mutable std::mutex mutex_;
  mutable std::optional<std::int64_t> size_;  ///< guarded by mutex_
};

/// A source that is read from front to back.
class GeneratorNode : public CountedNode {
 public:
  GeneratorNode(std::function<Generator()> begin_epoch, ColumnNames column_names)
      : CountedNode(std::move(column_names)), begin_epoch_(std::move(begin_epoch)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;

 private:
  std::function<Generator()> begin_epoch_;
};

class ShuffleNode : public DatasetNode {
 public:
  ShuffleNode(NodePointer input, std::uint64_t seed)
      : DatasetNode(input->column_names()), input_(std::move(input)), seed_(seed) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override { return input_->size(); }
  bool size_is_known() const override { return input_->size_is_known(); }
  bool reads_parts() const override { return input_->random_access(); }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;
  std::int64_t batch_rows() const override { return input_->batch_rows(); }

 private:
  NodePointer input_;
  std::uint64_t seed_;
};

/// Where only a run can tell the size of the input, all epochs that epoch 0 reads are counted.
class RepeatNode : public CountedNode {
 public:
  RepeatNode(NodePointer input, std::int64_t count)
      : CountedNode(input->column_names()), input_(std::move(input)), count_(count) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override;
  bool size_is_known() const override { return input_->size_is_known(); }
  bool reads_parts() const override { return input_->reads_parts(); }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;
  absl::StatusOr<bool> IsShort(std::int64_t place) const override;
  std::int64_t batch_rows() const override { return input_->batch_rows(); }

 private:
  NodePointer input_;
  std::int64_t count_;
};

class PrefetchNode : public DatasetNode {
 public:
  PrefetchNode(NodePointer input, std::int64_t depth)
      : DatasetNode(input->column_names()), input_(std::move(input)), depth_(static_cast<std::size_t>(depth)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override { return input_->size(); }
  bool size_is_known() const override { return input_->size_is_known(); }
  bool reads_parts() const override { return input_->reads_parts(); }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;
  absl::StatusOr<bool> IsShort(std::int64_t place) const override { return input_->IsShort(place); }
  std::int64_t batch_rows() const override { return input_->batch_rows(); }

 private:
  NodePointer input_;
  std::size_t depth_;
};

/// Rows that `rows` gives before it ends, `most` at most. It is read no further.
absl::StatusOr<std::int64_t> CountRows(DatasetIterator& rows, std::int64_t most);

/// Errors (INVALID_ARGUMENT): no names, an empty one, two that are equal.
absl::Status CheckColumnNames(const ColumnNames& column_names);

/// A data set in error: `what` must be at least 1.
Dataset AtLeastOneError(const char* what, std::int64_t given);

}  // namespace mpc::data::internal
