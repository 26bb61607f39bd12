// Dataset's methods that take columns or other data sets: what they check before they add a stage.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/batch.h"
#include "frontend/data/combination.h"
#include "frontend/data/dataset.h"
#include "frontend/data/kept_rows_node.h"
#include "frontend/data/map_node.h"
#include "frontend/data/selection.h"

namespace mpc::data {
namespace {

constexpr std::int64_t kMostWorkers = 256;

/// The first of `first` and `others` that has class names; `first` where none has. Errors: two have different ones.
absl::StatusOr<const Dataset*> FirstWithClassNames(const char* stage, const Dataset& first,
                                                   const std::vector<Dataset>& others) {
  const Dataset* named = &first;
  for (const Dataset& other : others) {
    const std::vector<std::string>& names = other.class_names();
    if (names.empty() || names == named->class_names()) continue;
    if (named->class_names().empty()) {
      named = &other;
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(stage, ": a data set has the classes ", absl::StrJoin(names, ", "),
                                                   ", but ", named == &first ? "the first one" : "one before it",
                                                   " has ", absl::StrJoin(named->class_names(), ", "),
                                                   ": labels would mean other classes"));
  }
  return named;
}

/// The columns behind a Map.
ColumnNames MappedColumns(const ColumnNames& names, const std::vector<std::size_t>& inputs,
                          const ColumnNames& outputs) {
  ColumnNames mapped = names;
  if (outputs.empty()) return mapped;
  if (outputs.size() == inputs.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) mapped[inputs[i]] = outputs[i];
    return mapped;
  }
  mapped = outputs;
  for (std::size_t column = 0; column < names.size(); ++column) {
    if (std::find(inputs.begin(), inputs.end(), column) == inputs.end()) mapped.push_back(names[column]);
  }
  return mapped;
}

absl::Status CheckOperations(const std::vector<MapOperation>& operations, std::size_t columns) {
  if (operations.empty()) return absl::InvalidArgumentError("Map needs a function");
  for (const MapOperation& operation : operations) {
    if (!operation.defined()) return absl::InvalidArgumentError("Map needs a function");
  }
  if (operations[0].one_column() && columns != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Map: the first operation is a function of one tensor, but there are ", columns,
                     " input columns: write a function of a Row, or one Map for each column"));
  }
  return absl::OkStatus();
}

absl::Status CheckBuckets(const internal::Buckets& buckets) {
  const std::vector<std::int64_t>& boundaries = buckets.boundaries;
  const std::string given = absl::StrCat("BucketBatchByLength: bucket_boundaries {", absl::StrJoin(boundaries, ", "),
                                         "}, bucket_batch_sizes {", absl::StrJoin(buckets.batch_sizes, ", "), "}: ");
  if (boundaries.empty()) return absl::InvalidArgumentError(absl::StrCat(given, "there must be a boundary"));
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    if (boundaries[i] <= (i == 0 ? 0 : boundaries[i - 1])) {
      return absl::InvalidArgumentError(absl::StrCat(given, "boundaries must be above 0 and rise"));
    }
  }
  if (buckets.batch_sizes.size() != boundaries.size() + 1) {
    return absl::InvalidArgumentError(absl::StrCat(given, "there must be one size more than boundaries"));
  }
  for (std::int64_t size : buckets.batch_sizes) {
    if (size < 1) return absl::InvalidArgumentError(absl::StrCat(given, "sizes must be at least 1"));
  }
  if (buckets.columns.empty()) return absl::InvalidArgumentError("BucketBatchByLength needs a column of the length");
  if (buckets.options.element_length_function == nullptr && buckets.columns.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("BucketBatchByLength: ", buckets.columns.size(), " columns need an element_length_function"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::size_t>> Dataset::FindColumns(const char* stage, const ColumnNames& names) const {
  if (!status_.ok()) return status_;
  const ColumnNames& known = column_names();
  std::vector<std::size_t> columns;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      return absl::NotFoundError(
          absl::StrCat(stage, ": no column '", name, "'; columns are ", absl::StrJoin(known, ", ")));
    }
    const auto column = static_cast<std::size_t>(found - known.begin());
    if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
      return absl::InvalidArgumentError(absl::StrCat(stage, ": column '", name, "' is named twice"));
    }
    columns.push_back(column);
  }
  return columns;
}

