#include "frontend/train/callback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "frontend/train/request_exit.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// Runs the hooks as Model::Train does; every step's loss is its global number plus 0.25.
void Train(const CallbackList& callbacks, std::int64_t epochs, std::int64_t steps) {
  RunContext context;
  context.epochs = epochs;
  context.steps_per_epoch = steps;
  callbacks.OnTrainBegin(context);
  for (context.epoch = 1; context.epoch <= epochs && !context.stop_requested(); ++context.epoch) {
    callbacks.OnEpochBegin(context);
    for (context.step_in_epoch = 1; context.step_in_epoch <= steps; ++context.step_in_epoch) {
      ++context.global_step;
      callbacks.OnStepBegin(context);
      context.set_loss([step = context.global_step] { return static_cast<float>(step) + 0.25f; });
      callbacks.OnStepEnd(context);
      if (context.stop_requested()) break;
    }
    context.step_in_epoch = std::min(context.step_in_epoch, steps);
    callbacks.OnEpochEnd(context);
  }
  callbacks.OnTrainEnd(context);
}

class Recorder : public Callback {
 public:
  void OnTrainBegin(RunContext&) override { events.push_back("train"); }
  void OnEpochBegin(RunContext&) override { events.push_back("epoch"); }
  void OnStepEnd(RunContext& context) override {
    events.push_back("step");
    if (context.global_step == stop_at) context.RequestStop();
  }
  void OnTrainEnd(RunContext&) override { events.push_back("end"); }

  std::vector<std::string> events;
  std::int64_t stop_at = -1;
};

TEST(CallbackList, TakesTemporariesNamedObjectsAndPointers) {
  Recorder named;
  auto shared = std::make_shared<Recorder>();
  std::shared_ptr<Callback> null;
  std::ostringstream output;
  const CallbackList callbacks = {LossMonitor({.stream = &output}), named, shared, null};
  EXPECT_EQ(callbacks.size(), 3u);
  Train(callbacks, 1, 1);
  EXPECT_THAT(named.events, ElementsAre("train", "epoch", "step", "end"));
  EXPECT_EQ(named.events, shared->events);
  EXPECT_FALSE(output.str().empty());
  const CallbackList one = {named};
  EXPECT_EQ(one.size(), 1u);
  EXPECT_TRUE(CallbackList({}).empty());
}

TEST(CallbackList, StopEndsTheRunAfterTheStep) {
  Recorder recorder;
  recorder.stop_at = 2;
  Train({recorder}, 3, 5);
  EXPECT_THAT(recorder.events, ElementsAre("train", "epoch", "step", "step", "end"));
}

TEST(RunContext, ReadsTheLossOnceAndOnlyIfAsked) {
  RunContext context;
  EXPECT_TRUE(std::isnan(context.loss()));
  int reads = 0;
  context.set_loss([&] { return static_cast<float>(++reads); });
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(context.loss(), 1.0f);
  EXPECT_EQ(context.loss(), 1.0f);
  EXPECT_EQ(reads, 1);
  context.set_loss(7.0f);
  EXPECT_EQ(context.loss(), 7.0f);
}

TEST(LossMonitor, PrintsOnceAnEpochByDefault) {
  std::ostringstream output;
  Train({LossMonitor({.stream = &output})}, 2, 32);
  EXPECT_EQ(output.str(), "epoch: 1 step: 32, loss is 32.2500\nepoch: 2 step: 32, loss is 64.2500\n");
}

TEST(LossMonitor, PrintsEveryNthStep) {
  std::ostringstream output;
  Train({LossMonitor({.per_print_times = 2, .stream = &output})}, 2, 3);
  EXPECT_EQ(output.str(),
            "epoch: 1 step: 2, loss is 2.2500\nepoch: 2 step: 1, loss is 4.2500\nepoch: 2 step: 3, loss is 6.2500\n");
}

