#include "tools/mpc-train/training.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/mpc-train/checkpoints.h"
#include "tools/mpc-train/optimizer.h"
#include "tools/mpc-train/timing_tree.h"
#include "tools/support/digit_data.h"
#include "tools/support/json_file.h"
#include "tools/support/synthetic_data.h"

namespace mpc::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTestBatch = 32;

DigitDataOptions DataOptions(const TrainOptions& options) {
  return {.data = options.data,
          .directory = options.data_directory,
          .shift = options.shift,
          .batch_size = options.batch_size,
          .seed = options.seed,
          .drop_remainder = options.drop_remainder};
}

/// The learning rate of an epoch, counted from 0.
double ScheduledRate(const TrainOptions& options, std::int64_t epoch) {
  if (options.schedule == "constant") return options.learning_rate;
  const double progress = static_cast<double>(epoch) / static_cast<double>(options.epochs);
  return options.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

/// The low type of the level; at O0 what f16 would lose.
PrecisionProfilerOptions ProfilerOptions(const Model& model) {
  return {.low = model.precision().level == "O0" ? DType::kF16 : model.precision().dtype};
}

double CompileSeconds(const Model& model) {
  double seconds = 0;
  for (const compiler::CompileResult* program : model.compiled()) seconds += TotalSeconds(*program);
  return seconds;
}

}  // namespace

std::string StepRate(std::int64_t steps, double seconds) {
  const double rate = static_cast<double>(steps) / std::max(seconds, 1e-9);
  return rate < 10 ? absl::StrFormat("%.3g steps/s", rate) : absl::StrFormat("%.0f steps/s", rate);
}

/// Measures each epoch, tests after it, reports it and sets the next learning rate.
class Training::EpochRecorder : public Callback {
 public:
  EpochRecorder(Training& training, std::ostream* progress) : training_(training), progress_(progress) {}

  const absl::Status& status() const { return status_; }

  void OnEpochBegin(RunContext& context) override {
    Check(training_.optimizer_->SetLearningRate(ScheduledRate(training_.options_, context.epoch - 1)), context);
    loss_sum_ = 0;
    finite_losses_ = 0;
    compiled_before_ = CompileSeconds(*training_.model_);
    begin_ = Clock::now();
  }

  void OnStepEnd(RunContext& context) override {
    if (!std::isfinite(context.loss())) return;
    loss_sum_ += context.loss();
    ++finite_losses_;
  }

  void OnEpochEnd(RunContext& context) override {
    EpochResult result;
    const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
    result.seconds = elapsed - (CompileSeconds(*training_.model_) - compiled_before_);
    result.steps = context.step_in_epoch;
    result.train_loss =
        finite_losses_ > 0 ? loss_sum_ / static_cast<double>(finite_losses_) : std::numeric_limits<double>::quiet_NaN();
    if (training_.test_rows_ > 0) {
      absl::StatusOr<TestResult> test = training_.Test();
      Check(test.status(), context);
      if (!test.ok()) return;
      result.test = *test;
    }
    training_.epochs_.push_back(result);
    if (progress_ == nullptr) return;
    *progress_ << absl::StrFormat("epoch %d/%d: loss %.4f, ", context.epoch, context.epochs, result.train_loss);
    if (training_.test_rows_ > 0) {
      *progress_ << absl::StrFormat("test loss %.4f, test accuracy %.2f %%, ", result.test.loss,
                                    100 * result.test.accuracy);
    }
    *progress_ << StepRate(result.steps, result.seconds) << std::endl;
  }

 private:
  void Check(const absl::Status& status, RunContext& context) {
    if (status.ok()) return;
    if (status_.ok()) status_ = status;
    context.RequestStop();
  }

  Training& training_;
  std::ostream* progress_;
  absl::Status status_;
  double loss_sum_ = 0;
  std::int64_t finite_losses_ = 0;
  double compiled_before_ = 0;
  Clock::time_point begin_;
};

absl::StatusOr<std::unique_ptr<Training>> Training::Create(const TrainOptions& options) {
  if (absl::Status status = CheckSavePath(options); !status.ok()) return status;
  if (!options.summary_path.empty()) {
    if (absl::Status status = CheckWritable(options.summary_path); !status.ok()) return status;
  }
  if (!options.profile_path.empty()) {
    if (absl::Status status = CheckWritable(options.profile_path); !status.ok()) return status;
  }
  if (!options.trace_path.empty()) {
    if (absl::Status status = CheckWritable(options.trace_path); !status.ok()) return status;
  }
  SetSeed(static_cast<std::uint64_t>(options.seed));
  if (absl::Status status = SetContext(ContextOf(options, options.threads)); !status.ok()) return status;
  auto training = std::unique_ptr<Training>(new Training(options));
  if (absl::Status status = training->LoadData(); !status.ok()) return status;
  if (absl::Status status = training->MakeModel(); !status.ok()) return status;
  absl::StatusOr<std::string> resumed = Resume(options, *training->model_);
  if (!resumed.ok()) return resumed.status();
  training->resumed_ = *std::move(resumed);
  return training;
}

