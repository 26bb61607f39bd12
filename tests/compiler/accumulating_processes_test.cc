// Processes that accumulate, in the interpreter: an update has the bits of one process that runs all micro-steps.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/module/module_impl.h"
#include "compiler/module/parse_module.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "tests/compiler/random_graph.h"
#include "tests/compiler/random_step.h"

namespace mpc::test {
namespace {

using mlir::func::FuncOp;
using reference::Tensor;
using NamedTensors = std::map<std::string, Tensor>;

constexpr int kMicroBatches = 4;

/// A network with dropout, whose statistics move by every batch. Its numbers are sums of few powers of two, so that
/// they are exact in f32 whatever the order.
constexpr char kStepText[] = R"(
func.func @train_step(
    %w: tensor<3xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<3xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %rm: tensor<3xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<3xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %seed: tensor<i64> {mpc.state = #mpc.state<rng, "rng.seed">},
    %draw: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4x3xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<3xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<3xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<3xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<3xf32> {mpc.state = #mpc.state<statistic, "variance">},
        tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %kept = mpc.dropout %x, %seed, %draw {p = 0.5, call_site = 0}
      : (tensor<4x3xf32>, tensor<i64>, tensor<i32>) -> tensor<4x3xf32>
  %product = mpc.mul %kept, %w : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %mean = mpc.reduce_sum %product {axes = [0]} : (tensor<4x3xf32>) -> tensor<3xf32>
  %variance = mpc.reduce_sum %kept {axes = [0]} : (tensor<4x3xf32>) -> tensor<3xf32>
  %loss = mpc.reduce_sum %product {axes = []} : (tensor<4x3xf32>) -> tensor<f32>
  %dw = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
  %rm2, %rv2 = mpc.batch_norm_running_update %rm, %rv, %mean, %variance {momentum = 0.5 : f32, count = 5}
      : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  %draw2 = mpc.increment %draw : tensor<i32>
  return %loss, %w2, %v2, %rm2, %rv2, %draw2
      : tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>
})";

compiler::Module WrapForProcesses(const compiler::Module& traced, int processes, int steps, bool is_last) {
  compiler::Module module = traced.Clone();
  mlir::PassManager manager(module.impl().context.get());
  LossScalePassOptions options;
  options.mode = "dynamic";
  options.accumulationSteps = steps;
  options.processes = processes;
  options.lastMicroStep = is_last;
  manager.addPass(createLossScalePass(options));
  manager.addPass(createAutodiffPass());
  EXPECT_TRUE(mlir::succeeded(manager.run(*module.impl().module))) << traced.Print();
  return module;
}

/// Input `name` of micro-batch `batch`.
Tensor RowsOfBatch(FuncOp step, unsigned index, int batch, bool finite) {
  Tensor rows = ArgumentValue(step, index);
  if (!IsFloating(rows.spec.dtype)) return rows;
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    // Few bits each.
    rows.values[i] = std::round(rows.values[i] * 4) / 4 + static_cast<double>((batch + i) % 3);
    if (!finite) rows.values[i] = HUGE_VAL;
  }
  return rows;
}

/// Several processes, or one, with the state of each.
class ProcessesInTurn {
 public:
  ProcessesInTurn(const compiler::Module& traced, int processes, double state_scale)
      : steps_(kMicroBatches / processes),
        last_(WrapForProcesses(traced, processes, steps_, true)),
        before_(WrapForProcesses(traced, processes, steps_, processes == 1 || steps_ == 1)),
        states_(static_cast<std::size_t>(processes)),
        state_scale_(state_scale) {}

  /// One update. `bad`: the micro-batch that is not finite; -1: none.
  void RunUpdate(int update, int bad) {
    for (int step = 0; step < steps_; ++step) RunStep(step, update, bad);
  }
  /// The state of a process but for what it gathers.
  NamedTensors StateOf(std::size_t process) const {
    NamedTensors state = states_[process];
    std::erase_if(state, [](const auto& entry) { return entry.first.rfind("accumulator.", 0) == 0; });
    return state;
  }
  std::size_t size() const { return states_.size(); }

