// What the steps of a run read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "runtime/program.h"
#include "tools/mpc-run/options.h"

namespace mpc::tools {

/// The types of a Program's inputs, in order.
std::vector<TensorSpec> InputSpecs(const runtime::Program& program);

/// Batches without an end: epoch after epoch.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// One tensor for each input of the Program. Errors: those of the data.
  virtual absl::StatusOr<data::Row> Next() = 0;
};

/// Training batches for `program`, in the order that mpc-train reads them in. `seed` is that of row order and of
/// synthetic numbers. Synthetic integers are below `classes`, or below 2 if it is not known. Errors: missing data; data
/// that do not fit the Program, with both; text where `classes` is less than the 256 bytes.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeTrainingBatches(const RunOptions& options,
                                                                 const runtime::Program& program, std::uint64_t seed,
                                                                 std::optional<std::int64_t> classes);

/// A batch to predict, filled up with its last row.
struct TestBatch {
  data::Row inputs;       ///< inputs of the Program
  Tensor labels;          ///< i32 [rows], for text [rows, tokens]; undefined for synthetic data
  std::int64_t rows = 0;  ///< rows that are no filling
};

/// The test rows in order, or a few synthetic batches. Errors: as MakeTrainingBatches.
absl::StatusOr<std::vector<TestBatch>> LoadTestBatches(const RunOptions& options, const runtime::Program& program,
                                                       std::uint64_t seed, std::optional<std::int64_t> classes);

}  // namespace mpc::tools
