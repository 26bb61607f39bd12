// Made-up batches for networks that no data at hand fit, and for measurements.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/data/dataset.h"

namespace mpc::tools {

/// Batches of random values that are used in turn: normally distributed numbers, and whole numbers in [0, classes).
struct SyntheticDataOptions {
  std::vector<TensorSpec> columns;  ///< columns of a batch; at least one
  data::ColumnNames names;          ///< names of the columns
  std::int64_t classes = 10;
  std::int64_t steps = 100;  ///< batches of an epoch
  std::int64_t seed = 1;     ///< equal seeds give equal batches
};

/// Eight batches, fewer where they would fill 512 MiB: enough that no cache of a processor holds what a step reads.
std::vector<data::Row> MakeSyntheticBatches(const SyntheticDataOptions& options);

/// An epoch of `steps` batches, the same in every epoch; nothing is copied.
data::Dataset SyntheticData(const SyntheticDataOptions& options);

}  // namespace mpc::tools
