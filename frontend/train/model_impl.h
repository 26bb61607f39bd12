// What a Model owns. Not part of the public API.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/report/precision_lock.h"
#include "compiler/report/range_table.h"
#include "frontend/graph/context.h"
#include "frontend/state/checkpoint_fit.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/train/active_scalers.h"
#include "frontend/train/callback_states.h"
#include "frontend/train/capsule_writer.h"
#include "frontend/train/hook_writes.h"
#include "frontend/train/inference_mode.h"
#include "frontend/train/learned_step.h"
#include "frontend/train/model.h"
#include "frontend/train/model_cells.h"
#include "frontend/train/precision_decision.h"
#include "frontend/train/process_training.h"
#include "frontend/train/program_cache.h"
#include "frontend/train/remarks.h"
#include "frontend/train/resumed_compilation.h"
#include "frontend/train/run_phase.h"
#include "frontend/train/run_position.h"
#include "frontend/train/update_batches.h"
#include "frontend/train/update_losses.h"
#include "frontend/train/validation.h"

namespace mpc {
namespace internal {

/// The precision that `options` ask for: the short form and `amp` merged, checked, printed as `amp` says. Errors: both
/// say something else; what amp::ResolveOptions refuses; a manager out of range.
absl::StatusOr<amp::Precision> ResolveModelOptions(const ModelOptions& options);

/// Errors (INVALID_ARGUMENT): an option of `options` says something else than `session`, which amp::Initialize gave
/// `network`. Options of loss scaling count where the Model would take the session's scaler.
absl::Status CheckAgreement(const ModelOptions& options, const amp::Precision& session, bool takes_scaler,
                            const std::string& network);

}  // namespace internal

/// The parts of a Model, each with the rules of its own, and what takes several of them.
struct Model::Impl {
  class TrainingRun;
  class Trained;
  class GradientProbe;
  class FrontierSearch;
  class SlotEstimate;

  Impl(nn::CellFunction network, nn::CellFunction loss, nn::Optimizer* optimizer, ModelOptions options);

  // What was given.
  absl::Status status;
  internal::ModelCells cells;
  ModelOptions options;
  amp::Precision precision;
  /// Those that were there when the Model was made.
  internal::ProcessTraining processes = internal::ProcessTraining::FromContext();
  internal::UpdateBatches updates;  ///< what `options` and `processes` make of them

  // What Programs are compiled with, and those that were.
  internal::RngState rng;
  /// What passes add to this Model's Programs: low copies of parameters, accumulators.
  std::shared_ptr<internal::PassState> pass_state = std::make_shared<internal::PassState>();
  internal::PrecisionDecision decision;
  internal::ProgramCache programs;
  internal::LearnedStep learned;
  std::map<std::string, int> compared_programs;  ///< Programs that CompareProgram has compared, by their place in a run

  // How training goes.
  internal::ActiveScalers scalers;
  internal::UpdateLosses update_losses;
  internal::RunPosition position;
  internal::ResumedCompilation resumed;
  internal::CallbackStates callback_states;
  internal::RunPhase phase;
  internal::Remarks remarks{processes.is_first()};
  internal::CapsuleWriter capsule_writer{"", 0};  ///< the writer of ModelOptions::capsule_path
  std::recursive_mutex mutex;                     ///< one thread at a time; callbacks of Train make calls in theirs

  /// The topic of WarnOfLoss among the remarks.
  static constexpr char kLossTopic[] = "the loss is not finite";
  /// Says once that the loss is not finite, where no scaler acts on it.
  void WarnOfLoss(const RunContext& context, const std::string& where);

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
  /// Errors: options of this Model that a step of the user's own does not follow.
  absl::Status CheckOwnStep(const internal::StepFacts& facts, const runtime::Program& program) const;
  /// Remarks on parameters that are stored low although this Model asks for masters.
  void SayWhatIsStoredLow();
  /// `step_options` with the decided assignment and, at level auto, the device's rates. Errors: measuring them.
  absl::StatusOr<internal::StepOptions> WithPrecision(internal::StepOptions step_options) const;
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
  absl::StatusOr<compiler::RangeTable> RangesOn(const Model& model, const data::Dataset& dataset) const {
    return RangesOn(model, dataset, TrainOptions({}));
  }
  /// RangesOn of a step that is compiled with `step_options`.
  absl::StatusOr<compiler::RangeTable> RangesOn(const Model& model, const data::Dataset& dataset,
                                                internal::StepOptions step_options) const;
  /// Where `loss_scale = "derived"` asks for it and no step has run, sets the scale that follows from RangesOn.
  absl::Status DeriveLossScale(const Model& model, const data::Dataset& dataset);
  /// Model::MakePackage.
  absl::StatusOr<runtime::Package> MakePackage(const std::vector<std::pair<std::string, TensorSpec>>& columns);

