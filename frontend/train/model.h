// Training, evaluation and prediction of a network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/driver/compiler.h"
#include "frontend/data/dataset.h"
#include "frontend/graph/amp_options.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/inspect/value_statistics.h"
#include "frontend/nn/loss.h"
#include "frontend/nn/optimizers.h"
#include "frontend/nn/train_step.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/train/callback.h"
#include "frontend/train/fit_options.h"
#include "frontend/train/metric.h"
#include "frontend/train/precision_frontier.h"
#include "runtime/executable.h"
#include "runtime/program_file.h"

namespace mpc {

/// `amp_level`, `keep_batchnorm_fp32`, `loss_scale_manager` and `amp_dtype` are the short form of `amp`: given in both
/// places they must say the same.
struct ModelOptions {
  MetricList metrics;                       ///< what Eval measures
  std::string amp_level;                    ///< O0, O1, O2, O3, auto; left out: that of `amp`, O0 if it has none
  std::optional<bool> keep_batchnorm_fp32;  ///< left out: the level's default
  LossScaleChoice loss_scale_manager;       ///< left out: the level's default; nullptr: none; or a manager
  std::optional<DType> amp_dtype;           ///< the low type, f16 or bf16; f16, at auto NativeLowType
  amp::Options amp;                         ///< every option of mixed precision; printed where a level is given here
  std::string device;                       ///< empty: the context's
  /// Batches (micro-steps) whose gradients' mean makes one step, >= 1. Optimizer and loss scale act in the last one; an
  /// overflow in any of them skips the step. `global_step` counts steps. Where training is data parallel each process
  /// runs that many, a power of two, and an epoch has complete updates alone: see docs/distributed.md.
  std::int64_t accumulation_steps = 1;
  /// Errors out after so many skipped steps in a row where the scale cannot shrink any more; 0: never.
  std::int64_t max_consecutive_skips = 20;
  /// Replays the first step of each run of overflows, measured, and names the first value that is not finite on
  /// std::cerr. A run of overflows that ends training is always diagnosed. With accumulation it keeps the batches of
  /// the update in memory and names the first one that is bad. Without this option it keeps them in a run of overflows.
  bool diagnose_overflow = false;
  /// Writes one step to this file, to be repeated elsewhere: `mpc-run --replay=FILE`. It is the first bad step, one
  /// with a gradient that is not finite, or without a scaler a loss. The file holds the batch and all state, so that it
  /// is as secret as the data. A file that cannot be written ends no run. Of processes that train together rank 0
  /// writes the step of all, and all ask for it alike. Empty: none. See docs/capsules.md.
  std::string capsule_path;
  /// Writes this step to `capsule_path` in place of the first bad one, bad or not: Model::global_step after it. 0: the
  /// first bad one.
  std::int64_t capsule_at = 0;
  // What the Model's own step does to unscaled gradients before the optimizer; a step of your own clips its own.
  std::optional<double> clip_global_norm;  ///< > 0; see ops::ClipByGlobalNorm
  std::optional<double> clip_value;        ///< > 0; see ops::ClipByValue. Both given: values first
  // What the RunContext of a step tells if asked for.
  bool record_gradient_norm = false;  ///< norm of unscaled gradients, before clipping; an error with a step of your own
  bool record_learning_rate = false;  ///< rate of the first optimizer's first parameter group
  bool record_state_hash = false;     ///< hash of the state that the step leaves: kernels/state_hash.h
};

struct MeasureOptions {
  bool full_precision = false;  ///< computes at O0 whatever the level: shows what low types would have to hold
};

struct ResumeOptions {
  /// The next call of Train continues the run that the file was saved in. False: it begins a run of its own.
  bool continue_run = true;
};

/// What a Model took from a checkpoint.
struct ResumeReport {
  std::int64_t global_step = 0;
  TrainPosition position;
  std::vector<std::string> loaded;       ///< names of state entries
  std::vector<std::string> differences;  ///< empty: training goes on bit for bit as if it had never stopped
};

/// Owns the state of training and the Programs compiled for it. Network, loss and optimizer are not owned and must
/// outlive the Model. Errors of construction are returned by `status()` and by every method.
///
/// Programs are compiled on first use for each batch shape. All share one state, so that the last partial batch, Eval
/// and Predict see what training left.
///
/// Threads: one at a time runs a Model. Calls of one Model wait for each other: all but its numbers, its options and
/// class_names, which are for the thread that trains. A callback may make calls in its own thread. It may not wait for
/// another thread that makes them. Cells that share sub-cells or Parameters, as copies of an nn::SequentialCell do,
/// belong to one thread, and so do their Models. Separate networks may be used in separate threads.
class Model {
 public:
  /// Training and evaluation. The data set's last column is the label, the others are the network's inputs. The loss
  /// may have Parameters and running statistics, which train, are saved and evaluate as the network's do. Their names
  /// are paths of the loss. Errors: those that require gradients and are not the optimizer's; a name that the network
  /// has.
  template <nn::CellType Network, nn::CellType Loss>
  Model(Network& network, Loss& loss, nn::Optimizer& optimizer, ModelOptions options = {})
      : Model(nn::CellFunction(network), nn::CellFunction(loss), &optimizer, std::move(options)) {
    BuildStep();
  }
  /// Evaluation and prediction. If `network` is a training step (see nn::TrainingStep), the Model trains too. Eval then
  /// measures the network that the step predicts with, by `loss`.
  template <nn::CellType Network, nn::CellType Loss>
  Model(Network& network, Loss& loss, ModelOptions options = {})
      : Model(nn::CellFunction(network), nn::CellFunction(loss), nullptr, std::move(options)) {
    if constexpr (std::is_base_of_v<nn::TrainingStep, Network>) UseStep(nn::CellFunction(network), network);
  }
  /// `network` is a training step (see nn::TrainingStep), whose inputs are all columns of the data set. Predict then
  /// runs the network that the step trains. Or it is a network without a loss, which the Model only predicts with.
  template <typename Network>
  explicit Model(Network& network, ModelOptions options = {})
      : Model(nn::CellFunction(network), nn::CellFunction(), nullptr, std::move(options)) {
    if constexpr (std::is_base_of_v<nn::TrainingStep, Network>) UseStep(nn::CellFunction(network), network);
  }

