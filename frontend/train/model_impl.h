// What a Model owns. Not part of the public API.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "compiler/report/precision_lock.h"
#include "compiler/report/range_table.h"
#include "frontend/amp/scaler_history.h"
#include "frontend/graph/cell_members.h"
#include "frontend/graph/compiled_step.h"
#include "frontend/graph/context.h"
#include "frontend/state/checkpoint_fit.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/train/capsule_writer.h"
#include "frontend/train/model.h"
#include "frontend/train/process_training.h"
#include "frontend/train/update_batches.h"

namespace mpc {
namespace internal {

/// "train_step(tensor<8x6xf32>, tensor<8x3xf32>)": what a Program is known by from one process to the next.
std::string ProgramSignature(const runtime::Program& program);

/// The precision that `options` ask for: the short form and `amp` merged, checked, printed as `amp` says. Errors: both
/// say something else; what amp::ResolveOptions refuses; a manager out of range.
absl::StatusOr<amp::Precision> ResolveModelOptions(const ModelOptions& options);

/// Errors (INVALID_ARGUMENT): an option of `options` says something else than `session`, which amp::Initialize gave
/// `network`. Options of loss scaling count where the Model would take the session's scaler.
absl::Status CheckAgreement(const ModelOptions& options, const amp::Precision& session, bool takes_scaler,
                            const std::string& network);

/// Puts the Cell and its sub-cells into inference for a while. Afterwards each has its own mode again.
class InferenceMode {
 public:
  explicit InferenceMode(nn::Cell& cell) {
    nn::internal::ForEachCell(cell, [this](nn::Cell& each) { before_.emplace_back(&each, each.training()); });
    cell.SetTrain(false);
  }
  ~InferenceMode() {
    // A Cell's mode is set after those above it, which reach it too.
    for (const auto& [cell, training] : before_) {
      if (cell->training() != training) cell->SetTrain(training);
    }
  }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  std::vector<std::pair<nn::Cell*, bool>> before_;  ///< modes of Cells, each before those below it
};

/// A flag that is set for a while, also where a callback throws.
class SetForAWhile {
 public:
  explicit SetForAWhile(bool& flag) : flag_(flag) { flag = true; }
  ~SetForAWhile() { flag_ = false; }
  SetForAWhile(const SetForAWhile&) = delete;
  SetForAWhile& operator=(const SetForAWhile&) = delete;

 private:
  bool& flag_;
};

}  // namespace internal

struct Model::Impl {
  class TrainingRun;
  class Trained;
  class GradientProbe;
  class FrontierSearch;
  class SlotEstimate;
  /// What Fit evaluates between epochs.
  struct Validation {
    /// `given`: the Model's metrics. The loss joins them where it is missing.
    Validation(const data::Dataset& dataset, const MetricList& given, FitOptions options);
    /// The names of the results, sorted.
    std::vector<std::string> names() const;
    /// Those of which less is better, as their metrics say.
    std::vector<std::string> smaller_is_better() const;

    const data::Dataset& dataset;
    FitOptions options;
    MetricList metrics;
  };

  absl::Status status;
  nn::CellFunction network;
  nn::CellFunction loss;
  nn::CellFunction step;                  ///< the training step; undefined: this Model cannot train
  nn::TrainingStep* user_step = nullptr;  ///< `step`, where the user gave it
  nn::Optimizer* optimizer = nullptr;
  ModelOptions options;
  amp::Precision precision;
  LossScaleConfig scale_config;
  std::shared_ptr<LossScaler> scaler;
  std::vector<std::shared_ptr<LossScaler>> more_scalers;  ///< scalers of losses 1, 2, ... where there are several
  internal::RngState rng;
  /// Those that were there when the Model was made.
  internal::ProcessTraining processes = internal::ProcessTraining::FromContext();
  internal::UpdateBatches updates;  ///< what `options` and `processes` make of them
  /// What passes add to this Model's Programs: low copies of parameters, accumulators.
  std::shared_ptr<internal::PassState> pass_state = std::make_shared<internal::PassState>();
  std::vector<const nn::Cell*> networks;

  std::unique_ptr<nn::WithLossCell> with_loss;  ///< network and loss, where there is a loss
  std::unique_ptr<nn::TrainOneStepCell> own_step;

