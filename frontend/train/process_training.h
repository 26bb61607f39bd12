// Model::Train in several processes: what they agree on before, between and after steps. Not part of the public API.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "frontend/graph/parameter.h"
#include "frontend/train/metric.h"
#include "frontend/train/run_context.h"
#include "kernels/communicator.h"

namespace mpc::internal {

/// The processes that train together, as Train sees them. Of one process alone every function does nothing.
///
/// All processes call the same functions in the same order. Rank 0 has the callbacks. What they decide and change is
/// sent to the other ranks at the ends of steps and epochs. Errors: those of the communicator.
class ProcessTraining {
 public:
  ProcessTraining(std::shared_ptr<Communicator> processes, std::int64_t bucket_mib)
      : processes_(std::move(processes)), bucket_mib_(bucket_mib) {}
  /// The group of distributed::Init where SetAutoParallelContext asks for kDataParallel, else this process alone.
  static ProcessTraining FromContext();

  int size() const { return processes_ == nullptr ? 1 : processes_->size(); }
  int rank() const { return processes_ == nullptr ? 0 : processes_->rank(); }
  bool is_first() const { return rank() == 0; }
  /// AutoParallelOptions::bucket_mib.
  std::int64_t bucket_mib() const { return bucket_mib_; }
  const std::shared_ptr<Communicator>& communicator() const { return processes_; }

  /// Errors (INVALID_ARGUMENT): a line of `settings` that differs between ranks. It is named with both texts.
  absl::Status CompareSettings(const std::vector<std::string>& settings) const;
  /// Gives every rank the values of rank 0. The entries have been compared: names, types and shapes agree.
  absl::Status SendState(const std::vector<Parameter>& state) const;
  /// Gives every rank the number of rank 0.
  absl::Status SendNumber(std::int64_t& number) const;
  /// Lets the run end everywhere where any rank asks for it.
  absl::Status AgreeOnStop(RunContext& context) const;
  /// Gives every rank the metrics over the batches of all ranks, in their order.
  absl::Status MergeMetrics(const MetricList& metrics) const;
  /// Gives every rank the learning rates of rank 0, where callbacks may have changed them.
  absl::Status SendLearningRates(TrainedModel& model) const;

 private:
  std::shared_ptr<Communicator> processes_;  ///< null: this one alone
  std::int64_t bucket_mib_;
};

}  // namespace mpc::internal