  Model(Model&&) noexcept;
  ~Model();

  const absl::Status& status() const;

  /// Trains `epochs` >= 1 epochs. Called again it trains as many more; epoch numbers restart at 1. After LoadCheckpoint
  /// it continues the run that was saved: `epochs` counts from that run's beginning, and what it had done is left out.
  /// On a device that runs ahead callbacks learn of a step when the next launch is under way (see Callback). Errors: no
  /// optimizer; a data set whose columns do not fit; what compiling reports; too many skipped steps in a row; what a
  /// callback reports. Train, Fit and LoadCheckpoint are refused in a callback of a running Train or Fit
  /// (FAILED_PRECONDITION). Errors also: what the device failed with, naming the step. Where a run is continued: a data
  /// set of another size than that of the epoch, or with other class names. On an error the state is that of the last
  /// complete step.
  absl::Status Train(std::int64_t epochs, const data::Dataset& dataset, const CallbackList& callbacks = {});

  /// Trains as Train does and evaluates in between, on one pass of `valid`. Evaluation comes after an epoch's last
  /// step and before its OnEpochEnd: by default after every epoch. It measures the Model's metrics and the mean loss.
  /// RunContext::eval_results has them: "eval_loss", "eval_accuracy". Losses and state of training are the same bits as
  /// without it. An epoch that a callback stops is not evaluated. Errors: those of Train and of Eval, the latter with
  /// their epoch; a `valid_frequency` below 1.
  absl::Status Fit(std::int64_t epochs, const data::Dataset& train, const data::Dataset& valid,
                   const FitOptions& options = {}, const CallbackList& callbacks = {});