absl::Status Training::MakeModel() {
  if (workload_ == nullptr) {
    absl::StatusOr<std::unique_ptr<models::Classifier>> classifier = models::MakeClassifier(options_.model);
    if (!classifier.ok()) return classifier.status();
    classifier_ = *std::move(classifier);
  }
  nn::Cell& network = workload_ != nullptr ? workload_->network() : classifier_->network();
  optimizer_ = MakeOptimizer(options_, network.TrainableParams());
  if (!options_.load_path.empty()) {
    if (absl::Status status = LoadParamIntoNet(network, options_.load_path).status(); !status.ok()) return status;
  }
  ModelOptions model_options{
      .amp = options_.amp, .device = options_.device, .diagnose_overflow = options_.diagnose_overflow};
  if (workload_ != nullptr) {
    model_ = std::make_unique<Model>(workload_->MakeModel(*optimizer_, std::move(model_options)));
  } else {
    model_options.metrics = {"accuracy", "loss"};
    model_ = std::make_unique<Model>(classifier_->MakeModel(loss_, *optimizer_, std::move(model_options)));
  }
  return model_->status();
}

absl::Status Training::LoadData() {
  if (options_.data == kSynthetic) {
    absl::StatusOr<std::unique_ptr<models::Workload>> workload =
        models::MakeWorkload(options_.model, {.image_size = options_.image_size, .tokens = options_.tokens});
    if (!workload.ok()) return workload.status();
    workload_ = *std::move(workload);
    train_data_ = SyntheticData({.columns = workload_->TrainInputs(options_.batch_size),
                                 .names = {"data", "label"},
                                 .classes = workload_->classes(),
                                 .steps = options_.steps,
                                 .seed = options_.seed});
    return train_data_.status();
  }
  absl::StatusOr<data::Dataset> train = LoadTrainingBatches(DataOptions(options_));
  if (!train.ok()) return train.status();
  train_data_ = *std::move(train);
  absl::StatusOr<data::Dataset> test = LoadDigitRows(DataOptions(options_), data::Split::kTest);
  if (!test.ok()) return test.status();
  const absl::StatusOr<std::int64_t> rows = test->size();
  if (!rows.ok()) return rows.status();
  test_rows_ = *rows;
  test_data_ = test->Batch(std::min(kTestBatch, test_rows_));
  return absl::OkStatus();
}

absl::StatusOr<TestResult> Training::Test() {
  absl::StatusOr<std::map<std::string, double>> metrics = model_->Eval(test_data_);
  if (!metrics.ok()) return metrics.status();
  return TestResult{.accuracy = metrics->at("accuracy"), .loss = metrics->at("loss")};
}

absl::Status Training::Run(std::ostream* progress) {
  if (progress != nullptr && !resumed_.empty()) *progress << resumed_ << std::endl;
  if (options_.epochs > 0) {
    EpochRecorder recorder(*this, progress);
    const std::shared_ptr<Callback> saver = MakeSaver(options_);
    std::shared_ptr<PrecisionProfiler> profiler;
    if (options_.profile_precision) profiler = std::make_shared<PrecisionProfiler>(*model_, ProfilerOptions(*model_));
    std::shared_ptr<StepTrace> trace;
    if (!options_.trace_path.empty()) {
      trace = std::make_shared<StepTrace>(options_.model, options_.trace_first, options_.trace_last);
    }
    // Where the output is no terminal the recorder's line says what the bar's would.
    const bool bar = progress == &std::cout && ::isatty(STDOUT_FILENO) == 1;
    const absl::Status status =
        bar ? model_->Train(options_.epochs, train_data_, {ProgressBar(), recorder, saver, profiler, trace})
            : model_->Train(options_.epochs, train_data_, {recorder, saver, profiler, trace});
    if (!status.ok()) return status;
    if (!recorder.status().ok()) return recorder.status();
    if (trace != nullptr) {
      if (absl::Status saved = trace->Save(options_.trace_path); !saved.ok()) return saved;
    }
    if (profiler != nullptr) {
      profile_ = profiler->profile();
      if (!options_.profile_path.empty()) {
        if (absl::Status saved = profile_->Save(options_.profile_path); !saved.ok()) return saved;
      }
    }
  } else if (!options_.save_path.empty() && !SavesToFolder(options_)) {
    if (absl::Status status = model_->SaveCheckpoint(options_.save_path); !status.ok()) return status;
  }
  if (!epochs_.empty()) {
    test_ = epochs_.back().test;
    return absl::OkStatus();
  }
  if (test_rows_ == 0) return absl::OkStatus();
  // Nothing was trained: no epochs were asked for, or the checkpoint has them all.
  absl::StatusOr<TestResult> test = Test();
  if (!test.ok()) return test.status();
  test_ = *test;
  return absl::OkStatus();
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
