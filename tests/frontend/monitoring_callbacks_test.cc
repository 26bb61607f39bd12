// Callbacks that act on what a run measures, without a Model: EarlyStopping, ReduceLROnPlateau, History and others.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "frontend/train/backup_and_restore.h"
#include "frontend/train/checkpoint_callback.h"
#include "frontend/train/early_stopping.h"
#include "frontend/train/history.h"
#include "frontend/train/lambda_callback.h"
#include "frontend/train/reduce_lr_on_plateau.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::TemporaryFolder;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// One weight, which is the number of the epoch, and two groups.
class FakeModel : public TrainedModel {
 public:
  absl::StatusOr<Weights> CopyWeights() const override { return Weights{{"weight", Tensor::Scalar(weight)}}; }
  absl::Status SetWeights(const Weights& weights) override {
    weight = weights.at(0).second.Item<float>();
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<RateGroup>> LearningRates() const override {
    return std::vector<RateGroup>{{"SGD group 0", rates[0]}, {"SGD group 1", rates[1]}};
  }
  absl::Status SetLearningRate(std::size_t group, double learning_rate) override {
    rates.at(group) = learning_rate;
    return absl::OkStatus();
  }
  absl::Status Resume(const std::string& path, RunContext& context) override {
    resumed = path;
    context.epoch = 2;
    return resuming;
  }

  float weight = 0;
  std::vector<std::optional<double>> rates = {0.5, 0.125};
  std::string resumed;
  absl::Status resuming;
};

/// A run of epochs of one step. Each measures one of `values` as "eval_<metric>"; an empty one is not evaluated.
struct FakeRun {
  explicit FakeRun(std::string metric = "loss") : name("eval_" + metric) {
    context.set_eval_names({name});
    context.set_trained(&model);
    context.set_save([this](const std::string& path) {
      saved.push_back(std::filesystem::path(path).filename().string());
      std::ofstream(path) << "state";
      return absl::OkStatus();
    });
  }

  /// Returns the epoch after which it ended.
  std::int64_t Train(const CallbackList& callbacks, const std::vector<std::optional<double>>& values) {
    context.epochs = static_cast<std::int64_t>(values.size());
    callbacks.OnTrainBegin(context);
    for (const std::optional<double>& value : values) {
      if (!context.failure().ok() || context.stop_requested()) break;
      context.epoch = ++context.global_step;
      context.set_eval_results({});
      callbacks.OnEpochBegin(context);
      model.weight = static_cast<float>(context.epoch);
      context.set_loss(static_cast<float>(10 - context.epoch));
      callbacks.OnStepEnd(context);
      if (value.has_value()) context.set_eval_results({{name, *value}});
      callbacks.OnEpochEnd(context);
    }
    if (context.failure().ok()) callbacks.OnTrainEnd(context);
    return context.epoch;
  }