 private:
  void RunStep(int step, int update, int bad) {
    FuncOp function = StepOf(step + 1 < steps_ ? before_ : last_);
    std::vector<std::vector<Tensor>> arguments(states_.size());
    for (std::size_t process = 0; process < states_.size(); ++process) {
      const int batch = static_cast<int>(process) * steps_ + step;
      for (unsigned i = 0; i < function.getNumArguments(); ++i) {
        arguments[process].push_back(argumentRole(function, i) == Role::kInput
                                         ? RowsOfBatch(function, i, update * kMicroBatches + batch, batch != bad)
                                         : State(function, i, states_[process]));
      }
    }
    const auto results = interpretProcesses(function, arguments);
    ASSERT_TRUE(results.ok()) << results.status();
    for (std::size_t process = 0; process < states_.size(); ++process) {
      for (unsigned i = 0; i < function.getNumResults(); ++i) {
        if (isState(resultRole(function, i))) states_[process][resultName(function, i).str()] = (*results)[process][i];
      }
    }
  }

  /// The state that the last step left, or what training begins with.
  Tensor State(FuncOp function, unsigned index, const NamedTensors& state) const {
    const std::string name = argumentName(function, index).str();
    if (const auto found = state.find(name); found != state.end()) return found->second;
    Tensor begin = ArgumentValue(function, index);
    const std::optional<Role> role = argumentRole(function, index);
    for (double& value : begin.values) {
      if (role == Role::kAccumulator || role == Role::kRng) value = 0;
      if (role == Role::kParameter || role == Role::kStatistic) value = std::round(value * state_scale_) / state_scale_;
      if (role == Role::kSlot) value = std::round(value * state_scale_) / state_scale_;
      if (role == Role::kLearningRate) value = 0.25;
    }
    return begin;
  }

  int steps_;  ///< micro-steps of each process
  compiler::Module last_, before_;
  std::vector<NamedTensors> states_;
  double state_scale_;  ///< state begins at multiples of 1 / state_scale_
};

/// Trains three updates and compares every process with the one process that `expected` is. One update has a
/// micro-batch that is not finite. `is_skipped`: a gradient shows it.
void ExpectSameTraining(ProcessesInTurn expected, ProcessesInTurn actual, bool is_skipped) {
  for (int update = 0; update < 3; ++update) {
    const int bad = update == 1 ? 2 : -1;
    const NamedTensors before = expected.StateOf(0);
    expected.RunUpdate(update, bad);
    actual.RunUpdate(update, bad);
    if (::testing::Test::HasFatalFailure()) return;
    const NamedTensors one = expected.StateOf(0);
    for (std::size_t process = 0; process < actual.size(); ++process) {
      const NamedTensors other = actual.StateOf(process);
      ASSERT_EQ(one.size(), other.size());
      for (const auto& [name, tensor] : one) {
        ASSERT_TRUE(other.contains(name)) << name;
        EXPECT_TRUE(SameBits(tensor, other.at(name))) << name << " of process " << process << ", update " << update;
        if (bad < 0 || !is_skipped || name.rfind("scaler", 0) == 0) continue;
        EXPECT_TRUE(SameBits(tensor, before.at(name))) << name << " moved";
      }
    }
  }
}

TEST(AccumulatingProcesses, HaveTheStateOfOneProcess) {
  const absl::StatusOr<compiler::Module> step = compiler::ParseModule(kStepText);
  ASSERT_TRUE(step.ok()) << step.status();
  for (const int processes : {2, 4}) {
    ExpectSameTraining(ProcessesInTurn(*step, 1, 4), ProcessesInTurn(*step, processes, 4), /*is_skipped=*/true);
  }
}

TEST(AccumulatingProcesses, HaveTheBitsOfOneProcessInRandomSteps) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const compiler::Module step = MakeRandomTrainingStep(seed, seed % 3 == 1 ? StepKind::kFusible : StepKind::kMixed);
    ExpectSameTraining(ProcessesInTurn(step, 1, 0x1p20), ProcessesInTurn(step, 2, 0x1p20), /*is_skipped=*/false);
  }
}

}  // namespace
}  // namespace mpc::test