TEST(LossMonitor, MicroStepsOfAnUpdateAreNoSteps) {
  std::ostringstream output;
  LossMonitor monitor({.per_print_times = 2, .stream = &output});
  RunContext context;
  // A run that goes on behind step 4, with three batches an update.
  context.epoch = 1;
  context.global_step = 4;
  monitor.OnEpochBegin(context);
  for (context.step_in_epoch = 1; context.step_in_epoch <= 8; ++context.step_in_epoch) {
    if (context.step_in_epoch % 3 == 0) ++context.global_step;
    context.set_loss(static_cast<float>(context.step_in_epoch));
    monitor.OnStepEnd(context);
  }
  EXPECT_EQ(output.str(), "epoch: 1 step: 6, loss is 6.0000\n");
}

TEST(LossMonitor, KeepsSmallAndNonFiniteLossesReadable) {
  std::ostringstream output;
  LossMonitor monitor({.stream = &output});
  RunContext context;
  for (float loss : {2.30118966f, 3.21e-5f, 0.0f, HUGE_VALF, NAN}) {
    context.set_loss(loss);
    monitor.OnEpochEnd(context);
  }
  EXPECT_THAT(output.str(), HasSubstr("loss is 2.3012\n"));
  EXPECT_THAT(output.str(), HasSubstr("loss is 3.21e-05\n"));
  EXPECT_THAT(output.str(), HasSubstr("loss is 0.0000\n"));
  EXPECT_THAT(output.str(), HasSubstr("loss is inf\n"));
  EXPECT_THAT(output.str(), HasSubstr("loss is nan\n"));
}

TEST(FormatLoss, GivesSmallLossesSignificantDigits) {
  EXPECT_EQ(FormatLoss(2.30118966), "2.3012");
  EXPECT_EQ(FormatLoss(0.0012), "0.0012");
  EXPECT_EQ(FormatLoss(-4.567891e-9), "-4.568e-09");
  EXPECT_EQ(FormatLoss(0), "0.0000");
}

TEST(TimeMonitor, PrintsEpochAndStepTime) {
  std::ostringstream output;
  Train({TimeMonitor(&output)}, 1, 4);
  EXPECT_THAT(output.str(), MatchesRegex("Train epoch time: [0-9.]+ ms, per step time: [0-9.]+ ms\n"));
}

TEST(TimeMonitor, StepsOfAnotherRunHaveNoPartInItsTime) {
  std::ostringstream output;
  TimeMonitor monitor(&output);
  RunContext context;
  context.step_in_epoch = 9;
  monitor.OnEpochBegin(context);
  // Long enough that a tenth of it is another number.
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  context.step_in_epoch = 10;
  monitor.OnEpochEnd(context);
  // The one step took the whole time.
  EXPECT_THAT(output.str(), ::testing::ContainsRegex("time: [0-9.]+ ms, per step time: [0-9.]+ ms\n"));
  const std::string line = output.str();
  const std::string begin = "Train epoch time: ", middle = " ms, per step time: ";
  const std::size_t place = line.find(middle);
  ASSERT_NE(place, line.npos);
  const std::string epoch = line.substr(begin.size(), place - begin.size());
  EXPECT_EQ(line, begin + epoch + middle + epoch + " ms\n");
}

TEST(ProgressBar, PrintsOneLineAnEpochWhereThereIsNoTerminal) {
  std::ostringstream output;
  Train({ProgressBar({.stream = &output})}, 1, 3);
  EXPECT_THAT(output.str(), MatchesRegex("epoch 1/1: 3 steps, loss 3.2500, [0-9]+ steps/s\n"));
}

TEST(ProgressBar, RedrawsItsLineOnATerminal) {
  std::ostringstream output;
  Train({ProgressBar({.stream = &output, .terminal = true, .refresh = std::chrono::milliseconds(0)})}, 1, 2);
  EXPECT_THAT(output.str(), HasSubstr("\repoch 1/1 [===============>              ] 1/2 loss 1.2500, "));
  EXPECT_THAT(output.str(), HasSubstr("\repoch 1/1 [==============================] 2/2 loss 2.2500, "));
  EXPECT_EQ(output.str().back(), '\n');
}

/// A bar on a terminal that is drawn at every step.
ProgressBar TerminalBar(std::ostream& output, std::optional<int> columns = {}) {
  return ProgressBar(
      {.stream = &output, .terminal = true, .refresh = std::chrono::milliseconds(0), .columns = columns});
}

