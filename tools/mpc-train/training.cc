#include "tools/mpc-train/training.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "frontend/train/process_training.h"
#include "mpc/distributed.h"
#include "mpc/train.h"
#include "tools/mpc-train/checkpoints.h"
#include "tools/mpc-train/epoch_recorder.h"
#include "tools/mpc-train/frontier.h"
#include "tools/mpc-train/hash_log.h"
#include "tools/mpc-train/initial_weights.h"
#include "tools/mpc-train/optimizer.h"
#include "tools/mpc-train/sample.h"
#include "tools/mpc-train/timing_tree.h"
#include "tools/support/digit_data.h"
#include "tools/support/json_file.h"
#include "tools/support/picture_data.h"
#include "tools/support/synthetic_data.h"
#include "tools/support/text_data.h"

namespace mpc::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTestBatch = 32;
/// Schedules over more steps do not differ.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

DigitDataOptions DataOptions(const TrainOptions& options) {
  return {.data = options.data,
          .directory = options.data_directory,
          .shift = options.shift,
          .batch_size = options.batch_size,
          .seed = options.seed,
          .drop_remainder = options.drop_remainder,
          .trains = options.epochs > 0};
}

/// The low type of the level; at O0 what f16 would lose.
PrecisionProfilerOptions ProfilerOptions(const Model& model) {
  return {.low = model.precision().level == "O0" ? DType::kF16 : model.precision().dtype};
}

TextDataOptions TextOptionsOf(const TrainOptions& options) {
  return {.path = options.text_path,
          .tokens = options.tokens,
          .batch_size = options.batch_size,
          .steps = options.steps,
          .seed = options.seed};
}

PictureDataOptions PictureOptionsOf(const TrainOptions& options) {
  PictureDataOptions pictures{.directory = options.data_directory,
                              .mean = options.mean,
                              .std = options.std,
                              .augment = options.augment,
                              .workers = options.workers,
                              .batch_size = options.batch_size,
                              .seed = options.seed,
                              .drop_remainder = options.drop_remainder,
                              .trains = options.epochs > 0};
  if (options.skip_damaged) pictures.skipped = std::make_shared<data::SkippedRows>();
  return pictures;
}

/// "pictures: mean 0.5 0.5 0.5, deviation 0.5 0.5 0.5; training takes whole pictures".
std::string PictureNote(const PictureDataOptions& pictures) {
  return absl::StrCat("pictures: mean ", absl::StrJoin(pictures.mean, " "), ", deviation ",
                      absl::StrJoin(pictures.std, " "), "; training takes ",
                      pictures.augment ? "random parts, mirrored half of the time" : "whole pictures");
}

/// Of a classifier of digits.
int ClassesOf(const TrainOptions& options) {
  return options.classes > 0 ? static_cast<int>(options.classes) : kDigitClasses;
}

}  // namespace

std::string StepRate(std::int64_t steps, double seconds) {
  const double rate = static_cast<double>(steps) / std::max(seconds, 1e-9);
  return rate < 10 ? absl::StrFormat("%.3g steps/s", rate) : absl::StrFormat("%.0f steps/s", rate);
}

absl::StatusOr<std::unique_ptr<Training>> Training::Create(const TrainOptions& options) {
  if (absl::Status status = CheckSavePath(options); !status.ok()) return status;
  if (!options.summary_path.empty()) {
    if (absl::Status status = CheckWritable(options.summary_path); !status.ok()) return status;
  }
  for (const std::string& path : {options.profile_path, options.trace_path, options.plot_path, options.capsule_path,
                                  options.record_hashes_path, options.report_html_path, options.save_precision_path}) {
    if (path.empty()) continue;
    if (absl::Status status = CheckWritable(path); !status.ok()) return status;
  }
  SetSeed(static_cast<std::uint64_t>(options.seed));
  if (absl::Status status = SetContext(ContextOf(options, options.threads)); !status.ok()) return status;
  auto training = std::unique_ptr<Training>(new Training(options));
  if (absl::Status status = training->LoadData(); !status.ok()) return status;
  if (absl::Status status = training->MakeModel(); !status.ok()) return status;
  absl::StatusOr<std::string> resumed = Resume(options, *training->model_);
  if (!resumed.ok()) return resumed.status();
  training->resumed_ = *std::move(resumed);
  if (absl::Status status = TakePrecision(options, training->train_data_, *training->model_); !status.ok()) {
    return status;
  }
  if (absl::Status status = training->LockPrecision(); !status.ok()) return status;
  return training;
}

absl::Status Training::FindFrontier(std::ostream& out) { return RunFrontier(options_, train_data_, *model_, out); }

