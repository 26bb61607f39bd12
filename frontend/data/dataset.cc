#include "frontend/data/dataset.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/stages.h"

namespace mpc::data {
namespace {

absl::Status CheckColumnNames(const ColumnNames& column_names) {
  if (column_names.empty()) return absl::InvalidArgumentError("a data set needs column names");
  std::set<std::string_view> seen;
  for (const std::string& name : column_names) {
    if (name.empty()) return absl::InvalidArgumentError("a column name is empty");
    if (!seen.insert(name).second)
      return absl::InvalidArgumentError(absl::StrCat("two columns are called '", name, "'"));
  }
  return absl::OkStatus();
}

Dataset AtLeastOneError(const char* what, std::int64_t given) {
  return Dataset(absl::InvalidArgumentError(absl::StrCat(what, " must be at least 1, got ", given)));
}

}  // namespace

Dataset::Dataset(absl::Status status)
    : status_(std::move(status)), epochs_begun_(std::make_shared<std::atomic<std::int64_t>>(0)) {}

Dataset::Dataset(internal::NodePointer node)
    : node_(std::move(node)), epochs_begun_(std::make_shared<std::atomic<std::int64_t>>(0)) {}

template <typename Node, typename... Arguments>
Dataset Dataset::Then(Arguments&&... arguments) const {
  return Dataset(std::make_shared<const Node>(node_, std::forward<Arguments>(arguments)...));
}

const ColumnNames& Dataset::column_names() const {
  static const ColumnNames* const kNone = new ColumnNames;
  return node_ == nullptr ? *kNone : node_->column_names();
}

absl::StatusOr<std::int64_t> Dataset::size() const {
  if (!status_.ok()) return status_;
  return node_->size();
}

Dataset Dataset::Map(MapFunction function, std::string_view column) const {
  if (function == nullptr) return MapRows(nullptr, column, /*positional=*/false);
  return MapRows(
      [function = std::move(function)](const Tensor& tensor, const RowPosition&) { return function(tensor); }, column,
      /*positional=*/false);
}

Dataset Dataset::Map(PositionMapFunction function, std::string_view column) const {
  return MapRows(std::move(function), column, /*positional=*/true);
}

Dataset Dataset::MapRows(PositionMapFunction function, std::string_view column, bool positional) const {
  if (!status_.ok()) return *this;
  const ColumnNames& names = column_names();
  const auto found = std::find(names.begin(), names.end(), column);
  if (found == names.end()) {
    return Dataset(absl::NotFoundError(
        absl::StrCat("Map: no column '", std::string(column), "'; columns are ", absl::StrJoin(names, ", "))));
  }
  if (function == nullptr) return Dataset(absl::InvalidArgumentError("Map needs a function"));
  return Then<internal::MapNode>(std::move(function), static_cast<std::size_t>(found - names.begin()), positional);
}

Dataset Dataset::Shuffle(std::uint64_t seed) const {
  if (!status_.ok()) return *this;
  return Then<internal::ShuffleNode>(seed);
}

Dataset Dataset::Batch(std::int64_t batch_size, bool drop_remainder) const {
  if (!status_.ok()) return *this;
  if (batch_size < 1) return AtLeastOneError("the batch size", batch_size);
  if (drop_remainder && node_->size_is_known()) {
    absl::StatusOr<std::int64_t> rows = node_->size();
    if (!rows.ok()) return Dataset(rows.status());
    if (*rows < batch_size) return Dataset(internal::BatchTooLarge(batch_size, *rows));
  }
  return Then<internal::BatchNode>(batch_size, drop_remainder);
}

Dataset Dataset::Repeat(std::int64_t count) const {
  if (!status_.ok()) return *this;
  if (count < 1) return AtLeastOneError("the count of Repeat", count);
  return Then<internal::RepeatNode>(count);
}

Dataset Dataset::Prefetch(std::int64_t depth) const {
  if (!status_.ok()) return *this;
  if (depth < 1) return AtLeastOneError("the depth of Prefetch", depth);
  return Then<internal::PrefetchNode>(depth);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> Dataset::NewIterator(std::int64_t epoch) const {
  if (!status_.ok()) return status_;
  return node_->NewIterator(epoch);
}

NamedRows Dataset::CreateDictIterator() const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = NewIterator(epochs_begun_->fetch_add(1));
  if (!iterator.ok()) return NamedRows(iterator.status(), column_names(), nullptr);
  return NamedRows(absl::OkStatus(), column_names(), *std::move(iterator));
}

Dataset GeneratorDataset(std::vector<Row> rows, ColumnNames column_names) {
  auto shared = std::make_shared<const std::vector<Row>>(std::move(rows));
  return internal::RandomAccessDataset(
      static_cast<std::int64_t>(shared->size()),
      [shared](std::int64_t index) -> absl::StatusOr<Row> { return (*shared)[static_cast<std::size_t>(index)]; },
      std::move(column_names));
}

Dataset GeneratorDataset(std::function<Generator()> begin_epoch, ColumnNames column_names) {
  if (absl::Status status = CheckColumnNames(column_names); !status.ok()) return Dataset(std::move(status));
  if (begin_epoch == nullptr) return Dataset(absl::InvalidArgumentError("GeneratorDataset needs a source"));
  return Dataset(std::make_shared<internal::GeneratorNode>(std::move(begin_epoch), std::move(column_names)));
}

Dataset internal::RandomAccessDataset(std::int64_t size, std::function<absl::StatusOr<Row>(std::int64_t)> get,
                                      ColumnNames column_names) {
  if (absl::Status status = CheckColumnNames(column_names); !status.ok()) return Dataset(std::move(status));
  if (size < 1) return Dataset(absl::InvalidArgumentError("the source of a data set has no rows"));
  return Dataset(std::make_shared<RandomAccessNode>(size, std::move(get), std::move(column_names)));
}

}  // namespace mpc::data
