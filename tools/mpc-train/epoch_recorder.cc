#include "tools/mpc-train/epoch_recorder.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/str_format.h"
#include "tools/mpc-train/optimizer.h"
#include "tools/mpc-train/timing_tree.h"

namespace mpc::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// The learning rate of an epoch, counted from 0.
double ScheduledRate(const TrainOptions& options, std::int64_t epoch) {
  if (options.schedule == "constant") return options.learning_rate;
  const double progress = static_cast<double>(epoch) / static_cast<double>(options.epochs);
  return options.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace

void MeanLoss::Add(double loss) {
  if (!std::isfinite(loss)) return;
  sum_ += loss;
  ++count_;
}

double MeanLoss::value() const {
  return count_ > 0 ? sum_ / static_cast<double>(count_) : std::numeric_limits<double>::quiet_NaN();
}

void Training::EpochRecorder::OnEpochBegin(RunContext& context) {
  // Elsewhere the step computes it.
  if (!RateIsInStep(training_.options_)) {
    Check(training_.optimizer_->SetLearningRate(ScheduledRate(training_.options_, context.epoch - 1)), context);
  }
  last_step_ = steps_before_ = context.global_step;
  batches_before_ = context.step_in_epoch;
  epoch_loss_ = MeanLoss();
  compiled_before_ = TotalSeconds(training_.model_->compiled());
  tested_before_ = training_.test_seconds_;
  begin_ = Clock::now();
}

void Training::EpochRecorder::OnStepEnd(RunContext& context) {
  epoch_loss_.Add(context.loss());
  loss_since_validation_.Add(context.loss());
  // While gradients are accumulated the global step stands still.
  const bool stepped = context.global_step != last_step_;
  last_step_ = context.global_step;
  // The end of an epoch has a test of its own.
  if (!stepped || !ValidatesAt(context.global_step) || context.step_in_epoch == context.steps_per_epoch) return;
  const double train_loss = loss_since_validation_.value();
  const absl::StatusOr<TestResult> test = Test(context);
  if (!test.ok() || progress_ == nullptr) return;
  // Batches that an earlier epoch has left over belong to the first step of this one.
  const std::int64_t of_step = training_.options_.accumulation;
  const std::int64_t step = (context.step_in_epoch + of_step - 1) / of_step;
  const std::int64_t left_over = step * of_step - context.step_in_epoch;
  *progress_ << absl::StrFormat("step %d/%d: loss %s, validation loss %s", step,
                                (left_over + context.steps_per_epoch) / of_step, FormatLoss(train_loss),
                                FormatLoss(test->loss))
             << std::endl;
}

void Training::EpochRecorder::OnEpochEnd(RunContext& context) {
  EpochResult result;
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  const double compiled = TotalSeconds(training_.model_->compiled()) - compiled_before_;
  result.seconds = elapsed - compiled - (training_.test_seconds_ - tested_before_);
  const bool accumulates = training_.options_.accumulation > 1;
  const std::int64_t batches = context.step_in_epoch - batches_before_;
  result.steps = accumulates ? context.global_step - steps_before_ : batches;
  training_.data_wait_seconds_ = context.data_wait_seconds;
  // Where an earlier run has trained on all batches, what it has told of the last one is left.
  result.train_loss = batches > 0 ? epoch_loss_.value() : context.loss();
  if (training_.test_rows_ > 0) {
    absl::StatusOr<TestResult> test = Test(context);
    if (!test.ok()) return;
    result.test = *test;
  }
  training_.epochs_.push_back(result);
  if (progress_ == nullptr) return;
  *progress_ << absl::StrFormat("epoch %d/%d: loss %s, ", context.epoch, context.epochs, FormatLoss(result.train_loss));
  if (training_.options_.data == kText) {
    *progress_ << absl::StrFormat("validation loss %s, ", FormatLoss(result.test.loss));
  } else if (training_.test_rows_ > 0) {
    *progress_ << absl::StrFormat("test loss %s, test accuracy %.2f %%, ", FormatLoss(result.test.loss),
                                  100 * result.test.accuracy);
  }
  *progress_ << StepRate(result.steps, result.seconds) << std::endl;
}

bool Training::EpochRecorder::ValidatesAt(std::int64_t step) const {
  const std::int64_t every = training_.options_.validate_every;
  return every > 0 && step % every == 0;
}

absl::StatusOr<TestResult> Training::EpochRecorder::Test(RunContext& context) {
  absl::StatusOr<TestResult> test = training_.Test();
  Check(test.status(), context);
  if (test.ok() && plot_ != nullptr) {
    const bool text = training_.options_.data == kText;
    plot_->AddEvaluation(context.global_step, {{text ? "validation loss" : "test loss", test->loss}});
    if (!text) plot_->AddEvaluation(context.global_step, {{"test accuracy", test->accuracy}});
  }
  if (test.ok() && training_.options_.data == kText) {
    training_.validations_.push_back({context.global_step, loss_since_validation_.value(), test->loss});
    loss_since_validation_ = MeanLoss();
  }
  return test;
}

void Training::EpochRecorder::Check(const absl::Status& status, RunContext& context) {
  if (status.ok()) return;
  if (status_.ok()) status_ = status;
  context.RequestStop();
}

}  // namespace mpc::tools