  using ProgramMap = std::map<std::string, std::unique_ptr<internal::CompiledStep>>;
  ProgramMap programs;
  /// The key of a Program by the one that it was asked for with, where tracing changed it: Construct sets a mode.
  std::map<std::string, std::string> keys_after_tracing;
  std::vector<const compiler::CompileResult*> compiled;
  /// Programs that were given up while Train runs, which may not have finished their steps.
  std::vector<std::unique_ptr<internal::CompiledStep>> replaced;
  int runs = 0;                                  ///< calls of Train that have not returned
  std::map<std::string, int> compared_programs;  ///< Programs that CompareProgram has compared, by their place in a run
  std::set<std::string> said;                    ///< remarks, each printed once
  std::map<std::string, std::unique_ptr<internal::CompiledStep>> measuring;  ///< Programs of Measure
  /// Scalers that a step of the user's own calls, once it has been traced.
  std::vector<internal::StepFacts::Scaler> step_scalers;
  /// The learning rates of a step of the user's own, as StepFacts has them, once it has been traced.
  std::vector<std::pair<std::string, Parameter>> step_rates;
  bool step_is_scaled = true;  ///< false: a step of the user's own was compiled, and no scaler acts in it
  /// What O1 and auto decided on the training graph, here or in the run that a checkpoint continues. Before there is a
  /// training graph, what they decided on the graphs compiled so far. Every other Program is compiled with it.
  compiler::PrecisionMap assignment;
  bool assignment_is_trained = false;
  int assignment_version = 0;  ///< counts changes of `assignment`: part of the key of a Program
  std::int64_t global_step = 0;
  TrainPosition position;              ///< in steps of this process
  std::int64_t batches_per_epoch = 0;  ///< batches that all processes of the last Train read; 0: there was none
  bool continues = false;              ///< the next Train goes on at `position`
  bool may_resume = false;             ///< OnTrainBegin runs: a callback may choose where the run begins
  bool in_train = false;               ///< Train or Fit has not returned
  bool resumes = false;                ///< a callback loads a checkpoint by TrainedModel::Resume
  std::recursive_mutex mutex;          ///< one thread at a time; callbacks of Train make calls in theirs
  /// What the last checkpoint says; compiling compares its choices.
  internal::CheckpointMetadata resumed;
  std::vector<std::string> class_names;  ///< Model::class_names
  std::vector<Parameter> traced_state;   ///< state of a step of the user's own that was traced but not compiled
  internal::StepFacts traced_facts;      ///< the facts of that trace
  bool in_overflow_run = false;          ///< the last step had a gradient that is not finite
  bool warned_about_nan = false;
  internal::CapsuleWriter capsule_writer{"", 0};  ///< the writer of ModelOptions::capsule_path
  /// The histories of the active scalers, while Train runs a device that is ahead of the host.
  std::map<const LossScaler*, std::unique_ptr<amp::internal::ScalerHistory>> scaler_histories;

  /// Says once that the loss is not finite, where no scaler acts on it.
  void WarnOfLoss(const RunContext& context, const std::string& where);
  /// Writes a line to std::cerr. Of several processes rank 0 alone does.
  void Say(const std::string& line) const;

  /// Errors: there is no such device, here or to compile for.
  absl::Status CheckDevice() const;
  std::string device() const { return options.device.empty() ? GetContext().device : options.device; }

