// What callbacks see of a run of training, and what they may change of the Model that trains.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"

namespace mpc {

class RunContext;

/// The Model that trains, as callbacks reach it. A hook that reads or changes it in the middle of an epoch says so with
/// Callback::NeedsState. In OnEvalBegin, OnEvalEnd and OnEpochEnd every step has ended.
class TrainedModel {
 public:
  using Weights = std::vector<std::pair<std::string, Tensor>>;
  /// A group of parameters of an optimizer.
  struct RateGroup {
    std::string name;                     ///< "Momentum group 0"
    std::optional<double> learning_rate;  ///< empty: a schedule computes it
  };

  virtual ~TrainedModel() = default;
  /// Copies of the network's Parameters, running statistics included, by their paths.
  virtual absl::StatusOr<Weights> CopyWeights() const = 0;
  /// Gives them back. Optimizer state stays. Errors: a name that the network does not have; another shape.
  virtual absl::Status SetWeights(const Weights& weights) = 0;
  /// Every group of every optimizer, in order. Those of a step of one's own that does not name its optimizers
  /// (TrainingStep::optimizers) are known once it is traced, with its first batch.
  virtual absl::StatusOr<std::vector<RateGroup>> LearningRates() const = 0;
  /// Errors: no such group; those of Optimizer::SetLearningRate.
  virtual absl::Status SetLearningRate(std::size_t group, double learning_rate) = 0;
  /// In OnTrainBegin: goes on where the run of a checkpoint stood, as Model::LoadCheckpoint. The context's numbers
  /// follow. Errors: those of LoadCheckpoint; FAILED_PRECONDITION in another hook.
  virtual absl::Status Resume(const std::string& path, RunContext& context) = 0;
};

/// Where a run of `Model::Train` or `Model::Fit` stands. Fields describe the step that has just begun or ended.
///
/// With ModelOptions::accumulation_steps hooks run for each batch, and the last batch of an update makes its step.
/// Until then global_step, loss_scale, skipped_steps and gradient_norm are those of the step before, and overflow is
/// false. loss() and Tap are always those of one batch.
class RunContext {
 public:
  std::int64_t epochs = 0;         ///< epochs asked for in this call of Train or Fit
  std::int64_t epoch = 0;          ///< current epoch, from 1; restarts at 1 with every call of Train that is no resume
  std::int64_t step_in_epoch = 0;  ///< current step of the epoch, from 1; at OnEpochBegin those done before a resume
  std::int64_t steps_per_epoch = 0;         ///< 0 where the data set cannot tell
  std::int64_t global_step = 0;             ///< steps since the Model was made, from 1, skipped ones included
  bool epoch_complete = true;               ///< in OnEpochEnd: no stop has left batches of the epoch untrained
  bool overflow = false;                    ///< this step's gradients were not finite
  float loss_scale = 1.0f;                  ///< after this step; before the first one that which it begins with
  std::int64_t skipped_steps = 0;           ///< steps skipped for overflow since the Model was made
  double data_wait_seconds = 0;             ///< that the steps begun in this run waited for their rows
  std::optional<double> gradient_norm;      ///< with ModelOptions::record_gradient_norm; none before the first step
  std::optional<double> learning_rate;      ///< with ModelOptions::record_learning_rate
  std::optional<std::uint64_t> state_hash;  ///< with ModelOptions::record_state_hash

  /// Unscaled loss of the last finished step, of several batches that of the last one: no mean over them. Reading it
  /// may wait for the device. NaN before the first step. A run that goes on inside an epoch begins with that of the
  /// checkpoint. So an epoch of which no step is left ends with it.
  float loss() const;
  void set_loss(float loss);
  /// `read` computes the loss; it is called at most once, when loss() is.
  void set_loss(std::function<float()> read);

  /// What mpc::Tap named `name` in the last finished step; undefined if it named nothing so.
  Tensor Tap(const std::string& name) const { return tap_ == nullptr ? Tensor() : tap_(name); }
  void set_tap(std::function<Tensor(const std::string&)> tap) { tap_ = std::move(tap); }
  /// The columns of the step that begins or has ended; null outside steps.
  const std::vector<Tensor>* batch() const { return batch_; }
  void set_batch(const std::vector<Tensor>* batch) { batch_ = batch; }

  /// What the evaluation of this epoch measured, by "eval_" and the metric's name: "eval_loss", "eval_accuracy". Empty
  /// before it, and in an epoch that is not evaluated.
  const std::map<std::string, double>& eval_results() const { return eval_results_; }
  void set_eval_results(std::map<std::string, double> results) { eval_results_ = std::move(results); }
  /// The names that evaluations of this run give. Empty: nothing is evaluated, as in Model::Train.
  const std::vector<std::string>& eval_names() const { return eval_names_; }
  void set_eval_names(std::vector<std::string> names) { eval_names_ = std::move(names); }
  /// Those of eval_names of which less is better, as Metric::SmallerIsBetter says.
  const std::vector<std::string>& smaller_is_better() const { return smaller_is_better_; }
  void set_smaller_is_better(std::vector<std::string> names) { smaller_is_better_ = std::move(names); }

  /// The Model that trains; null where there is none.
  TrainedModel* trained() const { return trained_; }
  void set_trained(TrainedModel* trained) { trained_ = trained; }

  /// Ends the run after this step: the hooks OnEpochEnd and OnTrainEnd still run. Where the device runs ahead the steps
  /// that it has begun end first, with their hooks; see Callback::NeedsState.
  void RequestStop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }
  /// RequestStop by something outside of training, such as a signal, whose number may be given: the run is to be
  /// continued another time. Of several processes all are interrupted at the same step, and all know the signal.
  void Interrupt(int signal = 0) {
    stop_requested_ = interrupted_ = true;
    signal_ = signal;
  }
  bool interrupted() const { return interrupted_; }
  /// The number that Interrupt was given; 0: none.
  int signal() const { return signal_; }

  /// Writes the state of training to a file, as Model::SaveCheckpoint does. Errors (FAILED_PRECONDITION): nothing
  /// trains.
  absl::Status SaveCheckpoint(const std::string& path) const;
  void set_save(std::function<absl::Status(const std::string&)> save) { save_ = std::move(save); }
  /// Ends the run with an error, which Train returns; the first one is kept. No later hook runs.
  void Fail(const absl::Status& status) { failure_.Update(status); }
  const absl::Status& failure() const { return failure_; }
  /// Destroys `object` when the run is over, however it ends: what a callback must give back even after an error.
  void KeepUntilEnd(std::shared_ptr<void> object) { kept_.push_back(std::move(object)); }

 private:
  mutable std::function<float()> read_loss_;
  mutable std::optional<float> loss_;
  bool stop_requested_ = false;
  bool interrupted_ = false;
  int signal_ = 0;
  std::function<Tensor(const std::string&)> tap_;
  const std::vector<Tensor>* batch_ = nullptr;
  std::map<std::string, double> eval_results_;
  std::vector<std::string> eval_names_;
  std::vector<std::string> smaller_is_better_;
  TrainedModel* trained_ = nullptr;
  std::function<absl::Status(const std::string&)> save_;
  absl::Status failure_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace mpc
