// Derivatives through collective operations, in a grid of processes: those of the sum of all processes' losses.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/dialect/dialect.h"
#include "compiler/interpreter/interpreter.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using reference::Rounding;
using reference::Tensor;

/// `body` computes %loss of %x, [4, 2], and %weight. PROCESSES is their number. The results are the loss and dx.
std::string StepOf(const std::string& body, const std::string& weight, int processes) {
  return absl::StrReplaceAll(absl::StrCat(R"(
      func.func private @loss(%x: tensor<4x2xf32>, %weight: WEIGHT) -> tensor<f32> {)",
                                          body, R"(
        return %loss : tensor<f32>
      }
      func.func @main(%x: tensor<4x2xf32>, %weight: WEIGHT) -> (tensor<f32>, tensor<4x2xf32>) {
        %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
        %loss, %dx = mpc.value_and_grad @loss(%x, %weight) seed(%one) {wrt = array<i64: 0>}
            : (tensor<4x2xf32>, WEIGHT, tensor<f32>) -> (tensor<f32>, tensor<4x2xf32>)
        return %loss, %dx : tensor<f32>, tensor<4x2xf32>
      })"),
                             {{"WEIGHT", weight}, {"PROCESSES", absl::StrCat(processes)}});
}

/// What nn::SyncBatchNorm traces.
constexpr char kSynchronizedNorm[] = R"(
        %one = mpc.constant {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
        %zero = mpc.constant {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
        %gamma = mpc.constant {value = dense<[0.75, -1.5]> : tensor<2xf32>} : () -> tensor<2xf32>
        %normal, %own_mean, %own_variance, %inv = mpc.batch_norm_train %x, %one, %zero
            : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
            -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
        %rows = mpc.constant {value = dense<4.0> : tensor<1xf32>} : () -> tensor<1xf32>
        %own = mpc.concat %own_mean, %own_variance, %rows
            : (tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<5xf32>
        %all = mpc.all_gather %own {processes = PROCESSES} : (tensor<5xf32>) -> tensor<PROCESSESx5xf32>
        %means, %variances, %each = mpc.split %all {axis = 1, sizes = [2, 2, 1]}
            : (tensor<PROCESSESx5xf32>) -> (tensor<PROCESSESx2xf32>, tensor<PROCESSESx2xf32>, tensor<PROCESSESx1xf32>)
        %counts = mpc.stop_gradient %each : tensor<PROCESSESx1xf32>
        %count = mpc.reduce_sum %counts {axes = []} : (tensor<PROCESSESx1xf32>) -> tensor<f32>
        %shares = mpc.div %counts, %count : (tensor<PROCESSESx1xf32>, tensor<f32>) -> tensor<PROCESSESx1xf32>
        %mean_shares = mpc.mul %shares, %means
            : (tensor<PROCESSESx1xf32>, tensor<PROCESSESx2xf32>) -> tensor<PROCESSESx2xf32>
        %mean = mpc.reduce_sum %mean_shares {axes = [0]} : (tensor<PROCESSESx2xf32>) -> tensor<2xf32>
        %deviation = mpc.sub %means, %mean : (tensor<PROCESSESx2xf32>, tensor<2xf32>) -> tensor<PROCESSESx2xf32>
        %square = mpc.square %deviation : tensor<PROCESSESx2xf32>
        %spread = mpc.add %variances, %square : tensor<PROCESSESx2xf32>
        %spread_shares = mpc.mul %shares, %spread
            : (tensor<PROCESSESx1xf32>, tensor<PROCESSESx2xf32>) -> tensor<PROCESSESx2xf32>
        %variance = mpc.reduce_sum %spread_shares {axes = [0]} : (tensor<PROCESSESx2xf32>) -> tensor<2xf32>
        %y = mpc.batch_norm_infer %x, %gamma, %gamma, %mean, %variance
            : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
        %weighted = mpc.mul %y, %weight : tensor<4x2xf32>
        %loss = mpc.reduce_sum %weighted {axes = []} : (tensor<4x2xf32>) -> tensor<f32>)";

/// The norm of a whole batch, in one process.
constexpr char kWholeNorm[] = R"(
      func.func private @loss(%x: tensor<ROWSx2xf32>, %weight: tensor<ROWSx2xf32>) -> tensor<f32> {
        %gamma = mpc.constant {value = dense<[0.75, -1.5]> : tensor<2xf32>} : () -> tensor<2xf32>
        %y, %mean, %variance, %inv = mpc.batch_norm_train %x, %gamma, %gamma
            : (tensor<ROWSx2xf32>, tensor<2xf32>, tensor<2xf32>)
            -> (tensor<ROWSx2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
        %weighted = mpc.mul %y, %weight : tensor<ROWSx2xf32>
        %loss = mpc.reduce_sum %weighted {axes = []} : (tensor<ROWSx2xf32>) -> tensor<f32>
        return %loss : tensor<f32>
      }
      func.func @main(%x: tensor<ROWSx2xf32>, %weight: tensor<ROWSx2xf32>) -> (tensor<f32>, tensor<ROWSx2xf32>) {
        %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
        %loss, %dx = mpc.value_and_grad @loss(%x, %weight) seed(%one) {wrt = array<i64: 0>}
            : (tensor<ROWSx2xf32>, tensor<ROWSx2xf32>, tensor<f32>) -> (tensor<f32>, tensor<ROWSx2xf32>)
        return %loss, %dx : tensor<f32>, tensor<ROWSx2xf32>
      })";

/// The square keeps a derivative from being a constant.
constexpr char kGathered[] = R"(
        %all = mpc.all_gather %x {processes = PROCESSES} : (tensor<4x2xf32>) -> tensor<PROCESSESx4x2xf32>
        %square = mpc.square %all : tensor<PROCESSESx4x2xf32>
        %weighted = mpc.mul %square, %weight : tensor<PROCESSESx4x2xf32>
        %loss = mpc.reduce_sum %weighted {axes = []} : (tensor<PROCESSESx4x2xf32>) -> tensor<f32>)";

constexpr char kSummed[] = R"(
        %all = mpc.all_reduce %x {processes = PROCESSES} : tensor<4x2xf32>
        %square = mpc.square %all : tensor<4x2xf32>
        %weighted = mpc.mul %square, %weight : tensor<4x2xf32>
        %loss = mpc.reduce_sum %weighted {axes = []} : (tensor<4x2xf32>) -> tensor<f32>)";

