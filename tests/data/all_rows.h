// What a dataset yields.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "frontend/data/dataset.h"

namespace mpc::data {

/// Rows of the first epoch; a failure, and none, where the dataset is an error.
inline std::vector<Row> AllRows(const Dataset& dataset) {
  std::vector<Row> rows;
  EXPECT_TRUE(dataset.status().ok()) << dataset.status();
  if (!dataset.status().ok()) return rows;
  auto iterator = *dataset.NewIterator(0);
  for (Row row; *iterator->Next(&row);) rows.push_back(row);
  return rows;
}

}  // namespace mpc::data
