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
#include "frontend/data/find_data.h"
#include "tools/mpc-train/checkpoints.h"
#include "tools/mpc-train/random_shift.h"
#include "tools/mpc-train/timing_tree.h"
#include "tools/support/json_file.h"

namespace mpc::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTestBatch = 32;

absl::StatusOr<data::Dataset> LoadMnist(const TrainOptions& options, data::Split split) {
  data::Dataset dataset = data::Mnist(split, {.directory = options.data_directory});
  if (dataset.status().code() == absl::StatusCode::kNotFound) {
    return absl::NotFoundError(
        absl::StrCat(dataset.status().message(), "; name the folder that holds MNIST's files with --data-dir=FOLDER"));
  }
  if (!dataset.status().ok()) return dataset.status();
  return dataset;
}

absl::StatusOr<data::Dataset> LoadDigits(const TrainOptions& options, data::Split split) {
  data::DigitsOptions digits;
  if (!options.data_directory.empty()) {
    absl::StatusOr<std::string> path = data::FindDataFile({"digits.csv.gz", "digits.csv"}, {options.data_directory});
    if (!path.ok()) return path.status();
    digits.path = *std::move(path);
  }
  return data::Digits(split, digits);
}

absl::StatusOr<data::Dataset> LoadSplit(const TrainOptions& options, data::Split split) {
  return options.data == "mnist" ? LoadMnist(options, split) : LoadDigits(options, split);
}

std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainOptions& options, std::vector<Parameter> parameters) {
  const double rate = options.learning_rate;
  const double decay = options.weight_decay;
  if (options.optimizer == "sgd") {
    return std::make_unique<nn::SGD>(
        std::move(parameters),
        nn::SGDOptions{.learning_rate = rate, .momentum = options.momentum, .weight_decay = decay});
  }
  if (options.optimizer == "adam") {
    return std::make_unique<nn::Adam>(std::move(parameters),
                                      nn::AdamOptions{.learning_rate = rate, .weight_decay = decay});
  }
  if (options.optimizer == "adamw") {
    return std::make_unique<nn::AdamWeightDecay>(
        std::move(parameters), nn::AdamWeightDecayOptions{.learning_rate = rate, .weight_decay = decay});
  }
  return std::make_unique<nn::Momentum>(
      std::move(parameters),
      nn::MomentumOptions{.learning_rate = rate, .momentum = options.momentum, .weight_decay = decay});
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
    absl::StatusOr<TestResult> test = training_.Test();
    Check(test.status(), context);
    if (!test.ok()) return;
    result.test = *test;
    training_.epochs_.push_back(result);
    if (progress_ == nullptr) return;
    *progress_ << absl::StrFormat("epoch %d/%d: loss %.4f, test loss %.4f, test accuracy %.2f %%, %.0f steps/s\n",
                                  context.epoch, context.epochs, result.train_loss, result.test.loss,
                                  100 * result.test.accuracy,
                                  static_cast<double>(result.steps) / std::max(result.seconds, 1e-9))
               << std::flush;
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
  SetSeed(static_cast<std::uint64_t>(options.seed));
  if (absl::Status status = SetContext({.device = options.device, .num_threads = static_cast<int>(options.threads)});
      !status.ok()) {
    return status;
  }
  auto training = std::unique_ptr<Training>(new Training(options));
  if (absl::Status status = training->LoadData(); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<models::Classifier>> classifier = models::MakeClassifier(options.model);
  if (!classifier.ok()) return classifier.status();
  training->classifier_ = *std::move(classifier);
  nn::Cell& network = training->classifier_->network();
  training->optimizer_ = MakeOptimizer(options, network.TrainableParams());
  if (!options.load_path.empty()) {
    if (absl::Status status = LoadParamIntoNet(network, options.load_path).status(); !status.ok()) return status;
  }
  ModelOptions model_options{.metrics = {"accuracy", "loss"},
                             .amp = options.amp,
                             .device = options.device,
                             .diagnose_overflow = options.diagnose_overflow};
  training->model_ = std::make_unique<Model>(
      training->classifier_->MakeModel(training->loss_, *training->optimizer_, std::move(model_options)));
  if (!training->model_->status().ok()) return training->model_->status();
  absl::StatusOr<std::string> resumed = Resume(options, *training->model_);
  if (!resumed.ok()) return resumed.status();
  training->resumed_ = *std::move(resumed);
  return training;
}

absl::Status Training::LoadData() {
  absl::StatusOr<data::Dataset> train = LoadSplit(options_, data::Split::kTrain);
  if (!train.ok()) return train.status();
  absl::StatusOr<std::int64_t> rows = train->size();
  if (!rows.ok()) return rows.status();
  if (options_.batch_size > *rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch size ", options_.batch_size, " is larger than the training set (", *rows, " rows)"));
  }
  const auto seed = static_cast<std::uint64_t>(options_.seed);
  train_data_ = train->Shuffle(seed);
  if (options_.shift > 0) train_data_ = train_data_.Map(RandomShift(options_.shift, seed, *rows), "image");
  train_data_ = train_data_.Batch(options_.batch_size);
  absl::StatusOr<data::Dataset> test = LoadSplit(options_, data::Split::kTest);
  if (!test.ok()) return test.status();
  rows = test->size();
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
    // Where the output is no terminal the recorder's line says what the bar's would.
    const bool bar = progress == &std::cout && ::isatty(STDOUT_FILENO) == 1;
    const absl::Status status =
        bar ? model_->Train(options_.epochs, train_data_, {ProgressBar(), recorder, saver, profiler})
            : model_->Train(options_.epochs, train_data_, {recorder, saver, profiler});
    if (!status.ok()) return status;
    if (!recorder.status().ok()) return recorder.status();
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