  /// What every Program of this Model compiles with.
  internal::StepOptions CommonOptions(const char* name) const;
  /// Of several processes that accumulate, those of the last step of an update.
  internal::StepOptions TrainOptions(const std::vector<std::string>& columns) const;
  /// `train`, which are TrainOptions, for the steps of an update before the last. They have no collectives.
  static internal::StepOptions OptionsBeforeLast(internal::StepOptions train);
  /// Errors (INVALID_ARGUMENT): steps of an update that processes cannot share.
  absl::Status CheckUpdates() const;
  /// Errors (UNIMPLEMENTED): an update takes two Programs, which `what` has no place for.
  absl::Status CheckOneProgram(const char* what) const;
  /// The Program of `function` for these inputs.
  absl::StatusOr<internal::CompiledStep*> Program(nn::Cell* root, const internal::TensorFunction& function,
                                                  const std::vector<Tensor>& inputs,
                                                  const internal::StepOptions& step_options);
  /// The Program of a key, or of the key that tracing made of it; its end where there is none that is current.
  ProgramMap::iterator KnownProgram(const std::string& asked);
  /// Gives up a Program and returns the next one.
  ProgramMap::iterator GiveUp(ProgramMap::iterator program);
  /// Gives up the Programs whose Cells, Parameters or optimizers have been replaced.
  void ForgetReplaced();
  /// Errors: options of this Model that a step of the user's own does not follow.
  absl::Status CheckOwnStep(const internal::StepFacts& facts, const runtime::Program& program) const;
  /// Remarks on parameters that are stored low although this Model asks for masters.
  void SayWhatIsStoredLow();
  /// `step_options` with the decided assignment and, at level auto, the device's rates. Errors: measuring them.
  absl::StatusOr<internal::StepOptions> WithPrecision(internal::StepOptions step_options) const;
  /// Keeps the assignment that a graph was compiled with; the first training graph overrules those before.
  void KeepAssignment(const compiler::PrecisionMap& decided, bool training);
  /// The lock of the training step of `model`, which owns this, or of what it predicts with.
  absl::StatusOr<compiler::PrecisionLock> LockOf(const Model& model, const std::vector<TensorSpec>& inputs,
                                                 bool training, const compiler::CompileOptions& compile) const;
  /// The lock of the training step on batches like the first one of `dataset`.
  absl::StatusOr<compiler::PrecisionLock> LockOn(const Model& model, const data::Dataset& dataset) const;
  /// Errors: a precision that UsePrecision refuses.
  absl::Status CheckChosen(const Model& model, const compiler::ChosenPrecision& chosen,
                           const data::Dataset& dataset) const;
  /// The ranges of the training step of `model`, which owns this. Parameters are as they are, inputs like those of the
  /// first batch of `dataset`.
  absl::StatusOr<compiler::RangeTable> RangesOn(const Model& model, const data::Dataset& dataset) const;
  /// Where `loss_scale = "derived"` asks for it and no step has run, sets the scale that follows from RangesOn.
  absl::Status DeriveLossScale(const Model& model, const data::Dataset& dataset);
  /// Model::MakePackage.
  absl::StatusOr<runtime::Package> MakePackage(const std::vector<std::pair<std::string, TensorSpec>>& columns);
  /// Columns to loss and predictions.
  internal::TensorFunction EvalFunction() const;

  /// The network, with the loss where there is one: what Eval runs. The loss may have Parameters and statistics.
  nn::Cell* evaluated() const { return with_loss != nullptr ? with_loss.get() : network.cell(); }
  /// The Cell whose paths name the Parameters.
  nn::Cell* root() const { return user_step != nullptr ? user_step : evaluated(); }
  /// The Cell that this Model was given: a step of the user's own, else the network.
  const nn::Cell& given_cell() const { return user_step != nullptr ? *user_step : *network.cell(); }
  /// Errors (INVALID_ARGUMENT): network and loss have different Parameters of one name.
  absl::Status CheckNames() const;

  /// The option that asks for loss scaling, with its value: "loss_scale_manager = static"; empty: none is given.
  std::string GivenScaling() const;
  /// The scalers that act: the Model's, or those of a step of the user's own. Empty: none.
  std::vector<const LossScaler*> ActiveScalers() const;
  /// The scaler that acts; of several the one with most skips in a row.
  const LossScaler* ActiveScaler() const;
  /// The skipped steps of all scalers.
  std::int64_t SkippedSteps() const;
  /// A scaler's state after the step whose results are read: that of the host's history, else that of the device.
  struct ScalerState {
    double scale = 1;
    std::int64_t skipped = 0;
    std::int64_t consecutive = 0;
  };
  ScalerState StateAfterStep(const LossScaler& scaler) const;
  /// The optimizers that are known before a step is traced.
  std::vector<nn::Optimizer*> optimizers() const;
  /// What amp::Initialize gave the Cells, and with them the Model's own step. Errors: ModelOptions say something else.
  absl::Status UseSession();