Tensor Drawn(std::mt19937& random, const Shape& shape) {
  Tensor tensor{{DType::kF32, shape}, {}};
  for (std::int64_t i = 0; i < NumElements(shape); ++i) tensor.values.push_back(double(int(random() % 129) - 64) / 32);
  return tensor;
}

class ProcessGradients : public testing::TestWithParam<int> {
 protected:
  using Inputs = std::vector<std::vector<Tensor>>;  ///< of each process

  /// What each process returns, in f64.
  std::vector<std::vector<Tensor>> Run(const Inputs& inputs) {
    auto results = interpretProcesses(module_->lookupSymbol<mlir::func::FuncOp>("main"), inputs, Rounding::kLowOnly);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<std::vector<Tensor>>();
  }

  void Differentiate(const std::string& text) {
    module_ = ParseModule(*context_, text);
    ASSERT_TRUE(module_) << text;
    ASSERT_TRUE(llvm::succeeded(RunAutodiff(*module_)));
  }

  Inputs Draw(const Shape& weight) {
    Inputs inputs;
    for (int rank = 0; rank < GetParam(); ++rank) inputs.push_back({Drawn(random_, {4, 2}), Drawn(random_, weight)});
    return inputs;
  }

  double SumOfLosses(const Inputs& inputs) {
    double sum = 0;
    for (const std::vector<Tensor>& results : Run(inputs)) sum += results[0].values[0];
    return sum;
  }