  /// The option that asks for loss scaling, with its value: "loss_scale_manager = static"; empty: none is given.
  std::string GivenScaling() const;
  /// What amp::Initialize gave the Cells, and with them the Model's own step. Errors: ModelOptions say something else.
  absl::Status UseSession();

  /// Model::Train and, with a validation, Model::Fit. `model` owns this.
  absl::Status Train(Model& model, std::int64_t epochs, const data::Dataset& dataset,
                     const internal::Validation* validation, const CallbackList& callbacks);
  /// Errors: what keeps `dataset` from Train.
  absl::Status CheckTraining(std::int64_t epochs, const data::Dataset& dataset);
  /// Errors: no loss; columns that the network and the loss do not take.
  absl::Status CheckEvaluation(const data::Dataset& dataset, const std::vector<std::string>& trained_classes) const;
  /// What the Program of Evaluate compiles with.
  internal::StepOptions EvalOptions(const data::Dataset& dataset) const;
  /// Where there is a memory budget, compiles what Evaluate runs on the first batch. Errors: it does not fit.
  absl::Status CheckEvaluationFits(const data::Dataset& dataset);
  /// The metrics over one pass of `dataset`. Nothing of training changes. An error of one rank is one of all.
  absl::StatusOr<std::map<std::string, double>> Evaluate(const data::Dataset& dataset, const MetricList& metrics);
  /// Updates `metrics` by the batches of `dataset`; `shares`: by those of this rank.
  absl::Status EvaluateBatches(const data::Dataset& dataset, const MetricList& metrics, bool shares);
  /// Evaluates and tells the callbacks and the context.
  absl::Status Validate(const internal::Validation& validation, const CallbackList& callbacks,
                        internal::HookWrites& hooks, RunContext& context);
  static std::unique_ptr<TrainedModel> MakeTrained(Model& model, const data::Dataset& dataset,
                                                   std::int64_t steps_per_epoch);

  /// Errors (INVALID_ARGUMENT): gradients that are accumulated keep a loss scale which the optimizer is to divide by.
  absl::Status CheckAccumulation() const;
  /// Errors (INVALID_ARGUMENT): gradients that are clipped or measured keep a loss scale which the optimizer is to
  /// divide by.
  absl::Status CheckClipping() const;
  /// The steps of this process in an epoch of `dataset`; notes its batches and says what is left out. Errors: an epoch
  /// without a complete update.
  absl::StatusOr<std::int64_t> CountSteps(const data::Dataset& dataset);
  /// Says so where the last update of an epoch was left out for the rows of its last batch. This process has taken
  /// `batches` of the `steps` that CountSteps gave. Errors: it was the only update.
  absl::Status CheckUpdatesOfEpoch(std::int64_t batches, std::int64_t steps);
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
                          const internal::Validation* validation);
  /// What processes that train together compare of a call of Train and its rows, a line each. It reads the first batch
  /// of each data set.
  std::vector<std::string> DescribeRun(std::int64_t epochs, const data::Dataset& dataset,
                                       const internal::Validation* validation) const;
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
  void ContinueFrom(const internal::CheckpointMetadata& metadata, bool same_level, bool continue_run);
  /// Says where the choices of `program` are not those of the last checkpoint.
  void WarnOfChoices(const runtime::Program& program) const;
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
  /// Gives state the names that Programs know it by, where a capsule is to be written. A callback may have asked a part
  /// of the network for its Parameters, which names them by other paths.
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
  /// Reports an overflow under one scaler, `first` of a run of them. Errors: too many skips in a row.
  absl::Status ReportOverflow(const internal::StepResults& results, const internal::ActiveScalers::Scaling& scaling,
                              const std::string& where, bool first) const;
};

}  // namespace mpc
