// Rows by column name, for range-for loops.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "frontend/data/dataset_node.h"
#include "frontend/graph/tensor.h"

namespace mpc::data {

/// One row: `row["data"]`. A column that does not exist gives a tensor whose `status()` lists those that do.
class NamedRow {
 public:
  NamedRow() = default;
  NamedRow(std::shared_ptr<const ColumnNames> names, Row row) : names_(std::move(names)), row_(std::move(row)) {}

  Tensor operator[](std::string_view column) const;
  bool contains(std::string_view column) const { return IndexOf(column) < row_.size(); }
  /// Values in the order of the columns.
  const Row& values() const { return row_; }

 private:
  std::size_t IndexOf(std::string_view column) const;

  std::shared_ptr<const ColumnNames> names_;
  Row row_;
};

/// The rows of one epoch, to be read once. An error ends the rows and is kept in `status()`. Every column of the last
/// row then carries the error, so that a Cell or a training step that gets a column reports it.
class NamedRows {
 public:
  NamedRows(absl::Status status, ColumnNames names, std::unique_ptr<DatasetIterator> iterator);

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = NamedRow;
    using difference_type = std::ptrdiff_t;
    using pointer = NamedRow*;
    using reference = NamedRow&;

    Iterator() = default;
    explicit Iterator(NamedRows* rows) : rows_(rows) {}
    NamedRow& operator*() const { return rows_->current_; }
    NamedRow* operator->() const { return &rows_->current_; }
    Iterator& operator++() {
      rows_->Advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return iterator.at_end(); }

   private:
    bool at_end() const { return rows_->ended_; }

    NamedRows* rows_ = nullptr;
  };

  /// Reads the first row; to be called once.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  const absl::Status& status() const { return status_; }

 private:
  void Advance();

  absl::Status status_;
  std::shared_ptr<const ColumnNames> names_;
  std::unique_ptr<DatasetIterator> iterator_;
  NamedRow current_;
  bool ended_ = false;
};

}  // namespace mpc::data