  /// The metrics over one pass of `dataset`, by name.
  absl::StatusOr<std::map<std::string, double>> Eval(const data::Dataset& dataset);

  /// The network's output(s) in inference mode, f32. Errors (FAILED_PRECONDITION): a training step of your own that
  /// does not override predicted_network().
  template <typename... Inputs>
  absl::StatusOr<Tensor> Predict(const Inputs&... inputs) {
    std::vector<Tensor> flat;
    (nn::internal::AppendInput(inputs, flat), ...);
    absl::StatusOr<std::vector<Tensor>> outputs = PredictAll(flat);
    if (!outputs.ok()) return outputs.status();
    return outputs->front();
  }
  absl::StatusOr<std::vector<Tensor>> PredictAll(const std::vector<Tensor>& inputs);

  /// Writes everything that training depends on: f32 parameters, statistics, optimizer and loss-scale state, random
  /// state, counters, the position in the data. See docs/checkpoints.md. Errors: the path and the reason. Where
  /// processes train data parallel, a step of accumulation before the last (FAILED_PRECONDITION).
  absl::Status SaveCheckpoint(const std::string& path) const;
  /// Continues from such a file. Everything is checked first: on an error, which lists every problem, the Model is as
  /// it was. A file of weights alone is an error; LoadParamIntoNet loads those.
  absl::StatusOr<ResumeReport> LoadCheckpoint(const std::string& path, const ResumeOptions& options = {});

  /// Replays the training step on `columns` from the present state and measures every value: nothing of the training
  /// changes. Gradients carry the loss scale. Compiles once for each batch shape. Errors: those of Train's compilation.
  absl::StatusOr<std::vector<ValueStatistics>> Measure(const std::vector<Tensor>& columns,
                                                       const MeasureOptions& options = {});

  /// What the labels stand for: Dataset::class_names of the data set that was trained on last, else those of the
  /// checkpoint that was loaded. Empty where neither says.
  const std::vector<std::string>& class_names() const;

  // What happened.
  std::int64_t global_step() const;    ///< steps run, skipped ones included
  std::int64_t skipped_steps() const;  ///< steps skipped because they were not finite
  /// The loss scale; 1 without a scaler, as for a step of your own that turned out to have a seed of its own.
  double loss_scale() const;
  /// The scale of scaler `loss_id` where `amp.num_losses` > 1; 1 if there is none.
  double loss_scale(std::int64_t loss_id) const;
  const LossScaleConfig& loss_scale_config() const;
  const amp::Precision& precision() const;
  /// Every Program compiled so far, in order, with its phases and final IR. A Program whose Cells or optimizers have
  /// been replaced is given up when the next one is compiled; then its pointer holds no longer.
  std::vector<const compiler::CompileResult*> compiled() const;
  /// State, arena and constants of the largest Program: known before the first step runs.
  std::size_t peak_bytes() const;
  /// The state entry called `name` ("conv1.weight", "optimizer.step", "scaler.scale"); undefined if there is none.
  Parameter State(std::string_view name) const;
  /// Every state entry that the Programs share. Names identify them: what compiling adds stands in the order of
  /// compilation, which a resumed run may change.
  std::vector<Parameter> AllState() const;
  /// State that follows other state, as the last step left it: the low copies of parameters ("conv1.weight.f16"). The
  /// next step rebuilds what a write to its source made stale, so it is in no checkpoint. StateEntry::FetchToHost
  /// brings it from the device.
  std::vector<std::shared_ptr<const runtime::StateEntry>> DerivedState() const;