  /// Model::Train and, with a validation, Model::Fit. `model` owns this.
  absl::Status Train(Model& model, std::int64_t epochs, const data::Dataset& dataset, const Validation* validation,
                     const CallbackList& callbacks);
  /// Errors: what keeps `dataset` from Train.
  absl::Status CheckTraining(std::int64_t epochs, const data::Dataset& dataset);
  /// Errors: no loss; columns that the network and the loss do not take.
  absl::Status CheckEvaluation(const data::Dataset& dataset, const std::vector<std::string>& trained_classes) const;
  /// What the Program of Evaluate compiles with.
  internal::StepOptions EvalOptions(const data::Dataset& dataset) const;
  /// Where there is a memory budget, compiles what Evaluate runs on the first batch. Errors: it does not fit.
  absl::Status CheckEvaluationFits(const data::Dataset& dataset);
  /// The metrics over one pass of `dataset`. Nothing of training changes.
  absl::StatusOr<std::map<std::string, double>> Evaluate(const data::Dataset& dataset, const MetricList& metrics);
  /// Evaluates and tells the callbacks and the context.
  absl::Status Validate(const Validation& validation, const CallbackList& callbacks, RunContext& context);
  static std::unique_ptr<TrainedModel> MakeTrained(Model& model, const data::Dataset& dataset,
                                                   std::int64_t steps_per_epoch);

