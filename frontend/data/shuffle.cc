#include <utility>
#include <vector>

#include "frontend/data/permutation.h"
#include "frontend/data/stages.h"

namespace mpc::data::internal {
namespace {

/// The order of an epoch. Errors (RESOURCE_EXHAUSTED): no memory holds it.
absl::StatusOr<std::vector<std::int64_t>> OrderOf(std::int64_t rows, std::uint64_t seed, std::int64_t epoch) {
  return OrderInMemory("Shuffle", rows, [&] { return Permutation(rows, seed, epoch); });
}

/// Rows that are held in memory, in a given order.
class HeldRowsIterator : public DatasetIterator {
 public:
  HeldRowsIterator(std::vector<Row> rows, std::vector<std::int64_t> order)
      : rows_(std::move(rows)), order_(std::move(order)) {}

  absl::StatusOr<bool> Next(Row* row) override {
    if (position_ == order_.size()) return false;
    *row = std::move(rows_[static_cast<std::size_t>(order_[position_++])]);
    return true;
  }

 private:
  std::vector<Row> rows_;
  std::vector<std::int64_t> order_;
  std::size_t position_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> ShuffleNode::NewIterator(std::int64_t epoch) const {
  if (input_->random_access()) {
    absl::StatusOr<std::int64_t> size = input_->size();
    if (!size.ok()) return size.status();
    absl::StatusOr<std::vector<std::int64_t>> order = OrderOf(*size, seed_, epoch);
    if (!order.ok()) return order.status();
    return input_->NewOrderedIterator(epoch, *std::move(order));
  }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewIterator(epoch);
  if (!input.ok()) return input.status();
  std::vector<Row> rows;
  for (Row row;;) {
    absl::StatusOr<bool> more = (*input)->Next(&row);
    if (!more.ok()) return more.status();
    if (!*more) break;
    rows.push_back(std::move(row));
  }
  std::vector<std::int64_t> order = Permutation(static_cast<std::int64_t>(rows.size()), seed_, epoch);
  return std::make_unique<HeldRowsIterator>(std::move(rows), std::move(order));
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> ShuffleNode::NewPartIterator(std::int64_t epoch,
                                                                              const Places& places) const {
  absl::StatusOr<std::int64_t> size = input_->size();
  if (!size.ok()) return size.status();
  absl::StatusOr<std::vector<std::int64_t>> permutation = OrderOf(*size, seed_, epoch);
  if (!permutation.ok()) return permutation.status();
  std::vector<std::int64_t> order = places.ToVector();
  for (std::int64_t& index : order) index = (*permutation)[static_cast<std::size_t>(index)];
  return input_->NewOrderedIterator(epoch, std::move(order));
}

}  // namespace mpc::data::internal
