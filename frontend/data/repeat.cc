#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/stages.h"

namespace mpc::data::internal {
namespace {

class RepeatIterator : public DatasetIterator {
 public:
  /// Reads epochs `begin` to `end` - 1 of `input`: all rows, or those at `places` of these epochs of `rows` rows each.
  RepeatIterator(NodePointer input, std::int64_t begin, std::int64_t end, std::optional<Places> places = std::nullopt,
                 std::int64_t rows = 0)
      : input_(std::move(input)), epoch_(begin), end_(end), places_(places), rows_(rows) {}

  absl::StatusOr<bool> Next(Row* row) override {
    while (epoch_ < end_) {
      absl::StatusOr<bool> more = NextOfEpoch(row);
      if (!more.ok()) epoch_ = end_;
      if (!more.ok() || *more) return more;
      current_ = nullptr;
      ++epoch_;
      if (places_) places_ = places_->Moved(-rows_);
    }
    return false;
  }

 private:
  absl::StatusOr<bool> NextOfEpoch(Row* row) {
    if (current_ == nullptr) {
      const std::optional<Places> part = places_ ? std::optional<Places>(places_->Within(rows_)) : std::nullopt;
      if (part && part->size() == 0) return false;
      absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator =
          part ? input_->NewPartIterator(epoch_, *part) : input_->NewIterator(epoch_);
      if (!iterator.ok()) return iterator.status();
      current_ = *std::move(iterator);
    }
    return current_->Next(row);
  }

  NodePointer input_;
  std::int64_t epoch_;
  std::int64_t end_;
  std::optional<Places> places_;  ///< from the beginning of epoch_
  std::int64_t rows_;
  std::unique_ptr<DatasetIterator> current_;
};

/// a * b. Errors (OUT_OF_RANGE): 64 bits do not count `what`.
absl::StatusOr<std::int64_t> Product(std::int64_t a, std::int64_t b, const char* what) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return absl::OutOfRangeError(absl::StrCat("Repeat: ", a, " x ", b, " ", what, " are more than 64 bits count"));
}

/// Where the epochs of the input end that one epoch reads.
absl::StatusOr<std::int64_t> EndOf(std::int64_t epoch, std::int64_t count) {
  return Product(epoch + 1, count, "epochs");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> RepeatNode::NewIterator(std::int64_t epoch) const {
  absl::StatusOr<std::int64_t> end = EndOf(epoch, count_);
  if (!end.ok()) return end.status();
  return std::make_unique<RepeatIterator>(input_, *end - count_, *end);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> RepeatNode::NewPartIterator(std::int64_t epoch,
                                                                             const Places& places) const {
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  absl::StatusOr<std::int64_t> end = EndOf(epoch, count_);
  if (!end.ok()) return end.status();
  return std::make_unique<RepeatIterator>(input_, *end - count_, *end, places, *rows);
}

absl::StatusOr<bool> RepeatNode::IsShort(std::int64_t place) const {
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  return input_->IsShort(place % *rows);
}

absl::StatusOr<std::int64_t> RepeatNode::size() const {
  if (!input_->size_is_known()) return CountedNode::size();
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  return Product(*rows, count_, "rows");
}

}  // namespace mpc::data::internal
