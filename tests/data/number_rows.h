// Data sets of numbers for tests of stages.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "frontend/data/dataset.h"

namespace mpc::data {

/// Row i holds the i32 scalar i under each of the column names.
inline std::vector<Row> NumberRows(int count, std::size_t columns = 1) {
  std::vector<Row> rows;
  for (int i = 0; i < count; ++i) rows.emplace_back(columns, Tensor::Scalar<std::int32_t>(i));
  return rows;
}

inline Dataset NumberDataset(int count, const ColumnNames& names = {"x"}) {
  return GeneratorDataset(NumberRows(count, names.size()), names);
}

/// The same without random access.
inline Dataset GeneratedNumbers(int count, const ColumnNames& names = {"x"}) {
  return GeneratorDataset(
      [count, columns = names.size()]() -> Generator {
        return [rows = NumberRows(count, columns), i = std::size_t{0}]() mutable -> std::optional<Row> {
          return i < rows.size() ? std::optional<Row>(rows[i++]) : std::nullopt;
        };
      },
      names);
}

/// Column `column` of every row of an epoch; fails where the epoch ends with an error.
inline std::vector<int> NumbersOf(const Dataset& dataset, std::int64_t epoch = 0, std::size_t column = 0) {
  std::vector<int> numbers;
  auto iterator = dataset.NewIterator(epoch);
  EXPECT_TRUE(iterator.ok()) << iterator.status();
  for (Row row; iterator.ok();) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&row);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) break;
    numbers.push_back(row[column].Item<int>());
  }
  return numbers;
}

/// The message of the error that the data set, or its epoch 0, ends with; empty if there is none.
inline std::string MessageOf(const Dataset& dataset) {
  auto iterator = dataset.NewIterator(0);
  if (!iterator.ok()) return std::string(iterator.status().message());
  for (Row row;;) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&row);
    if (more.ok() && *more) continue;
    const absl::StatusOr<bool> after = (*iterator)->Next(&row);
    EXPECT_TRUE(after.ok() && !*after) << "the end and an error end the epoch";
    return more.ok() ? "" : std::string(more.status().message());
  }
}

}  // namespace mpc::data
