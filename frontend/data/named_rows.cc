#include "frontend/data/named_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::data {

std::size_t NamedRow::IndexOf(std::string_view column) const {
  if (names_ == nullptr) return row_.size();
  const auto found = std::find(names_->begin(), names_->end(), column);
  return static_cast<std::size_t>(found - names_->begin());
}

Tensor NamedRow::operator[](std::string_view column) const {
  const std::size_t index = IndexOf(column);
  if (index < row_.size()) return row_[index];
  // A row in error has one tensor for all columns.
  if (!row_.empty() && !row_[0].status().ok()) return row_[0];
  return mpc::internal::MakeInvalid(absl::NotFoundError(absl::StrCat(
      "no column '", std::string(column), "'; columns are ", names_ == nullptr ? "" : absl::StrJoin(*names_, ", "))));
}

NamedRows::NamedRows(absl::Status status, ColumnNames names, std::unique_ptr<DatasetIterator> iterator)
    : status_(std::move(status)),
      names_(std::make_shared<const ColumnNames>(std::move(names))),
      iterator_(std::move(iterator)) {}

NamedRows::Iterator NamedRows::begin() {
  if (status_.ok()) {
    Advance();
  } else {
    current_ = NamedRow(names_, Row(std::max<std::size_t>(names_->size(), 1), mpc::internal::MakeInvalid(status_)));
  }
  return Iterator(this);
}

void NamedRows::Advance() {
  if (!status_.ok() || iterator_ == nullptr) {
    ended_ = true;
    return;
  }
  Row row;
  absl::StatusOr<bool> more = iterator_->Next(&row);
  if (!more.ok()) {
    status_ = more.status();
    row.assign(std::max<std::size_t>(names_->size(), 1), mpc::internal::MakeInvalid(status_));
  } else if (!*more) {
    ended_ = true;
    return;
  }
  current_ = NamedRow(names_, std::move(row));
}

}  // namespace mpc::data