  std::string name;
  FakeModel model;
  RunContext context;
  std::vector<std::string> saved;
};

/// The epoch after which `options` end a run of these values.
std::int64_t EndOf(const EarlyStoppingOptions& options, const std::vector<std::optional<double>>& values,
                   const std::string& metric = "loss") {
  FakeRun run(metric);
  EarlyStopping stopping(options);
  const std::int64_t end = run.Train({stopping}, values);
  EXPECT_TRUE(run.context.failure().ok()) << run.context.failure();
  EXPECT_EQ(stopping.stopped_epoch(), run.context.stop_requested() ? end : 0);
  return end;
}

std::string ErrorOf(const CallbackList& callbacks) {
  FakeRun run;
  EXPECT_EQ(run.Train(callbacks, {1.0}), 0) << "nothing trains";
  return std::string(run.context.failure().message());
}

TEST(EarlyStopping, EndsAfterEpochsWithoutImprovement) {
  EXPECT_EQ(EndOf({}, {3, 2, 2, 1}), 3) << "patience 0: the first epoch without improvement";
  EXPECT_EQ(EndOf({.patience = 1}, {3, 2, 2, 1}), 3);
  EXPECT_EQ(EndOf({.patience = 2}, {3, 4, 2, 3, 2, 1}), 5);
  EXPECT_EQ(EndOf({.patience = 3}, {3, 4, 2, 3, 2, 1}), 6);
}

TEST(EarlyStopping, EpochsWithoutEvaluationDoNotCount) {
  EXPECT_EQ(EndOf({.patience = 2}, {3, {}, 4, {}, {}, 4, 1}), 6);
}

TEST(EarlyStopping, KnowsWhichWayIsBetter) {
  EXPECT_EQ(EndOf({.monitor = "eval_accuracy"}, {1, 2, 3, 2, 5}, "accuracy"), 4);
  EXPECT_EQ(EndOf({.monitor = "accuracy"}, {1, 2, 3, 2, 5}, "accuracy"), 4) << "the metric's own name";
  EXPECT_EQ(EndOf({.monitor = "mae"}, {3, 2, 1, 2, 5}, "mae"), 4);
  EXPECT_EQ(EndOf({.monitor = "eval_accuracy", .mode = "min"}, {3, 2, 1, 2, 5}, "accuracy"), 4);
  EXPECT_EQ(EndOf({.mode = "max"}, {1, 2, 3, 2, 5}), 4);
  EXPECT_EQ(EndOf({.monitor = "loss"}, {9, 9, 9}), 3) << "the training loss falls";
}

TEST(EarlyStopping, MetricsUnderNamesOfTheUsersOwnSayWhichWayIsBetter) {
  const auto end = [](const EarlyStoppingOptions& options, const std::vector<std::optional<double>>& values) {
    FakeRun run("val_error");
    run.context.set_smaller_is_better({"eval_val_error"});
    return run.Train({EarlyStopping(options)}, values);
  };
  EXPECT_EQ(end({.monitor = "eval_val_error"}, {3, 2, 1, 2, 5}), 4);
  EXPECT_EQ(end({.monitor = "val_error"}, {3, 2, 1, 2, 5}), 4);
  EXPECT_EQ(end({.monitor = "val_error", .mode = "max"}, {3, 2, 1, 2, 5}), 2) << "what is given goes first";
  // The same callback on a run that has no such metric: nothing is kept.
  EarlyStopping stopping({.monitor = "eval_val_error"});
  FakeRun errors("val_error"), scores("val_error");
  errors.context.set_smaller_is_better({"eval_val_error"});
  EXPECT_EQ(errors.Train({stopping}, {3, 2, 3}), 3);
  EXPECT_EQ(scores.Train({stopping}, {3, 4, 3}), 3);
}

TEST(EarlyStopping, SmallChangesAndWhatMissesTheBaselineAreNoImprovement) {
  EXPECT_EQ(EndOf({.min_delta = 0.5}, {3, 2, 1.75, 1}), 3);
  EXPECT_EQ(EndOf({.patience = 2, .baseline = 1.5}, {3, 2, 1, 0.5}), 2);
  EXPECT_EQ(EndOf({.patience = 3, .baseline = 1.5}, {3, 2, 1, 0.5}), 4);
  EXPECT_EQ(EndOf({.patience = 2}, {kNan, 2, kNan, kNan, 1}), 4) << "NaN is never better";
}

TEST(EarlyStopping, RestoresTheWeightsOfTheBestEpochWhereItStops) {
  std::ostringstream output;
  EarlyStopping stopping({.patience = 2, .verbose = true, .restore_best_weights = true, .stream = &output});
  FakeRun stopped;
  stopped.Train({stopping}, {3, 1, 2, 2, 0});
  EXPECT_EQ(stopped.model.weight, 2);
  EXPECT_EQ(stopping.best_epoch(), 2);
  EXPECT_EQ(stopping.best(), 1);
  EXPECT_EQ(output.str(), "Restoring model weights from the end of the best epoch: 2.\nEpoch 00004: early stopping\n");
  FakeRun whole;
  whole.Train({stopping}, {3, 1, 2});
  EXPECT_EQ(whole.model.weight, 3) << "a run that it does not stop keeps its last weights";
  EXPECT_EQ(stopping.stopped_epoch(), 0);
}

TEST(EarlyStopping, RefusesBadOptionsByName) {
  EXPECT_EQ(ErrorOf({EarlyStopping({.monitor = "eval_acc"})}),
            "EarlyStopping: there is no 'eval_acc' to monitor; there is loss, eval_loss");
  EXPECT_EQ(ErrorOf({EarlyStopping({.mode = "best"})}),
            "EarlyStopping: mode must be \"auto\", \"min\" or \"max\", got \"best\"");
  EXPECT_EQ(ErrorOf({EarlyStopping({.min_delta = -1})}),
            "EarlyStopping: min_delta must be finite and not negative, got -1");
  EXPECT_EQ(ErrorOf({EarlyStopping({.patience = -1})}), "EarlyStopping: patience must not be negative, got -1");
  EXPECT_EQ(ErrorOf({EarlyStopping({.baseline = kNan})}), "EarlyStopping: baseline must be finite, got nan");
  RunContext trains_only;
  EarlyStopping().OnTrainBegin(trains_only);
  EXPECT_EQ(trains_only.failure().message(),
            "EarlyStopping: there is no 'eval_loss' to monitor; there is loss; Model::Fit evaluates, Model::Train does "
            "not");
}

/// The first group's rate after each epoch.
std::vector<double> RatesOf(const ReduceLROnPlateauOptions& options, const std::vector<std::optional<double>>& values) {
  FakeRun run;
  std::vector<double> rates;
  run.Train({ReduceLROnPlateau(options),
             LambdaCallback(
                 {.on_train_epoch_end = [&](RunContext& context) { rates.push_back(run.model.rates[0].value()); }})},
            values);
  EXPECT_TRUE(run.context.failure().ok()) << run.context.failure();
  return rates;
}

TEST(ReduceLROnPlateau, ReducesWhereTheValueStandsStill) {
  EXPECT_THAT(RatesOf({.factor = 0.5, .patience = 2}, {3, 2, 2, 2, 2, 2}),
              ElementsAre(0.5, 0.5, 0.5, 0.25, 0.25, 0.125));
  EXPECT_THAT(RatesOf({.factor = 0.5, .patience = 2}, {3, {}, 3, {}, 3, {}}),
              ElementsAre(0.5, 0.5, 0.5, 0.5, 0.25, 0.25));
  EXPECT_THAT(RatesOf({.factor = 0.5, .patience = 0, .min_delta = 1}, {3, 2.5, 1}), ElementsAre(0.5, 0.25, 0.25));
}

TEST(ReduceLROnPlateau, WaitsWhileItCoolsDownAndStopsAtTheLeastRate) {
  EXPECT_THAT(RatesOf({.factor = 0.5, .patience = 1, .cooldown = 2}, {3, 3, 3, 3, 3}),
              ElementsAre(0.5, 0.25, 0.25, 0.125, 0.125));
  EXPECT_THAT(RatesOf({.factor = 0.5, .patience = 1, .min_lr = 0.2}, {3, 3, 3, 3}), ElementsAre(0.5, 0.25, 0.2, 0.2));
}

TEST(ReduceLROnPlateau, ReducesEveryGroupAndSaysSo) {
  std::ostringstream output;
  FakeRun run;
  run.Train({ReduceLROnPlateau({.factor = 0.5, .patience = 1, .verbose = true, .stream = &output})}, {1, 1});
  EXPECT_EQ(run.model.rates[1], 0.0625);
  EXPECT_EQ(output.str(),
            "Epoch 00002: ReduceLROnPlateau reducing learning rate of SGD group 0 to 0.25.\n"
            "Epoch 00002: ReduceLROnPlateau reducing learning rate of SGD group 1 to 0.0625.\n");
}

TEST(ReduceLROnPlateau, SaysNothingWhereARateStandsAtTheLeastOneInF32) {
  std::ostringstream output;
  FakeRun run;
  run.model.rates = {0.2f, 0.3f};  // 0.2f is above 0.2
  run.Train({ReduceLROnPlateau({.factor = 0.5, .patience = 1, .verbose = true, .min_lr = 0.2, .stream = &output})},
            {1, 1});
  EXPECT_EQ(run.model.rates[0], 0.2f);
  EXPECT_EQ(run.model.rates[1], 0.2);
  EXPECT_EQ(output.str(), "Epoch 00002: ReduceLROnPlateau reducing learning rate of SGD group 1 to 0.2.\n");
}

TEST(ReduceLROnPlateau, RefusesBadOptionsByName) {
  EXPECT_EQ(ErrorOf({ReduceLROnPlateau({.factor = 1})}), "ReduceLROnPlateau: factor must lie between 0 and 1, got 1");
  EXPECT_EQ(ErrorOf({ReduceLROnPlateau({.patience = -2})}),
            "ReduceLROnPlateau: patience and cooldown must not be negative, got -2 and 0");
  EXPECT_EQ(ErrorOf({ReduceLROnPlateau({.min_lr = -1})}),
            "ReduceLROnPlateau: min_lr must be finite and not negative, got -1");
  EXPECT_THAT(ErrorOf({ReduceLROnPlateau({.monitor = "eval_f1"})}), HasSubstr("there is no 'eval_f1' to monitor"));
  FakeRun run;
  run.model.rates[1].reset();
  run.Train({ReduceLROnPlateau()}, {1});
  EXPECT_EQ(run.context.failure().message(), "ReduceLROnPlateau: a schedule computes the learning rate of SGD group 1");
}

TEST(History, HoldsAValueOfEachEpoch) {
  History history;
  FakeRun run;
  run.Train({history}, {3, {}, 1});
  EXPECT_THAT(history.epochs(), ElementsAre(1, 2, 3));
  EXPECT_THAT(history.of("loss"), ElementsAre(9, 8, 7));
  EXPECT_THAT(history.of("loss_scale"), ElementsAre(1, 1, 1));
  ASSERT_EQ(history.of("eval_loss").size(), 3u);
  EXPECT_EQ(history.of("eval_loss")[0], 3);
  EXPECT_TRUE(std::isnan(history.of("eval_loss")[1]));
  EXPECT_EQ(history.of("eval_loss")[2], 1);
  EXPECT_THAT(history.of("learning_rate"), IsEmpty());
  FakeRun again;
  again.Train({history}, {5});
  EXPECT_THAT(history.of("eval_loss"), ElementsAre(5));
}

TEST(LambdaCallback, RunsEachFunctionAtItsHook) {
  std::vector<std::string> events;
  const auto say = [&](const char* event) { return [&, event](RunContext&) { events.emplace_back(event); }; };
  LambdaCallback callback({.on_train_begin = say("train"),
                           .on_train_epoch_begin = say("epoch"),
                           .on_train_step_begin = say("step"),
                           .on_train_step_end = say("step end"),
                           .on_eval_begin = say("eval"),
                           .on_eval_end = say("eval end"),
                           .on_train_epoch_end = say("epoch end"),
                           .on_train_end = say("end"),
                           .needs_state = [](const RunContext& context) { return context.global_step == 3; }});
  const CallbackList list = {callback, LambdaCallback()};
  RunContext context;
  list.OnTrainBegin(context);
  list.OnEpochBegin(context);
  list.OnStepBegin(context);
  EXPECT_FALSE(list.NeedsState(context));
  context.global_step = 3;
  EXPECT_TRUE(list.NeedsState(context));
  list.OnStepEnd(context);
  list.OnEvalBegin(context);
  list.OnEvalEnd(context);
  list.OnEpochEnd(context);
  list.OnTrainEnd(context);
  EXPECT_THAT(events, ElementsAre("train", "epoch", "step", "step end", "eval", "eval end", "epoch end", "end"));
}

TEST(ModelCheckpoint, SavesTheBestOnly) {
  const TemporaryFolder folder;
  FakeRun run("accuracy");
  ModelCheckpoint saver({.directory = folder.path(), .save_best_only = true, .monitor = "eval_accuracy"});
  run.Train({saver}, {1, 3, 2, {}, 4, 4});
  EXPECT_THAT(run.saved,
              ElementsAre("checkpoint-1.safetensors", "checkpoint-2.safetensors", "checkpoint-5.safetensors"));
  EXPECT_THAT(saver.latest_checkpoint(), HasSubstr("checkpoint-5"));
}

TEST(ModelCheckpoint, RefusesWhatTheBestCannotMean) {
  const TemporaryFolder folder;
  EXPECT_EQ(
      ErrorOf({ModelCheckpoint({.directory = folder.path(), .save_checkpoint_steps = 2, .save_best_only = true})}),
      "ModelCheckpoint: save_best_only saves at the end of epochs, got save_checkpoint_steps = 2 and "
      "save_checkpoint_epochs = 0");
  EXPECT_THAT(ErrorOf({ModelCheckpoint({.directory = folder.path(), .save_best_only = true, .monitor = "acc"})}),
              HasSubstr("ModelCheckpoint: there is no 'acc' to monitor; there is loss, eval_loss"));
}

TEST(CallbackStates, KeepEveryBitOfWhatWasCounted) {
  EarlyStopping stopping({.monitor = "loss", .patience = 9}), other({.monitor = "loss", .patience = 9});
  ReduceLROnPlateau plateau({.patience = 9, .cooldown = 4});
  const TemporaryFolder folder;
  ModelCheckpoint saver({.directory = folder.path(), .save_best_only = true});
  const CallbackList callbacks = {stopping, plateau, other, saver, ModelCheckpoint({.directory = folder.path()})};
  FakeRun run;
  run.Train(callbacks, {0.1, 0.3, std::nullopt, 0.2});
  const std::map<std::string, std::string> states = callbacks.SaveStates();
  const std::string best = "best=0.10000000000000001";
  EXPECT_THAT(states, ElementsAre(Pair("EarlyStopping of loss (auto)", "best=6 wait=0 best_epoch=4"),
                                  Pair("EarlyStopping of loss (auto) #2", "best=6 wait=0 best_epoch=4"),
                                  Pair("ModelCheckpoint of eval_loss (auto)", best),
                                  Pair("ReduceLROnPlateau of eval_loss (auto)", best + " wait=2 cooldown_left=0")));

  const CallbackList next = {EarlyStopping({.monitor = "loss"}), ReduceLROnPlateau(), EarlyStopping()};
  FakeRun begun;
  next.OnTrainBegin(begun.context);
  const std::map<std::string, std::string> none = next.SaveStates();
  EXPECT_EQ(none.at("EarlyStopping of eval_loss (auto)"), "wait=0 best_epoch=0");
  ASSERT_TRUE(next.LoadStates(states).ok());
  const std::map<std::string, std::string> loaded = next.SaveStates();
  for (const char* name : {"EarlyStopping of loss (auto)", "ReduceLROnPlateau of eval_loss (auto)"}) {
    EXPECT_EQ(loaded.at(name), states.at(name));
  }
  EXPECT_EQ(loaded.at("EarlyStopping of eval_loss (auto)"), "wait=0 best_epoch=0") << "the file has none of it";
  for (const double value : {HUGE_VAL, -HUGE_VAL, 5e-324, -0.0, 1.7976931348623157e308}) {
    EarlyStopping from, to;
    FakeRun single, resumed;
    single.Train({from}, {value});
    to.OnTrainBegin(resumed.context);
    ASSERT_TRUE(to.LoadState(from.SaveState()).ok()) << from.SaveState();
    EXPECT_EQ(to.best(), value);
    EXPECT_EQ(std::signbit(*to.best()), std::signbit(value));
  }
}

TEST(CallbackStates, ThatNoSuchCallbackHasSavedAreErrors) {
  for (const char* state : {"", "wait=1", "wait=1 best_epoch=-1", "wait=x best_epoch=1", "best=nan wait=1 best_epoch=1",
                            "best= wait=1 best_epoch=1", "best"}) {
    EarlyStopping stopping;
    FakeRun run;
    stopping.OnTrainBegin(run.context);
    EXPECT_EQ(stopping.LoadState(state),
              absl::InvalidArgumentError(absl::StrCat("EarlyStopping: the checkpoint keeps '", state,
                                                      "' of it; accepted is 'wait=COUNT best_epoch=COUNT', "
                                                      "with best=NUMBER where there is a best value")));
    EXPECT_EQ(stopping.SaveState(), "wait=0 best_epoch=0");
  }
  EXPECT_EQ(EarlyStopping({.restore_best_weights = true}).StateName(), "") << "a checkpoint has no best weights";
}

TEST(BackupAndRestore, BacksUpGoesOnAndRemoves) {
  const TemporaryFolder folder;
  const std::string backup = folder / "backup.safetensors";
  BackupAndRestore keeper({.backup_dir = folder.path(), .save_freq = 2});
  {
    FakeRun run;
    run.Train({keeper}, {1, 1, 1, 1, 1});
    EXPECT_EQ(run.saved.size(), 2u);
    EXPECT_FALSE(keeper.restored());
    EXPECT_FALSE(std::filesystem::exists(backup)) << "the run is over";
  }
  {
    FakeRun failed;
    failed.Train({keeper, LambdaCallback({.on_train_epoch_end =
                                              [](RunContext& context) {
                                                if (context.epoch == 3) context.Fail(absl::InternalError("power"));
                                              }})},
                 {1, 1, 1});
    EXPECT_TRUE(std::filesystem::exists(backup));
  }
  FakeRun next;
  next.Train({keeper}, {1});
  EXPECT_EQ(next.model.resumed, backup);
  EXPECT_TRUE(keeper.restored());
  EXPECT_FALSE(std::filesystem::exists(backup));
}

TEST(BackupAndRestore, AnInterruptedRunIsBackedUpWhereItStands) {
  const TemporaryFolder folder;
  BackupAndRestore keeper({.backup_dir = folder / "new", .save_freq = 9});
  FakeRun run;
  run.Train({keeper, LambdaCallback({.on_train_step_end = [](RunContext& context) { context.Interrupt(); }})}, {1, 1});
  EXPECT_THAT(run.saved, ElementsAre("backup.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder / "new/backup.safetensors"));
}

/// True if a process that is not in the run could take `folder` for its own.
bool IsFree(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  ::close(file);
  return free;
}

TEST(BackupAndRestore, AFolderIsThatOfOneProcessWhileARunLasts) {
  const TemporaryFolder folder;
  const std::string backup = folder.Write("backup.safetensors", "of the other process");
  BackupAndRestore keeper({.backup_dir = folder.path()});
  const int other = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  FakeRun refused;
  refused.Train({keeper}, {1});
  EXPECT_EQ(refused.context.failure().message(),
            absl::StrCat("BackupAndRestore: a run of another process backs up to ", folder.path(),
                         ", and each would replace the backups of the other; give this run a folder of its own, or "
                         "wait until that process ends"));
  EXPECT_TRUE(refused.saved.empty());
  EXPECT_TRUE(refused.model.resumed.empty());
  EXPECT_TRUE(std::filesystem::exists(backup));
  ::close(other);

  auto run = std::make_unique<FakeRun>();
  bool was_free = true;
  run->Train({keeper, LambdaCallback({.on_train_epoch_end = [&](RunContext&) { was_free = IsFree(folder.path()); }})},
             {1});
  EXPECT_EQ(run->model.resumed, backup);
  EXPECT_FALSE(was_free);
  run.reset();
  EXPECT_TRUE(IsFree(folder.path())) << "the run is over";
}

TEST(BackupAndRestore, AFolderIsThatOfOneRunOfTheProcess) {
  const TemporaryFolder folder;
  std::vector<std::string> refusals;
  // A run beside the one that has the folder, under another name of it.
  LambdaCallback train_beside({.on_train_epoch_end = [&](RunContext&) {
    FakeRun beside;
    beside.Train({BackupAndRestore({.backup_dir = folder.path() + "/."})}, {1});
    EXPECT_TRUE(beside.saved.empty());
    EXPECT_TRUE(beside.model.resumed.empty());
    refusals.emplace_back(beside.context.failure().message());
  }});
  const auto train = [&](FakeRun& run) {
    return run.Train({BackupAndRestore({.backup_dir = folder.path()}), train_beside}, {1, 1});
  };
  FakeRun run;
  EXPECT_EQ(train(run), 2);
  EXPECT_TRUE(run.context.failure().ok()) << run.context.failure();
  const std::string refusal =
      absl::StrCat("BackupAndRestore: another BackupAndRestore of this process backs up to ", folder.path(),
                   "/., and each would replace the backups of the other; give this run a folder of its own, or wait "
                   "until that run ends");
  EXPECT_THAT(refusals, ElementsAre(refusal, refusal)) << "the first refusal frees nothing";
}

TEST(BackupAndRestore, ARunThatFailsFreesItsFolder) {
  const TemporaryFolder folder;
  const CallbackList keeps = {BackupAndRestore({.backup_dir = folder.path(), .delete_checkpoint = false})};
  for (const bool fails_at_once : {false, true}) {
    FakeRun failed;
    failed.model.resuming = fails_at_once ? absl::InternalError("broken") : absl::OkStatus();
    LambdaCallback fail(
        {.on_train_epoch_end = [](RunContext& context) { context.Fail(absl::InternalError("power")); }});
    failed.Train({BackupAndRestore({.backup_dir = folder.path()}), fail}, {1});
    EXPECT_FALSE(failed.context.failure().ok());
  }
  EXPECT_TRUE(IsFree(folder.path()));
  FakeRun next;
  next.Train(keeps, {1});
  EXPECT_TRUE(next.context.failure().ok()) << next.context.failure();
}

TEST(BackupAndRestore, RefusesByName) {
  EXPECT_EQ(ErrorOf({BackupAndRestore({.backup_dir = ""})}),
            "BackupAndRestore: backup_dir must be a folder and save_freq at least 1, got '' and 1");
  const TemporaryFolder folder;
  EXPECT_THAT(ErrorOf({BackupAndRestore({.backup_dir = folder.Write("file", "") + "/below"})}),
              HasSubstr("BackupAndRestore: cannot make the folder "));
  folder.Write("backup.safetensors", "damaged");
  FakeRun run;
  run.model.resuming = absl::InvalidArgumentError("broken");
  run.Train({BackupAndRestore({.backup_dir = folder.path()})}, {1});
  EXPECT_EQ(run.context.failure().message(), "BackupAndRestore: broken; without this file the run begins anew");
}

}  // namespace
}  // namespace mpc
