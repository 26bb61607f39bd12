#include "frontend/data/selection.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/map_node.h"
#include "frontend/data/permutation.h"

namespace mpc::data::internal {
namespace {

/// Reads over the rows before a range.
class RangeIterator : public DatasetIterator {
 public:
  RangeIterator(std::unique_ptr<DatasetIterator> input, std::int64_t begin, std::int64_t count)
      : input_(std::move(input)), begin_(begin), left_(count) {}

  absl::StatusOr<bool> Next(Row* row) override {
    for (; skipped_ < begin_; ++skipped_) {
      Row unused;
      absl::StatusOr<bool> more = input_->Next(&unused);
      if (more.ok() && !*more) more = NothingLeft(begin_, skipped_);
      if (!more.ok()) return Stop(more.status());
    }
    if (left_ == 0) return false;
    absl::StatusOr<bool> more = input_->Next(row);
    if (more.ok() && !*more && !any_ && begin_ > 0) more = NothingLeft(begin_, skipped_);
    if (!more.ok()) return Stop(more.status());
    any_ = true;
    left_ = *more ? left_ - 1 : 0;
    return more;
  }

 private:
  absl::Status Stop(absl::Status status) {
    skipped_ = begin_;
    left_ = 0;
    return status;
  }

  std::unique_ptr<DatasetIterator> input_;
  std::int64_t begin_;
  std::int64_t left_;
  std::int64_t skipped_ = 0;
  bool any_ = false;
};

class FilterIterator : public DatasetIterator {
 public:
  FilterIterator(std::shared_ptr<const FilterNode> node, PositionedRows rows)
      : node_(std::move(node)), rows_(std::move(rows)) {}

  absl::StatusOr<bool> Next(Row* row) override {
    // The end, an error and an exception leave no rows.
    std::optional<PositionedRows> rows = std::exchange(rows_, std::nullopt);
    if (!rows) return false;
    for (Row next;; ++read_) {
      RowPosition position;
      absl::StatusOr<bool> more = rows->Next(&next, &position);
      if (more.ok() && !*more && !any_) {
        return absl::InvalidArgumentError(absl::StrCat("Filter leaves none of the ", read_, " rows of the epoch"));
      }
      if (!more.ok() || !*more) return more;
      absl::StatusOr<bool> keeps = node_->Keeps(position, next);
      if (!keeps.ok()) return keeps.status();
      if (!*keeps) continue;
      any_ = true;
      rows_ = std::move(rows);
      *row = std::move(next);
      return true;
    }
  }

 private:
  std::shared_ptr<const FilterNode> node_;
  std::optional<PositionedRows> rows_;
  std::int64_t read_ = 0;
  bool any_ = false;
};

}  // namespace

absl::Status NothingLeft(std::int64_t skipped, std::int64_t rows) {
  return absl::InvalidArgumentError(absl::StrCat("Skip(", skipped, ") leaves no row: the data set has ", rows));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> RangeNode::NewIterator(std::int64_t epoch) const {
  if (input_->random_access()) {
    absl::StatusOr<std::int64_t> rows = size();
    if (!rows.ok()) return rows.status();
    absl::StatusOr<std::vector<std::int64_t>> order = OrderInMemory("Take or Skip", *rows, [&] {
      std::vector<std::int64_t> rising(static_cast<std::size_t>(*rows));
      std::iota(rising.begin(), rising.end(), begin_);
      return rising;
    });
    if (!order.ok()) return order.status();
    return input_->NewOrderedIterator(epoch, *std::move(order));
  }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewIterator(epoch);
  if (!input.ok()) return input.status();
  return std::make_unique<RangeIterator>(*std::move(input), begin_, count_);
}

absl::StatusOr<std::int64_t> RangeNode::size() const {
  if (!input_->size_is_known() && count_ != kAll) return CountedNode::size();
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  if (*rows <= begin_) return NothingLeft(begin_, *rows);
  return std::min(*rows - begin_, count_);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> RangeNode::NewOrderedIterator(std::int64_t epoch,
                                                                               std::vector<std::int64_t> order) const {
  for (std::int64_t& index : order) index += begin_;
  return input_->NewOrderedIterator(epoch, std::move(order));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> RangeNode::NewPartIterator(std::int64_t epoch,
                                                                            const Places& places) const {
  return input_->NewPartIterator(epoch, places.Moved(begin_));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> SubsetNode::NewPartIterator(std::int64_t epoch,
                                                                             const Places& places) const {
  return NewOrderedIterator(epoch, places.ToVector());
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> SubsetNode::NewOrderedIterator(std::int64_t epoch,
                                                                                std::vector<std::int64_t> order) const {
  for (std::int64_t& index : order) index = indices_[static_cast<std::size_t>(index)];
  return input_->NewOrderedIterator(epoch, std::move(order));
}

absl::StatusOr<std::vector<std::int64_t>> SampledNode::Draw(std::int64_t epoch) const {
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  absl::StatusOr<std::vector<std::int64_t>> indices = sampler_.Indices(*rows, epoch);
  if (!indices.ok() || static_cast<std::int64_t>(indices->size()) == samples_) return indices;
  return absl::InvalidArgumentError(absl::StrCat("the sampler draws ", indices->size(), " rows in epoch ", epoch,
                                                 ", but ", samples_, " in epoch 0; accepted is one number"));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> SampledNode::NewIterator(std::int64_t epoch) const {
  absl::StatusOr<std::vector<std::int64_t>> indices = Draw(epoch);
  if (!indices.ok()) return indices.status();
  return input_->NewOrderedIterator(epoch, *std::move(indices));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> SampledNode::NewPartIterator(std::int64_t epoch,
                                                                              const Places& places) const {
  absl::StatusOr<std::vector<std::int64_t>> indices = Draw(epoch);
  if (!indices.ok()) return indices.status();
  std::vector<std::int64_t> order = places.ToVector();
  for (std::int64_t& index : order) index = (*indices)[static_cast<std::size_t>(index)];
  return input_->NewOrderedIterator(epoch, std::move(order));
}

FilterNode::FilterNode(NodePointer input, RowPredicate predicate, std::vector<std::size_t> columns)
    : CountedNode(input->column_names()),
      input_(std::move(input)),
      predicate_(std::move(predicate)),
      columns_(std::move(columns)) {
  for (std::size_t column : columns_) input_columns_.push_back(column_names()[column]);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> FilterNode::NewIterator(std::int64_t epoch) const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewIterator(epoch);
  if (!input.ok()) return input.status();
  return std::make_unique<FilterIterator>(std::static_pointer_cast<const FilterNode>(shared_from_this()),
                                          PositionedRows(*std::move(input), epoch, nullptr));
}

absl::StatusOr<bool> FilterNode::Keeps(const RowPosition& position, const Row& row) const {
  Row given;
  for (std::size_t column : columns_) given.push_back(row[column]);
  const auto where = [&] { return ColumnsAndRow(input_columns_, position.row); };
  absl::StatusOr<bool> keeps = CallUser([&] { return predicate_.Apply(given, position); }, where);
  if (keeps.ok()) return keeps;
  return absl::Status(keeps.status().code(), absl::StrCat(where(), ": ", keeps.status().message()));
}

}  // namespace mpc::data::internal
