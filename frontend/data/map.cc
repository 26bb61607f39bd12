#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/map_node.h"

namespace mpc::data::internal {
namespace {

class MapIterator : public DatasetIterator {
 public:
  MapIterator(std::shared_ptr<const MapNode> node, PositionedRows rows)
      : node_(std::move(node)), rows_(std::move(rows)) {}

  absl::StatusOr<bool> Next(Row* row) override {
    // An error or an exception leaves no rows.
    std::optional<PositionedRows> rows = std::exchange(rows_, std::nullopt);
    if (!rows) return false;
    Row next;
    RowPosition position;
    absl::StatusOr<bool> more = rows->Next(&next, &position);
    if (!more.ok() || !*more) return more;
    if (absl::Status status = node_->Apply(position, &next); !status.ok()) return status;
    rows_ = std::move(rows);
    *row = std::move(next);
    return true;
  }

 private:
  std::shared_ptr<const MapNode> node_;
  std::optional<PositionedRows> rows_;
};

absl::Status CheckMade(const Row& row) {
  for (const Tensor& tensor : row) {
    if (!tensor.status().ok()) return tensor.status();
    if (!tensor.concrete()) return absl::InvalidArgumentError("the map function returned no data");
  }
  return absl::OkStatus();
}

}  // namespace

std::string ColumnsAndRow(const ColumnNames& columns, std::int64_t row) {
  return absl::StrCat(columns.size() == 1 ? "column '" : "columns '", absl::StrJoin(columns, "', '"), "', row ", row);
}

MapNode::MapNode(NodePointer input, MapOperations operations, std::vector<std::size_t> columns, MapOptions options,
                 ColumnNames column_names)
    : DatasetNode(std::move(column_names)),
      input_(std::move(input)),
      operations_(operations.operations()),
      columns_(std::move(columns)),
      options_(std::move(options)),
      positional_(std::any_of(operations_.begin(), operations_.end(),
                              [](const MapOperation& operation) { return operation.positional(); })) {
  for (std::size_t column : columns_) input_columns_.push_back(input_->column_names()[column]);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> MapNode::NewIterator(std::int64_t epoch) const {
  return Iterate(input_->NewIterator(epoch), epoch, nullptr);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> MapNode::NewOrderedIterator(std::int64_t epoch,
                                                                             std::vector<std::int64_t> order) const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewOrderedIterator(epoch, order);
  return Iterate(std::move(input), epoch,
                 [order = std::move(order)](std::int64_t n) { return order[static_cast<std::size_t>(n)]; });
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> MapNode::NewPartIterator(std::int64_t epoch,
                                                                          const Places& places) const {
  return Iterate(input_->NewPartIterator(epoch, places), epoch, places.Function());
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> MapNode::Iterate(
    absl::StatusOr<std::unique_ptr<DatasetIterator>> input, std::int64_t epoch, PlaceOf place_of) const {
  if (!input.ok()) return input.status();
  auto node = std::static_pointer_cast<const MapNode>(shared_from_this());
  PositionedRows rows(*std::move(input), epoch, std::move(place_of));
  if (options_.num_parallel_workers > 0) {
    return NewParallelMap(std::move(node), std::move(rows), options_.num_parallel_workers);
  }
  return std::make_unique<MapIterator>(std::move(node), std::move(rows));
}

absl::StatusOr<Row> MapNode::Get(std::int64_t index) const {
  absl::StatusOr<Row> row = input_->Get(index);
  if (!row.ok()) return row.status();
  if (absl::Status status = Apply({.row = index}, &*row); !status.ok()) return status;
  return row;
}

absl::StatusOr<Row> MapNode::ApplyOperations(const RowPosition& position, Row given) const {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const auto where = [&] {
      const std::string operation = operations_.size() > 1 ? absl::StrCat(", operation ", i) : "";
      return absl::StrCat(ColumnsAndRow(input_columns_, position.row), operation);
    };
    absl::StatusOr<Row> made = CallUser([&] { return operations_[i].Apply(given, position); }, where);
    absl::Status status = made.status();
    if (status.ok()) status = CheckMade(*made);
    if (!status.ok()) return absl::Status(status.code(), absl::StrCat(where(), ": ", status.message()));
    given = *std::move(made);
  }
  return given;
}

absl::Status MapNode::Apply(const RowPosition& position, Row* row) const {
  Row given;
  for (std::size_t column : columns_) given.push_back((*row)[column]);
  absl::StatusOr<Row> made = ApplyOperations(position, std::move(given));
  if (!made.ok() && options_.skipped_rows != nullptr) {
    options_.skipped_rows->Add(made.status());
    row->clear();
    return absl::OkStatus();
  }
  if (!made.ok()) return made.status();
  const std::size_t kept = row->size() - columns_.size();
  const std::size_t expected = column_names().size() - kept;
  if (made->size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(ColumnsAndRow(input_columns_, position.row), ": the map returned ",
                                                   made->size(), " tensors, but there are ", expected,
                                                   " output columns"));
  }
  if (expected == columns_.size()) {
    for (std::size_t i = 0; i < columns_.size(); ++i) (*row)[columns_[i]] = std::move((*made)[i]);
    return absl::OkStatus();
  }
  for (std::size_t column = 0; column < row->size(); ++column) {
    const bool is_input = std::find(columns_.begin(), columns_.end(), column) != columns_.end();
    if (!is_input) made->push_back(std::move((*row)[column]));
  }
  *row = *std::move(made);
  return absl::OkStatus();
}

}  // namespace mpc::data::internal
