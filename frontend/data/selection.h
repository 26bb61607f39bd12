// The stages that leave rows out: Take, Skip, Split, samplers and Filter. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/data/map_operation.h"
#include "frontend/data/sampler.h"
#include "frontend/data/stages.h"

namespace mpc::data::internal {

/// Rows begin .. begin + count - 1 of each epoch, or as many of them as there are. Where only a run can tell the size
/// of the input, those rows alone are read to count them: the input may be endless.
class RangeNode : public CountedNode {
 public:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  RangeNode(NodePointer input, std::int64_t begin, std::int64_t count)
      : CountedNode(input->column_names()), input_(std::move(input)), begin_(begin), count_(count) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override;
  bool size_is_known() const override { return input_->size_is_known(); }
  bool random_access() const override { return input_->random_access(); }
  absl::StatusOr<Row> Get(std::int64_t index) const override { return input_->Get(begin_ + index); }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewOrderedIterator(std::int64_t epoch,
                                                                      std::vector<std::int64_t> order) const override;
  bool reads_parts() const override { return input_->reads_parts(); }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;
  absl::StatusOr<bool> IsShort(std::int64_t place) const override { return input_->IsShort(begin_ + place); }
  std::int64_t batch_rows() const override { return input_->batch_rows(); }

 private:
  NodePointer input_;
  std::int64_t begin_;
  std::int64_t count_;
};

/// The error of a Skip that leaves no row of `rows`.
absl::Status NothingLeft(std::int64_t skipped, std::int64_t rows);

/// Rows indices[0], indices[1], ... of a node with ordered access.
class SubsetNode : public DatasetNode {
 public:
  SubsetNode(NodePointer input, std::vector<std::int64_t> indices)
      : DatasetNode(input->column_names()), input_(std::move(input)), indices_(std::move(indices)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override {
    return input_->NewOrderedIterator(epoch, indices_);
  }
  absl::StatusOr<std::int64_t> size() const override { return static_cast<std::int64_t>(indices_.size()); }
  bool size_is_known() const override { return true; }
  bool random_access() const override { return input_->random_access(); }
  bool ordered_access() const override { return true; }
  absl::StatusOr<Row> Get(std::int64_t index) const override {
    return input_->Get(indices_[static_cast<std::size_t>(index)]);
  }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewOrderedIterator(std::int64_t epoch,
                                                                      std::vector<std::int64_t> order) const override;
  bool reads_parts() const override { return true; }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;

 private:
  NodePointer input_;
  std::vector<std::int64_t> indices_;
};

/// Rows of a node with ordered access that a sampler draws anew in each epoch.
class SampledNode : public DatasetNode {
 public:
  /// `samples` is what the sampler draws in each epoch.
  SampledNode(NodePointer input, Sampler sampler, std::int64_t samples)
      : DatasetNode(input->column_names()), input_(std::move(input)), sampler_(std::move(sampler)), samples_(samples) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override { return samples_; }
  bool size_is_known() const override { return true; }
  bool reads_parts() const override { return true; }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;

 private:
  /// Errors (INVALID_ARGUMENT): the sampler's, and another number of rows than `samples`.
  absl::StatusOr<std::vector<std::int64_t>> Draw(std::int64_t epoch) const;

  NodePointer input_;
  Sampler sampler_;
  std::int64_t samples_;
};

class FilterNode : public CountedNode {
 public:
  FilterNode(NodePointer input, RowPredicate predicate, std::vector<std::size_t> columns);
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;

  absl::StatusOr<bool> Keeps(const RowPosition& position, const Row& row) const;
  std::int64_t batch_rows() const override { return input_->batch_rows(); }

 private:
  NodePointer input_;
  RowPredicate predicate_;
  std::vector<std::size_t> columns_;
  ColumnNames input_columns_;
};

/// The indices of each part of Dataset::Split.
absl::StatusOr<std::vector<std::vector<std::int64_t>>> SplitIndices(const DatasetNode& node,
                                                                    const std::vector<double>& sizes,
                                                                    std::optional<std::uint64_t> seed);

}  // namespace mpc::data::internal