TEST(ProgressBar, SaysTheLossScaleAndTheTimeThatIsLeft) {
  std::ostringstream output;
  class Scale : public Callback {
   public:
    void OnStepEnd(RunContext& context) override { context.loss_scale = 65536; }
  };
  Train({Scale(), TerminalBar(output)}, 2, 2);
  EXPECT_THAT(output.str(), HasSubstr("\repoch 1/2 [===============>              ] 1/2 loss 1.2500, scale 65536, "));
  EXPECT_THAT(output.str(), ::testing::ContainsRegex("2/2 loss 2.2500, scale 65536, [0-9]+ steps/s, 0:00 left"));
  EXPECT_THAT(output.str(), ::testing::ContainsRegex("2/2 loss 4.2500, scale 65536, [0-9]+ steps/s *\n"))
      << "nothing is left";
}

TEST(ProgressBar, FitsANarrowTerminal) {
  for (const int columns : {1, 10, 30, 50, 60, 70, 100}) {
    SCOPED_TRACE(columns);
    std::ostringstream output;
    Train({TerminalBar(output, columns)}, 1, 12);
    std::istringstream lines(output.str());
    for (std::string line; std::getline(lines, line, '\r');) {
      line.erase(std::remove(line.begin(), line.end(), '\n'), line.end());
      EXPECT_LT(line.size(), static_cast<std::size_t>(columns)) << line;
    }
    if (columns == 70) {
      EXPECT_THAT(output.str(), ::testing::ContainsRegex("epoch 1/1 \\[=+>? *\\] 6/12 loss 6.2500"));
    }
    if (columns == 30) {
      EXPECT_THAT(output.str(), HasSubstr("epoch 1/1 6/12 loss 6.25"));
    }
  }
}

TEST(ProgressBar, ShowsResultsOfEvaluation) {
  for (const bool terminal : {false, true}) {
    std::ostringstream output;
    ProgressBar bar({.stream = &output, .terminal = terminal});
    RunContext context;
    context.epochs = context.epoch = 1;
    context.step_in_epoch = context.steps_per_epoch = 4;
    context.set_loss(0.5f);
    bar.OnTrainBegin(context);
    bar.OnEpochBegin(context);
    bar.OnEvalBegin(context);
    context.set_eval_results({{"eval_accuracy", 0.75}, {"eval_loss", 0.25}});
    bar.OnEvalEnd(context);
    bar.OnEpochEnd(context);
    EXPECT_THAT(output.str(), HasSubstr(" steps/s, eval_accuracy 0.7500, eval_loss 0.2500\n"));
    EXPECT_EQ(output.str().find(", evaluating") != std::string::npos, terminal);
  }
}

TEST(ProgressBar, ALineOfARunThatFailedIsEnded) {
  std::ostringstream output;
  ProgressBar bar = TerminalBar(output);
  {
    RunContext context;
    context.epochs = context.epoch = 1;
    context.steps_per_epoch = 2;
    bar.OnTrainBegin(context);
    bar.OnEpochBegin(context);
    bar.OnStepEnd(context);
    EXPECT_NE(output.str().back(), '\n');
  }
  EXPECT_EQ(output.str().back(), '\n');
}

TEST(ProgressBar, StepsOfAnotherRunAreNoneOfItsRate) {
  std::ostringstream output;
  ProgressBar bar({.stream = &output});
  RunContext context;
  context.epochs = context.epoch = 1;
  context.step_in_epoch = context.steps_per_epoch = 1000000;
  bar.OnEpochBegin(context);
  bar.OnEpochEnd(context);
  EXPECT_THAT(output.str(), HasSubstr(" 0 steps/s"));
}

TEST(LossMonitor, PrintsResultsOfEvaluationAsMindSporeDoes) {
  std::ostringstream output;
  LossMonitor monitor({.stream = &output});
  RunContext context;
  context.epoch = 2;
  context.set_loss(0.5f);
  context.set_eval_results({{"eval_accuracy", 0.9306}, {"eval_loss", 2e-5}});
  monitor.OnEpochEnd(context);
  EXPECT_EQ(output.str(),
            "epoch: 2 step: 0, loss is 0.5000\n"
            "Eval result: epoch 2, metrics: {'eval_accuracy': 0.9306, 'eval_loss': 2e-05}\n");
}