  /// The quotient D(h) has an error of t h^2 and rounding, so that twice D(2h) - D(h) bounds the former. The latter is
  /// that of sums of order 100 in f64, over h.
  void ExpectGradientOfAllLosses(const Inputs& inputs) {
    constexpr double kStep = 0x1p-13;
    const auto results = Run(inputs);
    ASSERT_EQ(results.size(), inputs.size());
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      for (std::size_t i = 0; i < inputs[rank][0].values.size(); ++i) {
        const auto quotient = [&](double step) {
          Inputs above = inputs, below = inputs;
          above[rank][0].values[i] += step;
          below[rank][0].values[i] -= step;
          return (SumOfLosses(above) - SumOfLosses(below)) / (2 * step);
        };
        const double fine = quotient(kStep), coarse = quotient(2 * kStep);
        EXPECT_NEAR(results[rank][1].values[i], fine, 2 * std::abs(coarse - fine) + 100 * 64 * 0x1p-53 / kStep)
            << "rank " << rank << ", element " << i;
      }
    }
  }

  std::unique_ptr<mlir::MLIRContext> context_ = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::mt19937 random_{17};
};

TEST_P(ProcessGradients, OfAGatherAreThoseOfAllLosses) {
  const std::string weight = absl::StrCat("tensor<", GetParam(), "x4x2xf32>");
  ASSERT_NO_FATAL_FAILURE(Differentiate(StepOf(kGathered, weight, GetParam())));
  ExpectGradientOfAllLosses(Draw({GetParam(), 4, 2}));
}

TEST_P(ProcessGradients, OfASumAreThoseOfAllLosses) {
  ASSERT_NO_FATAL_FAILURE(Differentiate(StepOf(kSummed, "tensor<4x2xf32>", GetParam())));
  ExpectGradientOfAllLosses(Draw({4, 2}));
}

TEST_P(ProcessGradients, OfASynchronizedNormAreThoseOfAllLosses) {
  ASSERT_NO_FATAL_FAILURE(Differentiate(StepOf(kSynchronizedNorm, "tensor<4x2xf32>", GetParam())));
  ExpectGradientOfAllLosses(Draw({4, 2}));
}

/// In f64 both are the same but for roundings: shares of 4 rows are exact f32 constants.
TEST_P(ProcessGradients, OfASynchronizedNormAreThoseOfTheWholeBatch) {
  ASSERT_NO_FATAL_FAILURE(Differentiate(StepOf(kSynchronizedNorm, "tensor<4x2xf32>", GetParam())));
  const Inputs inputs = Draw({4, 2});
  const auto results = Run(inputs);
  ASSERT_EQ(results.size(), inputs.size());

  Inputs whole = {{{{DType::kF32, {4 * GetParam(), 2}}, {}}, {{DType::kF32, {4 * GetParam(), 2}}, {}}}};
  for (const std::vector<Tensor>& of_process : inputs) {
    for (std::size_t i : {0, 1}) {
      whole[0][i].values.insert(whole[0][i].values.end(), of_process[i].values.begin(), of_process[i].values.end());
    }
  }
  ASSERT_NO_FATAL_FAILURE(Differentiate(absl::StrReplaceAll(kWholeNorm, {{"ROWS", absl::StrCat(4 * GetParam())}})));
  const auto expected = Run(whole);
  ASSERT_EQ(expected.size(), 1U);

  double loss = 0;
  std::vector<double> gradient;
  for (const std::vector<Tensor>& of_process : results) {
    loss += of_process[0].values[0];
    gradient.insert(gradient.end(), of_process[1].values.begin(), of_process[1].values.end());
  }
  EXPECT_NEAR(loss, expected[0][0].values[0], 1e-12);
  ASSERT_EQ(gradient.size(), expected[0][1].values.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(gradient[i], expected[0][1].values[i], 1e-12) << i;
}

INSTANTIATE_TEST_SUITE_P(Processes, ProcessGradients, ::testing::Values(2, 4));

}  // namespace
}  // namespace mpc