absl::Status Training::LockPrecision() const {
  if (!options_.lock_precision_path.empty()) {
    const std::string& path = options_.lock_precision_path;
    if (absl::Status status = model_->LockPrecision(path, train_data_, /*update=*/true); !status.ok()) return status;
  }
  if (options_.check_precision_path.empty()) return absl::OkStatus();
  return model_->CheckPrecision(options_.check_precision_path, train_data_);
}

absl::Status Training::MakeModel() {
  if (workload_ == nullptr) {
    absl::StatusOr<std::unique_ptr<models::Classifier>> classifier =
        models::MakeClassifier(options_.model, ClassesOf(options_));
    if (!classifier.ok()) return classifier.status();
    classifier_ = *std::move(classifier);
  }
  nn::Cell& network = workload_ != nullptr ? workload_->network() : classifier_->network();
  if (absl::Status status = Freeze(options_, network); !status.ok()) return status;
  const absl::StatusOr<std::int64_t> steps = StepsToTrain();
  if (!steps.ok()) return steps.status();
  optimizer_ = MakeOptimizer(options_, network.TrainableParams(), *steps);
  if (absl::Status status = CheckClassNames(options_, train_data_.class_names()); !status.ok()) return status;
  if (absl::Status status = LoadInitialWeights(options_, network); !status.ok()) return status;
  ModelOptions model_options{.amp = options_.amp,
                             .device = options_.device,
                             .accumulation_steps = options_.accumulation,
                             .max_consecutive_skips = options_.max_consecutive_skips,
                             .diagnose_overflow = options_.diagnose_overflow,
                             .capsule_path = options_.capsule_path,
                             .capsule_at = options_.capsule_at,
                             .clip_global_norm = ClipNorm(options_),
                             .clip_value = ClipValue(options_),
                             .record_learning_rate = !options_.plot_path.empty(),
                             .record_state_hash = !options_.record_hashes_path.empty()};
  if (workload_ != nullptr) {
    // Of text the loss is what is shown.
    if (options_.data == kText) model_options.metrics = {"loss"};
    if (options_.data == kPictures) model_options.metrics = {"accuracy", "loss"};
    model_ = std::make_unique<Model>(workload_->MakeModel(*optimizer_, std::move(model_options)));
  } else {
    model_options.metrics = {"accuracy", "loss"};
    model_ = std::make_unique<Model>(classifier_->MakeModel(loss_, *optimizer_, std::move(model_options)));
  }
  return model_->status();
}

absl::StatusOr<std::int64_t> Training::StepsToTrain() const {
  if (options_.data == kText) return TotalSteps(options_);
  const absl::StatusOr<std::int64_t> batches = train_data_.size();
  if (!batches.ok()) return batches.status();
  // Where processes train together, what is left of an epoch's batches makes no step. Elsewhere it goes on in the next.
  const std::int64_t of_update = options_.accumulation * distributed::GetRankSize();
  const std::int64_t batches_of_rank = options_.distributed ? *batches / of_update * options_.accumulation : *batches;
  const double all = static_cast<double>(options_.epochs) * static_cast<double>(batches_of_rank);
  if (all > static_cast<double>(kMostSteps)) return kMostSteps;
  const std::int64_t steps = options_.epochs * batches_of_rank / options_.accumulation;
  if (options_.epochs == 0 || options_.warmup_steps == 0 || options_.warmup_steps < steps) return steps;
  return absl::InvalidArgumentError(absl::StrCat("--warmup-steps=", options_.warmup_steps, " leaves none of the ",
                                                 steps, " steps; give fewer of them"));
}

absl::Status Training::LoadData() {
  if (options_.data == kText) return LoadText();
  if (options_.data == kPictures) return LoadPictures();
  if (options_.data != kSynthetic) return LoadDigits();
  if (absl::Status status = MakeWorkload(SizesOf(options_)); !status.ok()) return status;
  train_data_ = SyntheticData({.columns = workload_->TrainInputs(options_.batch_size),
                               .names = {"data", "label"},
                               .classes = workload_->classes(),
                               .steps = options_.steps,
                               .seed = options_.seed});
  return train_data_.status();
}

absl::Status Training::MakeWorkload(const models::WorkloadSizes& sizes) {
  absl::StatusOr<std::unique_ptr<models::Workload>> workload = models::MakeWorkload(options_.model, sizes);
  if (!workload.ok()) return workload.status();
  workload_ = *std::move(workload);
  return absl::OkStatus();
}

