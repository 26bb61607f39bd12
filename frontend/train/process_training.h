// Model::Train in several processes: what they agree on before, between and after steps. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/graph/parameter.h"
#include "frontend/train/metric.h"
#include "frontend/train/run_context.h"
#include "kernels/communicator.h"

namespace mpc::internal {

/// What the hooks of callbacks have written between steps, which is the same in every rank or an error.
struct WrittenByHooks {
  std::int64_t fingerprint = 0;  ///< checksum of `text`, from 1 to 2^32; 0: nothing was written
  std::string text;              ///< names and values, for an error
};

/// The processes that train together, as Train sees them. Of one process alone every function does nothing.
///
/// All processes call the same functions in the same order. Rank 0 has the callbacks. What they decide and change is
/// sent to the other ranks at the ends of steps and epochs. Errors: those of the communicator.
class ProcessTraining {
 public:
  explicit ProcessTraining(std::shared_ptr<Communicator> processes, const AutoParallelOptions& options = {})
      : processes_(std::move(processes)), options_(options) {}
  /// The group of distributed::Init where SetAutoParallelContext asks for kDataParallel, with its options. Otherwise
  /// this process alone.
  static ProcessTraining FromContext();

  int size() const { return processes_ == nullptr ? 1 : processes_->size(); }
  int rank() const { return processes_ == nullptr ? 0 : processes_->rank(); }
  bool is_first() const { return rank() == 0; }
  /// Whether training is data parallel, in however many processes.
  bool is_shared() const { return options_.parallel_mode == ParallelMode::kDataParallel; }
  /// What carries numbers, in the order of additions that the options ask for.
  const std::shared_ptr<Communicator>& communicator() const { return processes_; }
  const AutoParallelOptions& options() const { return options_; }
  /// The options that ranks must agree on, as CompareSettings takes them.
  std::vector<std::string> Settings() const;

  /// Calls `run`, a whole call of Train. Its error, or an exception that leaves it, is told to the others, which then
  /// wait for this process no longer. After it no run begins in the group. An error of waiting names the process that
  /// is lost, and where it was.
  absl::Status Run(const std::function<absl::Status()>& run) const;
  /// Calls of Run in several processes so far; the same number in all of them.
  static std::int64_t runs();
  /// Says which step begins, for the errors of the others.
  void NoteStep(std::int64_t step) const;
  /// Says what this process does in that step, or beside steps.
  void NoteActivity(std::string_view what) const;

  /// Compares `settings`, lines "NAME: VALUE", by their names. Errors (INVALID_ARGUMENT): a line that differs between
  /// ranks, with both texts; a name that one rank lacks.
  absl::Status CompareSettings(const std::vector<std::string>& settings) const;
  /// Gives every rank the values of rank 0. The entries have been compared: names, types and shapes agree.
  absl::Status SendState(const std::vector<Parameter>& state) const;
  /// Gives every rank the entries of `state` that rank 0 names in `written`; those of other ranks do not count. Errors
  /// (FAILED_PRECONDITION): `state` has no entry of a name.
  absl::Status SendWritten(const std::vector<Parameter>& state, const std::vector<std::string>& written) const;
  /// Gives every rank the text of rank 0, as a part of what Train compares.
  absl::Status SendText(std::string& text) const;
  /// Gives every rank the number of rank 0.
  absl::Status SendNumber(std::int64_t& number) const;
  /// Lets the run end everywhere where any rank asks for it, and tells all the signal. Errors (FAILED_PRECONDITION):
  /// hooks have written something else in one rank than in another.
  absl::Status AgreeOnStop(RunContext& context, const WrittenByHooks& written = {}) const;
  /// Tells every rank how each one's part of an evaluation went. Errors: `own`; otherwise that of the first rank which
  /// has one, with its rank.
  absl::Status AgreeOnEvaluation(const absl::Status& own) const;
  /// Gives every rank the metrics over the batches of all ranks, in their order.
  absl::Status MergeMetrics(const MetricList& metrics) const;
  /// Gives every rank the learning rates of rank 0, where callbacks may have changed them.
  absl::Status SendLearningRates(TrainedModel& model) const;

 private:
  /// The bytes of every rank. `purpose` travels before them. Errors (FAILED_PRECONDITION): a rank gathers for another
  /// purpose.
  absl::StatusOr<std::vector<std::string>> Gather(std::string_view purpose, const std::string& bytes) const;
  /// The error of hooks that have written something else in one rank than in another. Every rank calls it.
  absl::Status NameOtherWrites(const std::string& own) const;

  std::shared_ptr<Communicator> processes_;  ///< null: this one alone
  AutoParallelOptions options_;
};

}  // namespace mpc::internal
