// Made-up batches for networks that no data at hand fit, and for measurements.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
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

/// The bytes of `tensors`, which exist twice while they are made. Errors (RESOURCE_EXHAUSTED): they take more than half
/// of the memory of this machine. The message begins with `what` they are and ends with `advice`.
absl::StatusOr<std::size_t> CheckTensorsFit(const std::vector<TensorSpec>& tensors, std::string_view what,
                                            std::string_view advice);
/// The same for the columns of a batch.
absl::StatusOr<std::size_t> CheckBatchFits(const std::vector<TensorSpec>& columns);

/// Eight batches, fewer where they would fill 512 MiB: enough that no cache of a processor holds what a step reads.
/// Errors: those of CheckBatchFits.
absl::StatusOr<std::vector<data::Row>> MakeSyntheticBatches(const SyntheticDataOptions& options);

/// An epoch of `steps` batches, the same in every epoch; nothing is copied. Errors: those of CheckBatchFits.
data::Dataset SyntheticData(const SyntheticDataOptions& options);

}  // namespace mpc::tools