absl::Status Training::LoadText() {
  const TextDataOptions text = TextOptionsOf(options_);
  train_data_ = LoadTextRows(text, data::Split::kTrain).Batch(options_.batch_size);
  if (absl::Status status = TestOn(LoadTextRows(text, data::Split::kTest)); !status.ok()) return status;
  if (absl::Status status = MakeWorkload(SizesOf(options_)); !status.ok()) return status;
  return CheckBatchFits(workload_->TrainInputs(options_.batch_size)).status();
}

absl::Status Training::LoadDigits() {
  absl::StatusOr<data::Dataset> train = LoadTrainingBatches(DataOptions(options_));
  if (!train.ok()) return train.status();
  train_data_ = *std::move(train);
  absl::StatusOr<data::Dataset> test = LoadDigitRows(DataOptions(options_), data::Split::kTest);
  if (!test.ok()) return test.status();
  test_note_ = TestSetNote(options_.data, options_.data_directory);
  return TestOn(*test);
}

absl::Status Training::LoadPictures() {
  PictureDataOptions pictures = PictureOptionsOf(options_);
  const absl::StatusOr<std::vector<std::string>> classes = PictureClasses(pictures.directory);
  if (!classes.ok()) return classes.status();
  const auto count = static_cast<std::int64_t>(classes->size());
  models::WorkloadSizes sizes = SizesOf(options_);
  if (sizes.classes == 0) sizes.classes = count;
  if (sizes.classes < count) {
    return absl::InvalidArgumentError(absl::StrCat("--classes=", sizes.classes, ": ", pictures.directory, " has ",
                                                   count, " classes; give as many or more"));
  }
  if (absl::Status status = MakeWorkload(sizes); !status.ok()) return status;
  pictures.image = workload_->PredictInputs(1).front().shape;
  pictures.image.erase(pictures.image.begin());
  absl::StatusOr<data::Dataset> train = LoadPictureBatches(pictures);
  if (!train.ok()) return train.status();
  train_data_ = *std::move(train);
  const std::shared_ptr<data::SkippedRows> skipped = pictures.skipped;
  if (skipped != nullptr) pictures.skipped = std::make_shared<data::SkippedRows>();
  const absl::StatusOr<data::Dataset> test = LoadPictureRows(pictures, data::Split::kTest);
  if (!test.ok()) return test.status();
  if (skipped != nullptr) NoteLeftOut(*skipped, *pictures.skipped);
  picture_note_ = PictureNote(pictures);
  return TestOn(*test);
}

void Training::NoteLeftOut(const data::SkippedRows& train, const data::SkippedRows& test) {
  left_out_ = {.train = train.count(), .test = test.count()};
  for (const data::SkippedRows* part : {&test, &train}) {
    if (part->count() > 0) left_out_.first_error = part->errors().front();
  }
}

absl::Status Training::TestOn(const data::Dataset& rows) {
  const absl::StatusOr<std::int64_t> count = rows.size();
  if (!count.ok()) return count.status();
  test_rows_ = *count;
  test_data_ = rows.Batch(std::min(kTestBatch, test_rows_));
  return absl::OkStatus();
}

absl::StatusOr<TestResult> Training::Test() {
  const double compiled_before = TotalSeconds(model_->compiled());
  const Clock::time_point begin = Clock::now();
  absl::StatusOr<std::map<std::string, double>> metrics = model_->Eval(test_data_);
  if (!metrics.ok()) return metrics.status();
  test_seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
  test_seconds_ -= TotalSeconds(model_->compiled()) - compiled_before;
  const auto accuracy = metrics->find("accuracy");
  return TestResult{
      .accuracy = accuracy != metrics->end() ? accuracy->second : std::numeric_limits<double>::quiet_NaN(),
      .loss = metrics->at("loss")};
}

absl::Status Training::Sample() {
  if (options_.sample_bytes == 0) return absl::OkStatus();
  absl::StatusOr<std::string> sample = SampleText(*model_, {.prompt = options_.prompt,
                                                            .bytes = options_.sample_bytes,
                                                            .context = options_.tokens,
                                                            .temperature = options_.temperature,
                                                            .seed = static_cast<std::uint64_t>(options_.seed)});
  if (!sample.ok()) return sample.status();
  sample_ = *std::move(sample);
  return absl::OkStatus();
}

absl::Status Training::CheckTestFits() {
  // A process without a budget would not evaluate here, and the others would wait for it.
  const absl::Status alike = mpc::internal::ProcessTraining::FromContext().CompareSettings(
      {absl::StrCat("--memory-budget: ", options_.memory_budget)});
  if (!alike.ok()) return alike;
  if (options_.memory_budget == 0 || test_rows_ == 0) return absl::OkStatus();
  // Of several processes each takes a batch.
  const absl::Status status = model_->Eval(test_data_.Take(distributed::GetRankSize())).status();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("the test, before the first step: ", status.message()));
}

