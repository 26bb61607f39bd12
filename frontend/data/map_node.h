// The stage behind Dataset::Map. Not part of the public API.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/data/map_operation.h"
#include "frontend/data/stages.h"

namespace mpc::data::internal {

/// Names columns and row in errors: "column 'x', row 3" or "columns 'x', 'y', row 3".
std::string ColumnsAndRow(const ColumnNames& columns, std::int64_t row);

/// Calls a user's function. An exception leaves as a MapException whose text begins with `where()`.
template <typename Call, typename Where>
auto CallUser(const Call& call, const Where& where) {
  try {
    return call();
  } catch (const std::exception& exception) {
    std::throw_with_nested(MapException(absl::StrCat(where(), ": ", exception.what())));
  } catch (...) {
    std::throw_with_nested(MapException(absl::StrCat(where(), ": an exception of another type")));
  }
}

class MapNode : public DatasetNode {
 public:
  /// `columns` are the indices of the input columns; `column_names` are those of the result.
  MapNode(NodePointer input, MapOperations operations, std::vector<std::size_t> columns, MapOptions options,
          ColumnNames column_names);
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override { return input_->size(); }
  bool size_is_known() const override { return input_->size_is_known(); }
  bool random_access() const override { return !positional_ && input_->random_access(); }
  absl::StatusOr<Row> Get(std::int64_t index) const override;
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewOrderedIterator(std::int64_t epoch,
                                                                      std::vector<std::int64_t> order) const override;
  bool reads_parts() const override { return input_->reads_parts(); }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;
  absl::StatusOr<bool> IsShort(std::int64_t place) const override { return input_->IsShort(place); }
  std::int64_t batch_rows() const override { return input_->batch_rows(); }

  /// Maps the row at `position` in place. A row that is skipped has no columns afterwards.
  absl::Status Apply(const RowPosition& position, Row* row) const;

 private:
  absl::StatusOr<Row> ApplyOperations(const RowPosition& position, Row given) const;
  absl::StatusOr<std::unique_ptr<DatasetIterator>> Iterate(absl::StatusOr<std::unique_ptr<DatasetIterator>> input,
                                                           std::int64_t epoch, PlaceOf place_of) const;

  NodePointer input_;
  std::vector<MapOperation> operations_;
  std::vector<std::size_t> columns_;
  ColumnNames input_columns_;
  MapOptions options_;
  bool positional_;
};

/// Where the rows of a Map come from: an iterator, and the position of each row that it gives.
class PositionedRows {
 public:
  PositionedRows(std::unique_ptr<DatasetIterator> input, std::int64_t epoch, PlaceOf place_of)
      : input_(std::move(input)), place_of_(std::move(place_of)), epoch_(epoch) {}

  /// As DatasetIterator::Next, with the row's position.
  absl::StatusOr<bool> Next(Row* row, RowPosition* position) {
    absl::StatusOr<bool> more = input_->Next(row);
    if (more.ok() && *more) {
      *position = {.epoch = epoch_, .row = place_of_ ? place_of_(next_) : next_};
      ++next_;
    }
    return more;
  }

 private:
  std::unique_ptr<DatasetIterator> input_;
  PlaceOf place_of_;
  std::int64_t epoch_;
  std::int64_t next_ = 0;
};

/// Rows that `workers` threads map, in the order of `rows`.
std::unique_ptr<DatasetIterator> NewParallelMap(std::shared_ptr<const MapNode> node, PositionedRows rows,
                                                std::int64_t workers);

}  // namespace mpc::data::internal
