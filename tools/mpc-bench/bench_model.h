// The networks of mpc-bench, each ready to train.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc/mpc.h"
#include "tools/mpc-bench/options.h"

namespace mpc::tools {

/// A network with its loss, its optimizer and its Model.
class BenchModel {
 public:
  virtual ~BenchModel() = default;
  virtual Model& model() = 0;
  virtual nn::Cell& network() = 0;
  /// The types of a batch, in the order of the step's inputs.
  virtual std::vector<TensorSpec> columns() const = 0;
  /// Every whole number of a batch is below this.
  virtual std::int64_t classes() const = 0;
};

/// What the options say of precision.
amp::Options PrecisionOf(const BenchOptions& options);

/// Errors: an unknown network, a size that it does not take.
absl::Status CheckBenchModel(const BenchOptions& options);

/// Networks of text are trained by AdamW, the DCGAN by Adam, all others by Momentum: as their peers are. Errors: those
/// of CheckBenchModel and of making the Model.
absl::StatusOr<std::unique_ptr<BenchModel>> MakeBenchModel(const BenchOptions& options);

/// Sets the seed and the context, then MakeBenchModel: equal options give equal initial values.
absl::StatusOr<std::unique_ptr<BenchModel>> PrepareBenchModel(const BenchOptions& options);

/// The made-up batches that its steps take in turn; equal in every process. Errors: those of MakeSyntheticBatches.
absl::StatusOr<std::vector<data::Row>> BatchesOf(const BenchModel& bench);

}  // namespace mpc::tools