Dataset Dataset::Map(const MapOperations& operations, const InputColumns& input_columns,
                     const MapOptions& options) const {
  absl::StatusOr<std::vector<std::size_t>> columns = FindColumns("Map", input_columns.names());
  if (!columns.ok()) return Dataset(columns.status());
  if (columns->empty()) return Dataset(absl::InvalidArgumentError("Map needs an input column"));
  absl::Status status = CheckOperations(operations.operations(), columns->size());
  const std::int64_t workers = options.num_parallel_workers;
  if (status.ok() && (workers < 0 || workers > kMostWorkers)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("Map: num_parallel_workers is ", workers, "; accepted are 0 to ", kMostWorkers));
  }
  ColumnNames names = MappedColumns(column_names(), *columns, options.output_columns);
  if (status.ok()) status = internal::CheckColumnNames(names);
  if (!status.ok()) return Dataset(std::move(status));
  Dataset mapped = Then<internal::MapNode>(operations, *std::move(columns), options, std::move(names));
  return options.skipped_rows == nullptr ? mapped : mapped.Then<internal::KeptRowsNode>();
}

Dataset Dataset::Filter(const RowPredicate& predicate, const InputColumns& input_columns) const {
  absl::StatusOr<std::vector<std::size_t>> columns =
      FindColumns("Filter", input_columns.names().empty() ? column_names() : input_columns.names());
  if (!columns.ok()) return Dataset(columns.status());
  if (!predicate.defined()) return Dataset(absl::InvalidArgumentError("Filter needs a predicate"));
  if (predicate.one_column() && columns->size() != 1) {
    return Dataset(absl::InvalidArgumentError(absl::StrCat(
        "Filter: the predicate is a function of one tensor, but there are ", columns->size(), " input columns")));
  }
  return Then<internal::FilterNode>(predicate, *std::move(columns));
}

Dataset Dataset::Take(std::int64_t count) const {
  if (!status_.ok() || count == -1) return *this;
  if (count < 1) return internal::AtLeastOneError("the count of Take", count);
  return Then<internal::RangeNode>(0, count);
}

Dataset Dataset::Skip(std::int64_t count) const {
  if (!status_.ok() || count == 0) return *this;
  if (count < 0) {
    return Dataset(absl::InvalidArgumentError(absl::StrCat("the count of Skip must be at least 0, got ", count)));
  }
  if (node_->size_is_known()) {
    absl::StatusOr<std::int64_t> rows = node_->size();
    if (!rows.ok()) return Dataset(rows.status());
    if (*rows <= count) return Dataset(internal::NothingLeft(count, *rows));
  }
  return Then<internal::RangeNode>(count, internal::RangeNode::kAll);
}

absl::StatusOr<std::vector<internal::NodePointer>> Dataset::WithOthers(const char* stage,
                                                                       const std::vector<Dataset>& others) const {
  if (!status_.ok()) return status_;
  if (others.empty()) return absl::InvalidArgumentError(absl::StrCat(stage, " needs another data set"));
  std::vector<internal::NodePointer> nodes = {node_};
  for (const Dataset& other : others) {
    if (!other.status_.ok()) return other.status_;
    nodes.push_back(other.node_);
  }
  return nodes;
}

Dataset Dataset::Zip(const std::vector<Dataset>& others) const {
  absl::StatusOr<std::vector<internal::NodePointer>> nodes = WithOthers("Zip", others);
  if (!nodes.ok()) return Dataset(nodes.status());
  ColumnNames names;
  for (const internal::NodePointer& node : *nodes) {
    names.insert(names.end(), node->column_names().begin(), node->column_names().end());
  }
  if (absl::Status status = internal::CheckColumnNames(names); !status.ok()) {
    return Dataset(absl::InvalidArgumentError(absl::StrCat("Zip: ", status.message())));
  }
  const absl::StatusOr<const Dataset*> named = FirstWithClassNames("Zip", *this, others);
  if (!named.ok()) return Dataset(named.status());
  return (*named)->Keeping(Dataset(std::make_shared<internal::ZipNode>(*std::move(nodes), std::move(names))));
}

