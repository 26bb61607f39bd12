// How a Model may be used: what it predicts with, what callbacks may call, threads.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "frontend/state/checkpoint.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/probe.h"

namespace mpc::testing {
namespace {

using ::testing::HasSubstr;

data::Dataset Rows(std::size_t count) {
  std::vector<data::Row> rows(count, {Tensor::From({1.0f}, {1}), Tensor::From({0.0f}, {1})});
  return Batches(std::move(rows));
}

/// A step with a teacher, whose names begin with those of its networks.
class Silent : public nn::TrainingStep {
 public:
  MPC_CELL(Silent, student, teacher)
  Tensor Construct(Tensor x, Tensor offset) {
    Tensor loss = reduce_sum(student(x)) + reduce_sum(teacher(x)) + reduce_sum(offset);
    optimizer(ops::Backward(loss, optimizer.parameters()));
    return loss;
  }
  Silent() { MPC_EXPECT_OK(teacher.SetRequiresGrad("", false)); }

  Probe student{1, 1.0}, teacher{1, 5.0};
  nn::SGD optimizer{student.TrainableParams(), {.learning_rate = 1.0}};
};

TEST(PredictOfAnOwnStep, IsRefusedWhereItDoesNotSayWhatItPredictsWith) {
  Silent step;
  Model model(step);
  MPC_ASSERT_OK(model.Train(1, Rows(1)));
  const float before = step.student.weight.Value()->Item<float>();
  const Tensor one = Tensor::From({1.0f}, {1});
  for (const absl::Status& status :
       {model.Predict(one, one).status(), model.TracePredict({one.spec(), one.spec()}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("Silent does not say what it predicts with; override "
                                                         "predicted_network()"));
  }
  EXPECT_EQ(step.student.weight.Value()->Item<float>(), before) << "it trained";
  EXPECT_EQ(model.global_step(), 1);
}

TEST(WeightsOfATrainingCheckpoint, OfAStepOfTwoNetworksNeedAPrefix) {
  TemporaryFolder folder;
  const std::string path = folder / "step";
  Silent step;
  Model model(step);
  MPC_ASSERT_OK(model.Train(1, Rows(1)));
  MPC_ASSERT_OK(model.SaveCheckpoint(path));
  Probe network;
  EXPECT_FALSE(LoadParamIntoNet(network, path).ok());
  MPC_ASSERT_OK(LoadParamIntoNet(network, path, {.names = NameMap().Prefix("student").Ignore("teacher")}).status());
  EXPECT_EQ(network.weight.Value()->Item<float>(), step.student.weight.Value()->Item<float>());
}

/// A loss with a Parameter.
class Tempered : public nn::LossBase {
 public:
  MPC_CELL(Tempered, temp)
  Tensor Construct(Tensor prediction, Tensor offset) { return reduce_sum(prediction * temp) + reduce_sum(offset); }
  Parameter temp{{1}, Constant(1.0)};
};

TEST(WeightsOfATrainingCheckpoint, LeaveOutAParameterOfTheLossThatIsIgnored) {
  TemporaryFolder folder;
  const std::string path = folder / "loss";
  Probe network;
  Tempered loss;
  nn::SGD optimizer({network.weight, loss.temp}, {.learning_rate = 1.0});
  Model model(network, loss, optimizer);
  MPC_ASSERT_OK(model.Train(1, Rows(1)));
  MPC_ASSERT_OK(model.SaveCheckpoint(path));
  Probe other;
  EXPECT_FALSE(LoadParamIntoNet(other, path).ok());
  MPC_ASSERT_OK(LoadParamIntoNet(other, path, {.names = NameMap().Ignore("temp")}).status());
  EXPECT_EQ(other.weight.Value()->Item<float>(), network.weight.Value()->Item<float>());
}

TEST(HooksOfARunningTrain, MayNotCallWhatWouldUpsetIt) {
  TemporaryFolder folder;
  const std::string path = folder / "state";
  ProbeTraining training({"O2", DType::kF16}, nullptr);
  MPC_ASSERT_OK(training.model.SaveCheckpoint(path));
  std::vector<absl::Status> refused;
  const auto call = [&] {
    refused.push_back(training.model.LoadCheckpoint(path).status());
    refused.push_back(training.model.Train(1, Rows(1)));
    refused.push_back(training.model.Fit(1, Rows(1), Rows(1)));
    MPC_EXPECT_OK(training.model.Eval(Rows(1)).status());
    MPC_EXPECT_OK(training.model.Predict(Tensor::From({1.0f}, {1})).status());
  };
  LambdaCallback callback({.on_train_begin = [&](RunContext&) { call(); },
                           .on_train_step_end = [&](RunContext&) { call(); },
                           .on_train_epoch_end = [&](RunContext&) { call(); }});
  MPC_ASSERT_OK(training.model.Train(2, Rows(3), {callback}));
  EXPECT_EQ(training.model.global_step(), 6);
  EXPECT_EQ(refused.size(), 3 * (1 + 6 + 2));
  for (const absl::Status& status : refused) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("RunContext::trained()->SetWeights"));
  }
  MPC_EXPECT_OK(training.model.LoadCheckpoint(path).status());
}

TEST(HooksOfARunningTrain, AModelTrainsAgainAfterOneThatThrewOrFailed) {
  ProbeTraining training({"O2", DType::kF16}, nullptr);
  for (int hook = 0; hook < 2; ++hook) {
    LambdaCallback thrower(
        hook == 0 ? LambdaCallbackOptions{.on_train_begin = [](RunContext&) { throw std::runtime_error("hook"); }}
                  : LambdaCallbackOptions{.on_train_step_end = [](RunContext&) { throw std::runtime_error("hook"); }});
    EXPECT_THROW(training.model.Train(1, Rows(2), {thrower}).IgnoreError(), std::runtime_error);
    MPC_EXPECT_OK(training.model.Train(1, Rows(2)));
  }
  LambdaCallback failer({.on_train_step_end = [](RunContext& context) { context.Fail(absl::DataLossError("")); }});
  EXPECT_FALSE(training.model.Train(1, Rows(2), {failer}).ok());
  MPC_EXPECT_OK(training.model.Fit(1, Rows(2), Rows(1)));
}

class Both : public nn::Cell {
 public:
  MPC_CELL(Both, first, second)
  Tensor Construct(Tensor x) { return first(x) + second(x); }
  Probe first, second;
};

TEST(HooksOfARunningTrain, UnfreezingWhatNoOptimizerUpdatesIsAnErrorOfThatStep) {
  Both network;
  MPC_ASSERT_OK(network.SetRequiresGrad("second", false));
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  SumLoss loss;
  Model model(network, loss, optimizer);
  LambdaCallback unfreeze({.on_train_epoch_begin = [&](RunContext& context) {
    if (context.epoch == 2) MPC_EXPECT_OK(network.SetRequiresGrad("second", true));
  }});
  const absl::Status status = model.Train(3, Rows(2), {unfreeze});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no optimizer updates second.weight"));
  EXPECT_EQ(model.global_step(), 2);
}

TEST(ModelThreads, PredictOfOneModelTakesTurns) {
  Probe network(1, 2.0);
  Model model(network);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&model, &wrong, thread] {
      for (int call = 0; call < 50; ++call) {
        const auto rows = static_cast<std::int64_t>(1 + call % 3);
        const auto value = static_cast<float>(thread + call);
        const absl::StatusOr<Tensor> output = model.Predict(Tensor::Full({rows}, value));
        if (!output.ok() || output->ToFloats() != std::vector<float>(rows, 2 * value)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// A call of a Model that another thread makes while it trains.
struct Call {
  const char* name;
  std::function<absl::Status(Model&)> make;
  absl::StatusCode code = absl::StatusCode::kOk;
};

// A callback may not wait for the other thread. It looks whether that thread has returned too early.
TEST(ModelThreads, CallsWaitForTrain) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint", lock = folder / "lock";
  const std::vector<Tensor> batch = {Tensor::From({1.0f}, {1}), Tensor::From({0.0f}, {1})};
  const std::vector<TensorSpec> specs = {batch[0].spec(), batch[1].spec()};
  const std::vector<std::pair<std::string, TensorSpec>> columns = {{"data", specs[0]}, {"label", specs[1]}};
  // The level is not auto. There is no lock to check.
  constexpr auto kNeedsAuto = absl::StatusCode::kInvalidArgument, kNoLock = absl::StatusCode::kNotFound;
  const std::vector<Call> calls = {
      {"SaveCheckpoint", [&](Model& model) { return model.SaveCheckpoint(path); }},
      {"Measure", [&](Model& model) { return model.Measure(batch).status(); }},
      {"FindPrecisionFrontier", [](Model& model) { return model.FindPrecisionFrontier(Rows(1)).status(); }, kNeedsAuto},
      {"MeasurePrecisionErrors", [](Model& model) { return model.MeasurePrecisionErrors({}, Rows(1)).status(); },
       kNeedsAuto},
      {"UsePrecision", [](Model& model) { return model.UsePrecision({}, Rows(1)); }, kNeedsAuto},
      {"PrecisionLock", [](Model& model) { return model.PrecisionLock().status(); }},
      {"PrecisionLock of data", [](Model& model) { return model.PrecisionLock(Rows(1)).status(); }},
      {"LockPrecision", [&](Model& model) { return model.LockPrecision(lock, Rows(1)); }},
      {"CheckPrecision", [&](Model& model) { return model.CheckPrecision(folder / "no_lock", Rows(1)); }, kNoLock},
      {"TraceTrainStep", [&](Model& model) { return model.TraceTrainStep(specs).status(); }},
      {"TracePredict", [&](Model& model) { return model.TracePredict({specs[0]}).status(); }},
      {"LoadTrainStep", [&](Model& model) { return model.LoadTrainStep(batch).status(); }},
      {"MakePackage", [&](Model& model) { return model.MakePackage(columns).status(); }},
      {"AllState", [](Model& model) { return model.AllState().front().Value().status(); }},
      {"State", [](Model& model) { return model.State("weight").Value().status(); }},
      {"DerivedState", [](Model& model) { return model.DerivedState(), absl::OkStatus(); }},
      {"compiled", [](Model& model) { return model.compiled(), absl::OkStatus(); }},
      {"peak_bytes", [](Model& model) { return model.peak_bytes(), absl::OkStatus(); }}};
  ProbeTraining training({"O0", {}}, nullptr);
  std::vector<std::thread> threads;
  std::vector<absl::Status> results(calls.size());
  std::vector<std::atomic<bool>> has_returned(calls.size());
  std::vector<std::string> early;
  LambdaCallback starter({.on_train_step_end = [&](RunContext& context) {
    if (context.step_in_epoch == 1) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        threads.emplace_back([&, i] {
          results[i] = calls[i].make(training.model);
          has_returned[i] = true;
        });
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    MPC_EXPECT_OK(training.model.SaveCheckpoint(folder / "of_callback"));
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (has_returned[i]) early.emplace_back(calls[i].name);
    }
  }});
  const absl::Status trained = training.model.Train(1, Rows(2), {starter});
  for (std::thread& thread : threads) thread.join();
  MPC_EXPECT_OK(trained);
  EXPECT_EQ(early, std::vector<std::string>{});
  EXPECT_EQ(training.Weight(), std::vector<float>{-2}) << "nothing of the training changes";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(results[i].code(), calls[i].code) << calls[i].name << ": " << results[i];
  }
  ProbeTraining resumed({"O0", {}}, nullptr);
  const absl::StatusOr<ResumeReport> report = resumed.model.LoadCheckpoint(path);
  MPC_ASSERT_OK(report.status());
  EXPECT_EQ(report->global_step, 2) << "the file is of the whole run";
}

}  // namespace
}  // namespace mpc::testing
