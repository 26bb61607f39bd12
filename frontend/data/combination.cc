#include "frontend/data/combination.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace mpc::data::internal {
namespace {

using Iterators = std::vector<std::unique_ptr<DatasetIterator>>;

class ZipIterator : public DatasetIterator {
 public:
  explicit ZipIterator(Iterators inputs) : inputs_(std::move(inputs)) {}

  absl::StatusOr<bool> Next(Row* row) override {
    Row zipped;
    for (const auto& input : inputs_) {
      Row part;
      absl::StatusOr<bool> more = input->Next(&part);
      if (!more.ok() || !*more) {
        inputs_.clear();
        return more;
      }
      std::move(part.begin(), part.end(), std::back_inserter(zipped));
    }
    if (inputs_.empty()) return false;
    *row = std::move(zipped);
    return true;
  }

 private:
  Iterators inputs_;
};

class ConcatIterator : public DatasetIterator {
 public:
  /// All rows, or those at `places`.
  ConcatIterator(std::vector<NodePointer> inputs, std::int64_t epoch, std::optional<Places> places = std::nullopt)
      : inputs_(std::move(inputs)), epoch_(epoch), places_(places) {}

  absl::StatusOr<bool> Next(Row* row) override {
    while (next_ < inputs_.size() || current_ != nullptr) {
      if (current_ == nullptr) {
        absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = Open(*inputs_[next_++]);
        if (!iterator.ok()) return Stop(iterator.status());
        current_ = *std::move(iterator);
      }
      absl::StatusOr<bool> more = current_->Next(row);
      if (!more.ok()) return Stop(more.status());
      if (*more) return true;
      current_ = nullptr;
    }
    return false;
  }

 private:
  absl::StatusOr<std::unique_ptr<DatasetIterator>> Open(const DatasetNode& input) {
    if (!places_) return input.NewIterator(epoch_);
    absl::StatusOr<std::int64_t> rows = input.size();
    if (!rows.ok()) return rows.status();
    const Places places = places_->Within(*rows);
    places_ = places_->Moved(-*rows);
    return input.NewPartIterator(epoch_, places);
  }

  absl::Status Stop(absl::Status status) {
    next_ = inputs_.size();
    current_ = nullptr;
    return status;
  }

  std::vector<NodePointer> inputs_;
  std::int64_t epoch_;
  std::optional<Places> places_;  ///< from the beginning of the next input
  std::size_t next_ = 0;
  std::unique_ptr<DatasetIterator> current_;
};

bool AllSizesKnown(const std::vector<NodePointer>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const NodePointer& input) { return input->size_is_known(); });
}

bool AllReadParts(const std::vector<NodePointer>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const NodePointer& input) { return input->reads_parts(); });
}

bool AllRandomAccess(const std::vector<NodePointer>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const NodePointer& input) { return input->random_access(); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> ZipNode::NewIterator(std::int64_t epoch) const {
  Iterators iterators;
  for (const NodePointer& input : inputs_) {
    absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = input->NewIterator(epoch);
    if (!iterator.ok()) return iterator.status();
    iterators.push_back(*std::move(iterator));
  }
  return std::make_unique<ZipIterator>(std::move(iterators));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> ZipNode::NewOrderedIterator(std::int64_t epoch,
                                                                             std::vector<std::int64_t> order) const {
  Iterators iterators;
  for (const NodePointer& input : inputs_) {
    absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = input->NewOrderedIterator(epoch, order);
    if (!iterator.ok()) return iterator.status();
    iterators.push_back(*std::move(iterator));
  }
  return std::make_unique<ZipIterator>(std::move(iterators));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> ZipNode::NewPartIterator(std::int64_t epoch,
                                                                          const Places& places) const {
  Iterators iterators;
  for (const NodePointer& input : inputs_) {
    absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = input->NewPartIterator(epoch, places);
    if (!iterator.ok()) return iterator.status();
    iterators.push_back(*std::move(iterator));
  }
  return std::make_unique<ZipIterator>(std::move(iterators));
}

bool ZipNode::reads_parts() const { return AllReadParts(inputs_); }

absl::StatusOr<bool> ZipNode::IsShort(std::int64_t place) const {
  for (const NodePointer& input : inputs_) {
    absl::StatusOr<bool> is_short = input->IsShort(place);
    if (!is_short.ok() || *is_short) return is_short;
  }
  return false;
}

std::int64_t ZipNode::batch_rows() const { return inputs_[0]->batch_rows(); }

absl::StatusOr<std::int64_t> ZipNode::Count() const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  Iterators unknown;
  for (const NodePointer& input : inputs_) {
    if (input->size_is_known()) {
      absl::StatusOr<std::int64_t> rows = input->size();
      if (!rows.ok()) return rows.status();
      least = std::min(least, *rows);
    } else {
      absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = input->NewIterator(0);
      if (!iterator.ok()) return iterator.status();
      unknown.push_back(*std::move(iterator));
    }
  }
  if (unknown.empty()) return least;
  ZipIterator rows(std::move(unknown));
  return CountRows(rows, least);
}

bool ZipNode::size_is_known() const { return AllSizesKnown(inputs_); }

bool ZipNode::random_access() const { return AllRandomAccess(inputs_); }

absl::StatusOr<Row> ZipNode::Get(std::int64_t index) const {
  Row zipped;
  for (const NodePointer& input : inputs_) {
    absl::StatusOr<Row> part = input->Get(index);
    if (!part.ok()) return part.status();
    std::move(part->begin(), part->end(), std::back_inserter(zipped));
  }
  return zipped;
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> ConcatNode::NewIterator(std::int64_t epoch) const {
  return std::make_unique<ConcatIterator>(inputs_, epoch);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> ConcatNode::NewPartIterator(std::int64_t epoch,
                                                                             const Places& places) const {
  return std::make_unique<ConcatIterator>(inputs_, epoch, places);
}

bool ConcatNode::reads_parts() const { return AllReadParts(inputs_); }

absl::StatusOr<bool> ConcatNode::IsShort(std::int64_t place) const {
  for (const NodePointer& input : inputs_) {
    absl::StatusOr<std::int64_t> rows = input->size();
    if (!rows.ok()) return rows.status();
    if (place < *rows) return input->IsShort(place);
    place -= *rows;
  }
  return false;
}

std::int64_t ConcatNode::batch_rows() const {
  const std::int64_t rows = inputs_[0]->batch_rows();
  const auto same = [rows](const NodePointer& input) { return input->batch_rows() == rows; };
  return std::all_of(inputs_.begin(), inputs_.end(), same) ? rows : 0;
}

absl::StatusOr<std::int64_t> ConcatNode::size() const {
  std::int64_t sum = 0;
  for (const NodePointer& input : inputs_) {
    absl::StatusOr<std::int64_t> rows = input->size();
    if (!rows.ok()) return rows.status();
    if (__builtin_add_overflow(sum, *rows, &sum)) {
      return absl::OutOfRangeError("Concat: the rows of its data sets are more than 64 bits count");
    }
  }
  return sum;
}

bool ConcatNode::size_is_known() const { return AllSizesKnown(inputs_); }

bool ConcatNode::random_access() const { return AllRandomAccess(inputs_); }

absl::StatusOr<Row> ConcatNode::Get(std::int64_t index) const {
  for (const NodePointer& input : inputs_) {
    absl::StatusOr<std::int64_t> rows = input->size();
    if (!rows.ok()) return rows.status();
    if (index < *rows) return input->Get(index);
    index -= *rows;
  }
  return absl::OutOfRangeError("there is no such row");
}

}  // namespace mpc::data::internal
