// The sources of GeneratorDataset.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/stages.h"

namespace mpc::data::internal {
namespace {

absl::Status CheckRow(const Row& row, const ColumnNames& column_names, std::int64_t index) {
  if (row.size() != column_names.size()) {
    return absl::InvalidArgumentError(absl::StrCat("row ", index, " of the source has ", row.size(),
                                                   " tensors, but there are ", column_names.size(), " columns"));
  }
  for (std::size_t column = 0; column < row.size(); ++column) {
    const Tensor& tensor = row[column];
    if (tensor.concrete() && tensor.status().ok()) continue;
    const std::string reason = !tensor.defined()       ? "is empty"
                               : !tensor.status().ok() ? std::string(tensor.status().message())
                                                       : "is symbolic";
    return absl::InvalidArgumentError(
        absl::StrCat("column '", column_names[column], "', row ", index, " of the source: the tensor ", reason));
  }
  return absl::OkStatus();
}

class GeneratorIterator : public DatasetIterator {
 public:
  GeneratorIterator(Generator generator, ColumnNames column_names)
      : generator_(std::move(generator)), column_names_(std::move(column_names)) {}

  absl::StatusOr<bool> Next(Row* row) override {
    if (generator_ == nullptr) return false;
    absl::StatusOr<std::optional<Row>> next = generator_();
    absl::Status status = next.status();
    if (status.ok() && next->has_value()) status = CheckRow(**next, column_names_, index_);
    if (status.ok() && !next->has_value() && index_ == 0) {
      status = absl::InvalidArgumentError("the generator ended before its first row");
    }
    if (!status.ok() || !next->has_value()) generator_ = nullptr;
    if (!status.ok()) return status;
    if (!next->has_value()) return false;
    *row = *std::move(*next);
    ++index_;
    return true;
  }

 private:
  Generator generator_;
  ColumnNames column_names_;
  std::int64_t index_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> DatasetNode::NewOrderedIterator(
    std::int64_t epoch, std::vector<std::int64_t> order) const {
  const auto size = static_cast<std::int64_t>(order.size());
  return std::make_unique<IndexedIterator>(shared_from_this(), size, std::move(order));
}

absl::StatusOr<bool> IndexedIterator::Next(Row* row) {
  if (position_ >= size_) return false;
  const std::int64_t index = order_ ? (*order_)[static_cast<std::size_t>(position_)] : position_;
  absl::StatusOr<Row> next = node_->Get(index);
  if (!next.ok()) {
    position_ = size_;
    return next.status();
  }
  ++position_;
  *row = *std::move(next);
  return true;
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> RandomAccessNode::NewIterator(std::int64_t epoch) const {
  return std::make_unique<IndexedIterator>(shared_from_this(), size_);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> RandomAccessNode::NewPartIterator(std::int64_t epoch,
                                                                                   const Places& places) const {
  return NewOrderedIterator(epoch, places.ToVector());
}

absl::StatusOr<Row> RandomAccessNode::Get(std::int64_t index) const {
  absl::StatusOr<Row> row = get_(index);
  if (!row.ok()) return row.status();
  if (absl::Status status = CheckRow(*row, column_names(), index); !status.ok()) return status;
  return row;
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> GeneratorNode::NewIterator(std::int64_t epoch) const {
  Generator generator = begin_epoch_();
  if (generator == nullptr) return absl::InvalidArgumentError("the source returned no generator for an epoch");
  return std::make_unique<GeneratorIterator>(std::move(generator), column_names());
}

absl::StatusOr<std::int64_t> CountedNode::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (size_) return *size_;
  absl::StatusOr<std::int64_t> count = Count();
  if (count.ok()) size_ = *count;
  return count;
}

absl::StatusOr<std::int64_t> CountedNode::Count() const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = NewIterator(0);
  if (!iterator.ok()) return iterator.status();
  return CountRows(**iterator, std::numeric_limits<std::int64_t>::max());
}

absl::StatusOr<std::int64_t> CountRows(DatasetIterator& rows, std::int64_t most) {
  std::int64_t count = 0;
  for (Row row; count < most; ++count) {
    absl::StatusOr<bool> more = rows.Next(&row);
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  return count;
}

}  // namespace mpc::data::internal