Dataset Dataset::Concat(const std::vector<Dataset>& others) const {
  absl::StatusOr<std::vector<internal::NodePointer>> nodes = WithOthers("Concat", others);
  if (!nodes.ok()) return Dataset(nodes.status());
  for (const internal::NodePointer& node : *nodes) {
    if (node->column_names() == column_names()) continue;
    return Dataset(absl::InvalidArgumentError(
        absl::StrCat("Concat: a data set has the columns ", absl::StrJoin(node->column_names(), ", "),
                     ", but the first one has ", absl::StrJoin(column_names(), ", "))));
  }
  const absl::StatusOr<const Dataset*> named = FirstWithClassNames("Concat", *this, others);
  if (!named.ok()) return Dataset(named.status());
  return (*named)->Keeping(Dataset(std::make_shared<internal::ConcatNode>(*std::move(nodes))));
}

std::vector<Dataset> Dataset::Split(const std::vector<double>& sizes, std::optional<std::uint64_t> seed) const {
  using Indices = std::vector<std::vector<std::int64_t>>;
  absl::StatusOr<Indices> indices =
      status_.ok() ? internal::SplitIndices(*node_, sizes, seed) : absl::StatusOr<Indices>(status_);
  if (!indices.ok()) return std::vector<Dataset>(std::max<std::size_t>(sizes.size(), 1), Dataset(indices.status()));
  std::vector<Dataset> parts;
  for (std::vector<std::int64_t>& part : *indices) parts.push_back(Then<internal::SubsetNode>(std::move(part)));
  return parts;
}

absl::Status Dataset::CheckBatch(std::int64_t batch_size, bool drop_remainder) const {
  if (!status_.ok()) return status_;
  if (batch_size < 1) return internal::AtLeastOneError("the batch size", batch_size).status();
  if (!drop_remainder || !node_->size_is_known()) return absl::OkStatus();
  absl::StatusOr<std::int64_t> rows = node_->size();
  if (!rows.ok()) return rows.status();
  return *rows < batch_size ? internal::BatchTooLarge(batch_size, *rows) : absl::OkStatus();
}

Dataset Dataset::PaddedBatch(std::int64_t batch_size, bool drop_remainder, const PadInfo& pad_info) const {
  if (absl::Status status = CheckBatch(batch_size, drop_remainder); !status.ok()) return Dataset(std::move(status));
  absl::StatusOr<std::vector<internal::ColumnPadding>> padding = internal::PaddingOf(column_names(), pad_info);
  if (!padding.ok()) return Dataset(padding.status());
  return Then<internal::BatchNode>(batch_size, drop_remainder, *std::move(padding));
}

Dataset Dataset::BucketBatchByLength(const InputColumns& column_names,
                                     const std::vector<std::int64_t>& bucket_boundaries,
                                     const std::vector<std::int64_t>& bucket_batch_sizes,
                                     const BucketBatchOptions& options) const {
  absl::StatusOr<std::vector<std::size_t>> columns = FindColumns("BucketBatchByLength", column_names.names());
  if (!columns.ok()) return Dataset(columns.status());
  absl::StatusOr<std::vector<internal::ColumnPadding>> padding =
      internal::PaddingOf(node_->column_names(), options.pad_info);
  if (!padding.ok()) return Dataset(padding.status());
  for (internal::ColumnPadding& column : *padding) column.all_axes_to_boundary = !options.pad_info.empty();
  for (std::size_t column : *columns) (*padding)[column].first_axis_to_boundary = options.pad_info.empty();
  internal::Buckets buckets{.columns = *std::move(columns),
                            .boundaries = bucket_boundaries,
                            .batch_sizes = bucket_batch_sizes,
                            .padding = *std::move(padding),
                            .options = options};
  if (absl::Status status = CheckBuckets(buckets); !status.ok()) return Dataset(std::move(status));
  return Then<internal::BucketBatchNode>(std::move(buckets));
}

}  // namespace mpc::data
