#include "frontend/data/batch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mpc::data::internal {
namespace {

/// The batches of `rows` rows, or BatchTooLarge.
absl::StatusOr<std::int64_t> BatchesOf(std::int64_t rows, std::int64_t batch_size, bool drop_remainder) {
  if (drop_remainder && rows < batch_size) return BatchTooLarge(batch_size, rows);
  return rows / batch_size + (!drop_remainder && rows % batch_size != 0 ? 1 : 0);
}

/// Whether 64 bits count the rows of a block of batches, and where it begins.
bool CountsRows(const Places& places, std::int64_t batch_rows) {
  std::int64_t unused = 0;
  return !__builtin_mul_overflow(places.phase, batch_rows, &unused) &&
         !__builtin_mul_overflow(places.period, batch_rows, &unused);
}

class BatchIterator : public DatasetIterator {
 public:
  /// `place_of`: null where the batches are all of an epoch.
  BatchIterator(std::unique_ptr<DatasetIterator> input, PlaceOf place_of, ColumnNames column_names,
                std::int64_t batch_size, bool drop_remainder, std::vector<ColumnPadding> padding)
      : input_(std::move(input)),
        place_of_(std::move(place_of)),
        column_names_(std::move(column_names)),
        batch_size_(batch_size),
        drop_remainder_(drop_remainder),
        padding_(std::move(padding)) {}

  absl::StatusOr<bool> Next(Row* row) override {
    // An error leaves no input.
    std::unique_ptr<DatasetIterator> input = std::move(input_);
    if (input == nullptr) return false;
    GatheredRows gathered;
    while (static_cast<std::int64_t>(gathered.rows.size()) < batch_size_) {
      Row next;
      absl::StatusOr<bool> more = input->Next(&next);
      if (!more.ok()) return more.status();
      if (!*more) break;
      gathered.rows.push_back(std::move(next));
      gathered.places.push_back(place_of_ ? place_of_(rows_read_) : rows_read_);
      ++rows_read_;
    }
    const bool full = static_cast<std::int64_t>(gathered.rows.size()) == batch_size_;
    if (drop_remainder_ && !place_of_ && rows_read_ < batch_size_) return BatchTooLarge(batch_size_, rows_read_);
    if (gathered.rows.empty() || (drop_remainder_ && !full)) return false;
    absl::StatusOr<Row> batch = PadAndStack(gathered, column_names_, padding_);
    if (!batch.ok()) return batch.status();
    if (full) input_ = std::move(input);
    *row = *std::move(batch);
    return true;
  }

 private:
  std::unique_ptr<DatasetIterator> input_;
  PlaceOf place_of_;
  ColumnNames column_names_;
  std::int64_t batch_size_;
  bool drop_remainder_;
  std::vector<ColumnPadding> padding_;
  std::int64_t rows_read_ = 0;
};

}  // namespace

absl::Status BatchTooLarge(std::int64_t batch_size, std::int64_t rows) {
  return absl::InvalidArgumentError(absl::StrCat("batch size ", batch_size, " is larger than the data set (", rows,
                                                 " rows): with drop_remainder no batch is left"));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> BatchNode::NewIterator(std::int64_t epoch) const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewIterator(epoch);
  if (!input.ok()) return input.status();
  return std::make_unique<BatchIterator>(*std::move(input), nullptr, column_names(), batch_size_, drop_remainder_,
                                         padding_);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> BatchNode::NewPartIterator(std::int64_t epoch,
                                                                            const Places& places) const {
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  // A batch of more than all rows is the only one, at place 0.
  const std::int64_t rows_each = std::min(batch_size_, *rows);
  if (!CountsRows(places, rows_each)) {
    return absl::OutOfRangeError(absl::StrCat("Batch: updates of ", places.period, " batches of ", rows_each,
                                              " rows are more rows than 64 bits count"));
  }
  const Places of_rows = places.OfRows(rows_each, *rows);
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewPartIterator(epoch, of_rows);
  if (!input.ok()) return input.status();
  return std::make_unique<BatchIterator>(*std::move(input), of_rows.Function(), column_names(), batch_size_,
                                         drop_remainder_, padding_);
}

absl::StatusOr<bool> BatchNode::IsShort(std::int64_t place) const {
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  return place >= *rows / batch_size_;
}

absl::StatusOr<std::int64_t> BatchNode::size() const {
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  return BatchesOf(*rows, batch_size_, drop_remainder_);
}

}  // namespace mpc::data::internal