  /// The precision of the training step that was compiled first, as a lock file holds it (docs/precision.md). Without a
  /// training step it is that of the first Program that predicts. Errors (FAILED_PRECONDITION): nothing has been
  /// compiled; the step cannot be traced on twice as many samples, with the reason.
  absl::StatusOr<std::string> PrecisionLock() const;
  /// The same before anything is compiled: of the training step on batches like the first one of `dataset`. Errors: no
  /// training step; those of the data set and of compiling.
  absl::StatusOr<std::string> PrecisionLock(const data::Dataset& dataset) const;
  /// OK where the lock file at `path` holds the precision of the training step on batches like the first one of
  /// `dataset`. Errors, with the path: what differs, by Cell; a lock of another network or level; no lock, or a damaged
  /// one.
  absl::Status CheckPrecision(const std::string& path, const data::Dataset& dataset) const;
  /// Writes that lock to `path`. A file that says the same stays as it is. With `update` the lock also takes the place
  /// of one that says something else. Errors: those of CheckPrecision; what writing reports.
  absl::Status LockPrecision(const std::string& path, const data::Dataset& dataset, bool update = false) const;

  /// Finds the precisions between the fastest and the most exact one, at level auto, and runs some of them from the
  /// present state. Nothing of the training changes. Compiles the step without its update a few times, and both with
  /// and without it for each point. Errors (INVALID_ARGUMENT): an option out of its range; another level.
  /// UNIMPLEMENTED: a step of your own that is no TrainOneStepCell. FAILED_PRECONDITION: a loss or a gradient that is
  /// not finite at O0; no slot that is open. Those of the data set and of compiling.
  absl::StatusOr<PrecisionFrontier> FindPrecisionFrontier(const data::Dataset& dataset,
                                                          const PrecisionFrontierOptions& options = {});
  /// The errors of gradient and loss with a precision that a frontier gave. They are those of a step from the present
  /// state, on the first `batches` >= 1 batches. Nothing of the training changes. Errors: those of UsePrecision and of
  /// FindPrecisionFrontier.
  absl::StatusOr<MeasuredErrors> MeasurePrecisionErrors(const compiler::ChosenPrecision& chosen,
                                                        const data::Dataset& dataset, std::int64_t batches = 4);
  /// Trains from now on with a precision that a frontier gave, at level auto. Checkpoints keep it. Errors
  /// (INVALID_ARGUMENT): another level, network or low type; slots that are not those of the training step on batches
  /// like the first one of `dataset`. Those of the data set and of tracing.
  absl::Status UsePrecision(const compiler::ChosenPrecision& chosen, const data::Dataset& dataset);

  // For tools: the traced module of a step on inputs of these types, before any pass, and what it compiles with.
  absl::StatusOr<compiler::Module> TraceTrainStep(const std::vector<TensorSpec>& columns) const;
  absl::StatusOr<compiler::Module> TracePredict(const std::vector<TensorSpec>& inputs) const;
  compiler::CompileOptions compile_options(bool training) const;
  /// The compiled training step on batches like `columns`, as Train runs it, bound to this Model's state: running it
  /// trains. It lives as long as the Model. Errors also: several processes that accumulate, whose step is two Programs.
  absl::StatusOr<runtime::Executable*> LoadTrainStep(const std::vector<Tensor>& columns);
  /// The Programs for batches like `columns` (names and types), compiled for the context's device and architecture. The
  /// package also holds what a run without this Model begins from; see docs/programs.md. It has "train_step"; also
  /// "eval_step" and "predict" where the step is the Model's own, whose last column is the label. No parameter's value
  /// goes along: a run draws initial values or loads others. Learning rates, counters and scaler fields begin as they
  /// are now. Errors: a Model that does not train; those of compiling; state beyond 64 KiB that was made from data;
  /// several processes that accumulate.
  absl::StatusOr<runtime::Package> MakePackage(const std::vector<std::pair<std::string, TensorSpec>>& columns);

 private:
  struct Impl;
  Model(nn::CellFunction network, nn::CellFunction loss, nn::Optimizer* optimizer, ModelOptions options);
  void BuildStep();
  void UseStep(nn::CellFunction step, nn::TrainingStep& cell);

  std::unique_ptr<Impl> impl_;
};

}  // namespace mpc
