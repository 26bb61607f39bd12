// How rows of different extents become one batch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "frontend/data/dataset_node.h"
#include "frontend/graph/tensor.h"

namespace mpc::data {

/// How one column is padded.
struct Padding {
  /// The shape of each row in the batch; an extent of -1, as any extent without a shape, is the batch's largest.
  std::optional<Shape> shape;
  /// What is written behind the row's elements. A value that the column's type cannot hold is the error of the first
  /// batch, as -1 or 0.5 of u8. A floating type rounds it.
  double value = 0;
};

/// By column name, as MindSpore's `pad_info`.
using PadInfo = std::map<std::string, Padding>;

/// Settings of Dataset::BucketBatchByLength, with MindSpore's names and defaults.
struct BucketBatchOptions {
  /// The length of a row, given the tensors of the input columns; null: extent 0 of the one input column.
  std::function<absl::StatusOr<std::int64_t>(const Row&)> element_length_function;
  PadInfo pad_info;
  /// Extents that `pad_info` leaves open become the bucket's boundary - 1. Without a `pad_info` this is extent 0 of the
  /// input columns.
  bool pad_to_bucket_boundary = false;
  bool drop_remainder = false;
};

}  // namespace mpc::data
