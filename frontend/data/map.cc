#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/stages.h"

namespace mpc::data::internal {
namespace {

class MapIterator : public DatasetIterator {
 public:
  MapIterator(std::shared_ptr<const MapNode> node, std::unique_ptr<DatasetIterator> input, std::int64_t epoch)
      : node_(std::move(node)), input_(std::move(input)), position_{.epoch = epoch} {}

  absl::StatusOr<bool> Next(Row* row) override {
    if (input_ == nullptr) return false;
    Row next;
    absl::StatusOr<bool> more = input_->Next(&next);
    absl::Status status = more.status();
    if (status.ok() && *more) status = node_->Apply(position_, &next);
    ++position_.row;
    if (!status.ok()) {
      input_ = nullptr;
      return status;
    }
    if (*more) *row = std::move(next);
    return *more;
  }

 private:
  std::shared_ptr<const MapNode> node_;
  std::unique_ptr<DatasetIterator> input_;
  RowPosition position_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> MapNode::NewIterator(std::int64_t epoch) const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewIterator(epoch);
  if (!input.ok()) return input.status();
  return std::make_unique<MapIterator>(shared_from_this(), *std::move(input), epoch);
}

absl::StatusOr<Row> MapNode::Get(std::int64_t index) const {
  absl::StatusOr<Row> row = input_->Get(index);
  if (!row.ok()) return row.status();
  if (absl::Status status = Apply({.row = index}, &*row); !status.ok()) return status;
  return row;
}

absl::Status MapNode::Apply(const RowPosition& position, Row* row) const {
  absl::StatusOr<Tensor> mapped = function_((*row)[column_], position);
  absl::Status status = mapped.status();
  if (status.ok()) status = mapped->status();
  if (status.ok() && !mapped->concrete()) status = absl::InvalidArgumentError("the map function returned no data");
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("column '", column_names()[column_], "', row ", position.row, ": ",
                                                    status.message()));
  }
  (*row)[column_] = *std::move(mapped);
  return absl::OkStatus();
}

}  // namespace mpc::data::internal
