#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/data/stages.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::internal {
namespace {

/// Stacks column `column` of `rows` along a new axis 0: one copy a row.
Tensor Stack(const std::vector<Row>& rows, std::size_t column) {
  TensorSpec spec = rows[0][column].spec();
  const std::size_t row_bytes = spec.bytes();
  spec.shape.insert(spec.shape.begin(), static_cast<std::int64_t>(rows.size()));
  runtime::AlignedBuffer buffer(row_bytes * rows.size());
  std::byte* destination = buffer.data();
  for (const Row& row : rows) {
    if (row_bytes != 0) std::memcpy(destination, row[column].bytes().data(), row_bytes);
    destination += row_bytes;
  }
  return mpc::internal::MakeConcrete(std::move(spec), std::move(buffer));
}

class BatchIterator : public DatasetIterator {
 public:
  BatchIterator(std::unique_ptr<DatasetIterator> input, ColumnNames column_names, std::int64_t batch_size,
                bool drop_remainder)
      : input_(std::move(input)),
        column_names_(std::move(column_names)),
        batch_size_(static_cast<std::size_t>(batch_size)),
        drop_remainder_(drop_remainder) {}

  absl::StatusOr<bool> Next(Row* row) override {
    if (input_ == nullptr) return false;
    if (absl::Status status = Gather(); !status.ok()) {
      input_ = nullptr;
      return status;
    }
    if (rows_.size() < batch_size_) input_ = nullptr;
    if (rows_.empty() || (drop_remainder_ && rows_.size() < batch_size_)) {
      const std::int64_t read = rows_read_;
      if (drop_remainder_ && read < static_cast<std::int64_t>(batch_size_)) {
        return BatchTooLarge(static_cast<std::int64_t>(batch_size_), read);
      }
      return false;
    }
    Row batch;
    for (std::size_t column = 0; column < column_names_.size(); ++column) batch.push_back(Stack(rows_, column));
    *row = std::move(batch);
    return true;
  }

 private:
  /// Fills rows_ up to the batch size or the end of the epoch.
  absl::Status Gather() {
    rows_.clear();
    while (rows_.size() < batch_size_) {
      Row row;
      absl::StatusOr<bool> more = input_->Next(&row);
      if (!more.ok()) return more.status();
      if (!*more) break;
      if (!rows_.empty()) {
        if (absl::Status status = CheckSpecs(row); !status.ok()) return status;
      }
      rows_.push_back(std::move(row));
      ++rows_read_;
    }
    return absl::OkStatus();
  }

  absl::Status CheckSpecs(const Row& row) const {
    for (std::size_t column = 0; column < column_names_.size(); ++column) {
      const TensorSpec& first = rows_[0][column].spec();
      const TensorSpec& spec = row[column].spec();
      if (spec == first) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "column '", column_names_[column], "': row ", rows_read_, " of the epoch is ", spec.ToString(), ", but row ",
          rows_read_ - static_cast<std::int64_t>(rows_.size()), " of the same batch is ", first.ToString()));
    }
    return absl::OkStatus();
  }

  std::unique_ptr<DatasetIterator> input_;
  ColumnNames column_names_;
  std::size_t batch_size_;
  bool drop_remainder_;
  std::vector<Row> rows_;
  std::int64_t rows_read_ = 0;
};

}  // namespace

absl::Status BatchTooLarge(std::int64_t batch_size, std::int64_t rows) {
  return absl::InvalidArgumentError(absl::StrCat("batch size ", batch_size, " is larger than the data set (", rows,
                                                 " rows): with drop_remainder no batch is left"));
}

absl::StatusOr<std::int64_t> BatchesOf(std::int64_t rows, std::int64_t batch_size, bool drop_remainder) {
  if (drop_remainder && rows < batch_size) return BatchTooLarge(batch_size, rows);
  return rows / batch_size + (!drop_remainder && rows % batch_size != 0 ? 1 : 0);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> BatchNode::NewIterator(std::int64_t epoch) const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewIterator(epoch);
  if (!input.ok()) return input.status();
  return std::make_unique<BatchIterator>(*std::move(input), column_names(), batch_size_, drop_remainder_);
}

absl::StatusOr<std::int64_t> BatchNode::size() const {
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  return BatchesOf(*rows, batch_size_, drop_remainder_);
}

}  // namespace mpc::data::internal
