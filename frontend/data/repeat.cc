#include <utility>

#include "frontend/data/stages.h"

namespace mpc::data::internal {
namespace {

class RepeatIterator : public DatasetIterator {
 public:
  /// Reads epochs `begin` to `end` - 1 of `input`.
  RepeatIterator(NodePointer input, std::int64_t begin, std::int64_t end)
      : input_(std::move(input)), epoch_(begin), end_(end) {}

  absl::StatusOr<bool> Next(Row* row) override {
    while (epoch_ < end_) {
      absl::StatusOr<bool> more = NextOfEpoch(row);
      if (!more.ok()) epoch_ = end_;
      if (!more.ok() || *more) return more;
      current_ = nullptr;
      ++epoch_;
    }
    return false;
  }

 private:
  absl::StatusOr<bool> NextOfEpoch(Row* row) {
    if (current_ == nullptr) {
      absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = input_->NewIterator(epoch_);
      if (!iterator.ok()) return iterator.status();
      current_ = *std::move(iterator);
    }
    return current_->Next(row);
  }

  NodePointer input_;
  std::int64_t epoch_;
  std::int64_t end_;
  std::unique_ptr<DatasetIterator> current_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> RepeatNode::NewIterator(std::int64_t epoch) const {
  return std::make_unique<RepeatIterator>(input_, epoch * count_, (epoch + 1) * count_);
}

absl::StatusOr<std::int64_t> RepeatNode::size() const {
  absl::StatusOr<std::int64_t> rows = input_->size();
  if (!rows.ok()) return rows.status();
  return *rows * count_;
}

}  // namespace mpc::data::internal