  /// Errors (FAILED_PRECONDITION): a step of the user's own that does not name what it predicts with.
  absl::Status CheckPredicts() const;
  /// Errors (FAILED_PRECONDITION): Train is running, where `what` would upset it.
  absl::Status CheckNoRun(const char* what) const;
  /// Errors: a parameter without an optimizer, an optimizer that does not fit the loss scale.
  absl::Status CheckTrainable() const;
  /// Errors (INVALID_ARGUMENT): gradients that are accumulated keep a loss scale which the optimizer is to divide by.
  absl::Status CheckAccumulation() const;
  absl::Status CheckColumns(const data::Dataset& dataset, int arity, const char* what) const;
  /// The steps of this process in an epoch of `dataset`; notes its batches and says what is left out. Errors: an epoch
  /// without a complete update.
  absl::StatusOr<std::int64_t> CountSteps(const data::Dataset& dataset);
  /// Says so where the last update of an epoch was left out for the rows of its last batch. This process has taken
  /// `batches` of the `steps` that CountSteps gave. Errors: it was the only update.
  absl::Status CheckUpdatesOfEpoch(std::int64_t batches, std::int64_t steps);
  /// Moves the position to where a call of Train begins. Errors: it would continue an epoch of another size.
  absl::Status BeginRun(std::int64_t epochs, const data::Dataset& dataset, std::int64_t steps_per_epoch);
  /// The rows of the present epoch from the present step on. With several processes, those of this rank.
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> OpenEpoch(const data::Dataset& dataset) const;
  /// The batches of this rank, from `first_update` on. `micro_batches` of all ranks make an update.
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> OpenShare(const data::Dataset& dataset, std::int64_t epoch,
                                                                   std::int64_t micro_batches,
                                                                   std::int64_t first_update,
                                                                   data::PartialUpdate partial) const;
  /// Lets the accumulators begin an update, where a run that failed has left a part of one. It is for whole updates.
  absl::Status BeginUpdate() const;
  /// The state that a checkpoint has. Where updates are whole, accumulators hold nothing between them and are left out.
  std::vector<Parameter> KeptState(const Model& model) const;
  /// Compares the settings and the rows of the processes that train together, and gives all of them the state of rank
  /// 0.
  absl::Status ShareStart(const Model& model, std::int64_t epochs, const data::Dataset& dataset,
                          const Validation* validation);
  /// What processes that train together compare of a call of Train and its rows, a line each. It reads the first batch.
  std::vector<std::string> DescribeRun(std::int64_t epochs, const data::Dataset& dataset,
                                       const Validation* validation) const;
  /// The rates that the first of the processes that train together has measured, so that all decide alike.
  absl::StatusOr<compiler::DeviceRates> AgreeOnRates(const compiler::DeviceRates& measured) const;
  /// Compares a training Program, its options and its kernels' choices with those of the process that has compiled it
  /// first. It waits for nobody. Errors (INVALID_ARGUMENT): what differs, with the ranks and how to see their Programs.
  absl::Status CompareProgram(const internal::CompiledStep& step, const internal::StepOptions& step_options);
  /// What a checkpoint says of this Model.
  internal::CheckpointMetadata Describe(absl::Span<const Parameter> state) const;
  /// Learns the state and the scalers of a step of the user's own by tracing it on the inputs that a checkpoint names.
  void TraceState(const internal::CheckpointMetadata& metadata);
  /// Errors (INVALID_ARGUMENT): everything that keeps the checkpoint of `path` from this Model, which `own` describes.
  absl::Status CheckFit(const std::string& path, const internal::CheckpointMetadata& metadata,
                        const internal::CheckpointMetadata& own, internal::CheckpointFit& fit) const;
  /// Where updates are whole: leaves the accumulators of a checkpoint out. Errors (FAILED_PRECONDITION): it was saved
  /// inside an update.
  absl::Status TakeWholeUpdates(const std::string& path, const internal::CheckpointMetadata& metadata,
                                Safetensors& content) const;
  /// Takes over the counters, the position and the decisions of a checkpoint, whose state has been loaded.
  void ContinueFrom(internal::CheckpointMetadata metadata, bool same_level, bool continue_run);
  /// Says on std::cerr where a Program's choices are not those of the checkpoint.
  void CompareChoices(const internal::CompiledStep& program) const;
  /// Tells `context` the scale of the first scaler and the skipped steps of all, as they are now.
  void TellScaling(RunContext& context) const;
  /// Tells callbacks of a step and reports overflow; `completes`: it is no micro-step before the last. Errors: too many
  /// skips in a row.
  absl::Status AfterStep(const internal::StepResults& results, bool completes, RunContext& context);
  /// Errors: a capsule that cannot be written, or of a step that no one process can repeat.
  absl::Status CheckCapsule() const;
  /// CheckCapsule where processes train together.
  absl::Status CheckSharedCapsule() const;
  /// The training step that has left `results`, as it was traced, and what it is compiled with.
  absl::StatusOr<internal::CapsuleSource> SourceOf(const internal::StepResults& results,
                                                   const std::vector<Tensor>& columns) const;
  /// Gives state the names that Programs know it by, where a capsule is to be written. A callback may have asked a
  /// part of the network for its Parameters, which names them by other paths.
  void NameStateOfCapsule() const;
  /// Writes the capsule of the step that `context` tells of, if it is the one that is asked for. That it cannot be
  /// written is said. `completes`: as of AfterStep; a micro-step before the last is kept. Errors: those of the group.
  absl::Status WriteCapsule(const internal::StepResults& results, const std::vector<Tensor>& columns, bool completes,
                            const RunContext& context);
  /// Model::Measure.
  absl::StatusOr<std::vector<ValueStatistics>> Measure(const std::vector<Tensor>& columns,
                                                       const MeasureOptions& options);
  /// A batch of the update under way.
  struct MicroBatch {
    std::int64_t number = 0;  ///< its place in the update, from 0
    std::vector<Tensor> columns;
  };
  /// Replays an update on its batches, in order, until one has a value that is not finite, and names the first such
  /// value. `batches` ends with the last one of the update; those before it may be missing, which is said. Writes to
  /// std::cerr, or adds the diagnosis to `failure` if there is one. Returns `failure`.
  absl::Status DiagnoseOverflow(const internal::StepResults& results, const std::vector<MicroBatch>& batches,
                                absl::Status failure);
  /// The diagnosis of an update that began at scale `scale` of `scaler`.
  std::string DiagnoseBatches(const LossScaler& scaler, double scale, const std::vector<MicroBatch>& batches);
  /// Measures `batch` as its step began: at scale `scale` of `scaler`, with the random numbers that it drew.
  absl::StatusOr<std::vector<ValueStatistics>> MeasureBatch(const LossScaler& scaler, double scale,
                                                            const MicroBatch& batch);
  /// A scaler with what its records are called: "finite" + suffix, ...
  struct Scaling {
    const LossScaler* scaler;
    std::string suffix;
  };
  std::vector<Scaling> ScalingOf(const internal::StepResults& results) const;
  /// The record "first_bad" of `scaler`; empty where the step has none.
  std::optional<double> FirstBad(const internal::StepResults& results, const LossScaler& scaler) const;
  /// Reports an overflow under one scaler, `first` of a run of them. Errors: too many skips in a row.
  absl::Status ReportOverflow(const internal::StepResults& results, const Scaling& scaling, const std::string& where,
                              bool first) const;
  /// The parameter whose gradient is the first that is not finite in a step's check: number `index`.
  std::string GradientName(const internal::StepResults& results, const std::string& suffix, std::int64_t index) const;
};

}  // namespace mpc