absl::Status Training::Train(std::ostream* progress) {
  if (absl::Status fits = CheckTestFits(); !fits.ok()) return fits;
  std::shared_ptr<TrainingPlot> plot;
  if (!options_.plot_path.empty()) {
    plot = std::make_shared<TrainingPlot>(TrainingPlotOptions{
        .filename = options_.plot_path, .title = absl::StrCat(options_.model, ", ", options_.data)});
  }
  EpochRecorder recorder(*this, progress, plot.get());
  const std::shared_ptr<Callback> saver = MakeSaver(options_);
  std::shared_ptr<PrecisionProfiler> profiler;
  if (options_.profile_precision) profiler = std::make_shared<PrecisionProfiler>(*model_, ProfilerOptions(*model_));
  std::shared_ptr<StepTrace> trace;
  if (!options_.trace_path.empty()) {
    trace = std::make_shared<StepTrace>(options_.model, options_.trace_first, options_.trace_last);
  }
  std::shared_ptr<HashLog> hashes;
  if (!options_.record_hashes_path.empty()) hashes = std::make_shared<HashLog>(options_.record_hashes_path);
  // Where the output is no terminal the recorder's line says what the bar's would; lines amid an epoch would break it.
  const bool bar = progress == &std::cout && ::isatty(STDOUT_FILENO) == 1 && options_.validate_every == 0;
  const std::int64_t steps_before = model_->global_step();
  // The saver saves at the end of a run that is stopped too.
  OnRequestExit on_exit;
  const absl::Status status =
      bar ? model_->Train(options_.epochs, train_data_,
                          {ProgressBar(), recorder, plot, saver, profiler, trace, hashes, on_exit})
          : model_->Train(options_.epochs, train_data_, {recorder, plot, saver, profiler, trace, hashes, on_exit});
  signal_ = on_exit.signal();
  if (!status.ok()) return InFlags(status);
  if (!recorder.status().ok()) return recorder.status();
  if (absl::Status missed = CheckCapsuleStep(steps_before); !missed.ok()) return missed;
  if (trace != nullptr) {
    if (absl::Status saved = SaveTrace(*trace, options_.trace_path, signal_ != 0); !saved.ok()) return saved;
  }
  if (profiler == nullptr) return absl::OkStatus();
  profile_ = profiler->profile();
  return options_.profile_path.empty() ? absl::OkStatus() : profile_->Save(options_.profile_path);
}

absl::Status Training::CheckCapsuleStep(std::int64_t steps_before) const {
  const std::int64_t at = options_.capsule_at, steps = model_->global_step();
  if (at == 0 || (at > steps_before && at <= steps)) return absl::OkStatus();
  const std::string ran = steps > steps_before ? absl::StrCat("steps ", steps_before + 1, " to ", steps) : "no steps";
  const std::string message = absl::StrCat("no capsule was written: --capsule-at=", at, ", but this run had ", ran);
  if (signal_ == 0) return absl::FailedPreconditionError(message);
  std::cerr << "warning: " << message << "\n";
  return absl::OkStatus();
}

absl::Status Training::Run(std::ostream* progress) {
  for (const std::string& note : {picture_note_, resumed_}) {
    if (progress != nullptr && !note.empty()) *progress << note << std::endl;
  }
  if (options_.epochs > 0) {
    if (absl::Status status = Train(progress); !status.ok()) return status;
  } else if (!options_.save_path.empty() && !SavesToFolder(options_)) {
    if (absl::Status status = model_->SaveCheckpoint(options_.save_path); !status.ok()) return status;
  }
  if (!epochs_.empty()) {
    test_ = epochs_.back().test;
  } else if (test_rows_ > 0) {
    // Nothing was trained: no epochs were asked for, or the checkpoint has them all.
    absl::StatusOr<TestResult> test = Test();
    if (!test.ok()) return test.status();
    test_ = *test;
  }
  return signal_ == 0 ? Sample() : absl::OkStatus();
}

std::int64_t Training::steps() const {
  std::int64_t steps = 0;
  for (const EpochResult& epoch : epochs_) steps += epoch.steps;
  return steps;
}

double Training::seconds() const {
  double seconds = 0;
  for (const EpochResult& epoch : epochs_) seconds += epoch.seconds;
  return seconds;
}

}  // namespace mpc::tools
