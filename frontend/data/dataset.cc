#include "frontend/data/dataset.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "frontend/data/batch.h"
#include "frontend/data/stages.h"

namespace mpc::data {
namespace {

constexpr std::int64_t kMostRepetitions = (std::int64_t{1} << 31) - 1;

std::shared_ptr<const std::vector<std::string>> NoNames() {
  static const auto* const kNone =
      new std::shared_ptr<const std::vector<std::string>>(std::make_shared<const std::vector<std::string>>());
  return *kNone;
}

}  // namespace

absl::Status internal::CheckColumnNames(const ColumnNames& column_names) {
  if (column_names.empty()) return absl::InvalidArgumentError("a data set needs column names");
  std::set<std::string_view> seen;
  for (const std::string& name : column_names) {
    if (name.empty()) return absl::InvalidArgumentError("a column name is empty");
    if (!seen.insert(name).second)
      return absl::InvalidArgumentError(absl::StrCat("two columns are called '", name, "'"));
  }
  return absl::OkStatus();
}

Dataset internal::AtLeastOneError(const char* what, std::int64_t given) {
  return Dataset(absl::InvalidArgumentError(absl::StrCat(what, " must be at least 1, got ", given)));
}

Dataset::Dataset(absl::Status status)
    : status_(std::move(status)),
      class_names_(NoNames()),
      epochs_begun_(std::make_shared<std::atomic<std::int64_t>>(0)) {}

Dataset::Dataset(internal::NodePointer node)
    : node_(std::move(node)), class_names_(NoNames()), epochs_begun_(std::make_shared<std::atomic<std::int64_t>>(0)) {}

Dataset Dataset::WithClassNames(std::vector<std::string> names) const {
  Dataset named = *this;
  named.class_names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
  return named;
}

const ColumnNames& Dataset::column_names() const {
  static const ColumnNames* const kNone = new ColumnNames;
  return node_ == nullptr ? *kNone : node_->column_names();
}

absl::StatusOr<std::int64_t> Dataset::size() const {
  if (!status_.ok()) return status_;
  return node_->size();
}

Dataset Dataset::Shuffle(std::uint64_t seed) const {
  if (!status_.ok()) return *this;
  return Then<internal::ShuffleNode>(seed);
}

Dataset Dataset::Batch(std::int64_t batch_size, bool drop_remainder) const {
  if (absl::Status status = CheckBatch(batch_size, drop_remainder); !status.ok()) return Dataset(std::move(status));
  return Then<internal::BatchNode>(batch_size, drop_remainder,
                                   std::vector<internal::ColumnPadding>(column_names().size()));
}

Dataset Dataset::Repeat(std::int64_t count) const {
  if (!status_.ok()) return *this;
  if (count < 1) return internal::AtLeastOneError("the count of Repeat", count);
  if (count > kMostRepetitions) {
    return Dataset(absl::InvalidArgumentError(
        absl::StrCat("the count of Repeat must be at most ", kMostRepetitions, ", got ", count)));
  }
  return Then<internal::RepeatNode>(count);
}

Dataset Dataset::Prefetch(std::int64_t depth) const {
  if (!status_.ok()) return *this;
  if (depth < 1) return internal::AtLeastOneError("the depth of Prefetch", depth);
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

Dataset GeneratorDataset(std::vector<Row> rows, ColumnNames column_names, const SamplingOptions& sampling) {
  auto shared = std::make_shared<const std::vector<Row>>(std::move(rows));
  const auto get = [shared](std::int64_t index) -> absl::StatusOr<Row> {
    return (*shared)[static_cast<std::size_t>(index)];
  };
  return GeneratorDataset(get, static_cast<std::int64_t>(shared->size()), std::move(column_names), sampling);
}

Dataset GeneratorDataset(std::function<absl::StatusOr<Row>(std::int64_t)> get, std::int64_t rows,
                         ColumnNames column_names, const SamplingOptions& sampling) {
  if (absl::Status status = internal::CheckColumnNames(column_names); !status.ok()) return Dataset(std::move(status));
  if (get == nullptr) return Dataset(absl::InvalidArgumentError("GeneratorDataset needs a source"));
  if (rows < 1) return Dataset(absl::InvalidArgumentError("the source of a data set has no rows"));
  return Dataset(std::make_shared<internal::RandomAccessNode>(rows, std::move(get), std::move(column_names)))
      .Sample(sampling);
}

Dataset GeneratorDataset(std::function<Generator()> begin_epoch, ColumnNames column_names,
                         const SamplingOptions& sampling) {
  if (absl::Status status = internal::CheckColumnNames(column_names); !status.ok()) return Dataset(std::move(status));
  if (begin_epoch == nullptr) return Dataset(absl::InvalidArgumentError("GeneratorDataset needs a source"));
  return Dataset(std::make_shared<internal::GeneratorNode>(std::move(begin_epoch), std::move(column_names)))
      .Sample(sampling);
}

}  // namespace mpc::data