/// Sends a signal to the process while step `at` runs.
class Signaller : public Callback {
 public:
  Signaller(std::int64_t at, int signal) : at_(at), signal_(signal) {}
  void OnStepBegin(RunContext& context) override {
    if (context.global_step == at_) ::raise(signal_);
  }

 private:
  std::int64_t at_;
  int signal_;
};

int handled = 0;
void Handle(int signal) { handled = signal; }

TEST(OnRequestExit, EitherSignalStopsAtTheEndOfTheStep) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Recorder recorder;
    OnRequestExit on_exit;
    EXPECT_EQ(on_exit.signal(), 0);
    Train({Signaller(2, signal), recorder, on_exit}, 3, 5);
    EXPECT_EQ(on_exit.signal(), signal);
    EXPECT_THAT(recorder.events, ElementsAre("train", "epoch", "step", "step", "end"));
    // The next run begins without the request of the last one.
    Train({recorder, on_exit}, 1, 1);
    EXPECT_EQ(on_exit.signal(), 0);
    EXPECT_EQ(recorder.events.size(), 5u + 4u);
  }
}

TEST(OnRequestExit, SavesWhereAPathIsGivenAndASignalCame) {
  std::vector<std::string> saved;
  const auto run = [&](bool asked, absl::Status saving) {
    RunContext context;
    context.set_save([&](const std::string& path) {
      saved.push_back(path);
      return saving;
    });
    OnRequestExit on_exit({.save_path = "state.safetensors"});
    on_exit.OnTrainBegin(context);
    EXPECT_FALSE(on_exit.NeedsState(context));
    if (asked) ::raise(SIGTERM);
    // Its step is finished before another one begins.
    EXPECT_EQ(on_exit.NeedsState(context), asked);
    on_exit.OnStepEnd(context);
    on_exit.OnTrainEnd(context);
    return context.failure();
  };
  EXPECT_TRUE(run(false, absl::OkStatus()).ok());
  EXPECT_TRUE(saved.empty());
  EXPECT_TRUE(run(true, absl::OkStatus()).ok());
  EXPECT_THAT(saved, ElementsAre("state.safetensors"));
  EXPECT_EQ(run(true, absl::DataLossError("no space")).message(), "no space");
}

TEST(OnRequestExit, TheHandlersFromBeforeComeBackHoweverTheRunEnds) {
  ASSERT_NE(::signal(SIGINT, Handle), SIG_ERR);
  handled = 0;
  {
    RunContext context;
    OnRequestExit on_exit;
    on_exit.OnTrainBegin(context);
    // A run within a run, whose end leaves the handlers to the outer one.
    Train({OnRequestExit()}, 1, 1);
    ::raise(SIGINT);
    EXPECT_EQ(handled, 0);
    // No further hook: the run failed.
  }
  ::raise(SIGINT);
  EXPECT_EQ(handled, SIGINT);
  ::signal(SIGINT, SIG_IGN);
  OnRequestExit on_exit;
  Train({Signaller(1, SIGINT), on_exit}, 1, 2);
  EXPECT_EQ(on_exit.signal(), 0) << "an ignored signal was taken";
  ::signal(SIGINT, SIG_DFL);
}

// The library's code may stand on a stack that has no room for a handler.
TEST(OnRequestExit, HandlersHaveAStackOfTheirOwn) {
  RunContext context;
  OnRequestExit on_exit;
  on_exit.OnTrainBegin(context);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    ASSERT_EQ(::sigaction(signal, nullptr, &action), 0);
    EXPECT_NE(action.sa_flags & SA_ONSTACK, 0);
  }
  stack_t stack{};
  ASSERT_EQ(::sigaltstack(nullptr, &stack), 0);
  EXPECT_EQ(stack.ss_flags & SS_DISABLE, 0);
#ifndef __SANITIZE_ADDRESS__  // which gives each thread a stack for handlers, of its own size
  EXPECT_GE(stack.ss_size, std::size_t{64} << 10);
#endif
}

TEST(OnRequestExitDeathTest, ASecondSignalEndsTheProcessAtOnce) {
  EXPECT_EXIT(Train({Signaller(1, SIGINT), Signaller(1, SIGTERM), OnRequestExit()}, 1, 1),
              ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace mpc
