// Every derivative rule against central finite differences, in f64, over the table of operation cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/interpreter/interpreter.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using op_cases::AllOpCases;
using op_cases::OpCase;
using reference::Tensor;

/// Inputs of a differentiable case are of order 1; u^(1/4) balances truncation against rounding when two step sizes are
/// compared.
constexpr double kStep = 0x1p-13;
constexpr double kUnitRoundoff = 0x1p-53;
/// Perturbed elements an operand, beside one direction through all of them.
constexpr std::size_t kSamples = 4;

bool HasRule(mlir::MLIRContext& context, const OpCase& op_case) {
  return mlir::OperationName("mpc." + op_case.op, &context).hasInterface<DifferentiableOpInterface>();
}

bool IsDifferentiated(mlir::MLIRContext& context, const OpCase& op_case) {
  return HasRule(context, op_case) &&
         std::any_of(op_case.operands.begin(), op_case.operands.end(),
                     [](const op_cases::OperandCase& operand) { return operand.differentiable; });
}

/// Distinct values at least 1/64 apart, in the order of the given ones.
void SpreadRanks(std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    values[order[rank]] = (double(rank) - double(order.size()) / 2) / 64;
}

/// Moves inputs away from the points where an operation has no derivative.
void AvoidKinks(const OpCase& op_case, std::vector<Tensor>& inputs) {
  static const std::set<std::string> kKinksAtZero = {"relu", "abs", "leaky_relu", "prelu"};
  if (kKinksAtZero.count(op_case.op))
    for (double& x : inputs[0].values) x = std::copysign(std::max(std::abs(x), 1.0 / 64), x);
  // Odd multiples of 1/64 are no integers, and no limits of a clamp.
  if (op_case.op == "floor" || op_case.op == "clamp")
    for (double& x : inputs[0].values) x = std::floor(x * 32) / 32 + 1.0 / 64;
  // A derivative jumps where its operation has a kink. It reads x or y behind dy.
  static const std::set<std::string> kJumpsAtZero = {"relu_grad", "abs_grad", "leaky_relu_grad", "prelu_grad"};
  if (kJumpsAtZero.count(op_case.op))
    for (double& x : inputs[1].values) x = std::copysign(std::max(std::abs(x), 1.0 / 64), x);
  if (op_case.op == "clamp_grad" || op_case.op == "hard_swish_grad")
    for (double& x : inputs[1].values) x = std::floor(x * 32) / 32 + 1.0 / 64;
  static const std::set<std::string> kKinksAtTies = {"max_pool2d", "reduce_max", "reduce_min", "sort", "top_k"};
  if (kKinksAtTies.count(op_case.op)) SpreadRanks(inputs[0].values);
  if (op_case.op == "maximum" || op_case.op == "minimum")
    // Multiples of 1/16 and odd multiples of 1/32 are never closer than 1/32.
    for (std::size_t operand : {0, 1})
      for (double& x : inputs[operand].values) x = std::round(x * 16) / 16 + double(operand) / 32;
}

/// A relu activation has kinks that inputs cannot avoid: a step across one says nothing.
bool CrossesKink(const OpCase& op_case, const Tensor& low, const Tensor& high) {
  if (op_case.attributes.GetString("activation", "none") != "relu") return false;
  for (std::size_t i = 0; i < low.values.size(); ++i)
    if ((low.values[i] > 0) != (high.values[i] > 0)) return true;
  return false;
}

class GradientCheck : public testing::Test {
 protected:
  std::vector<Tensor> run(mlir::ModuleOp module, const char* name, const std::vector<Tensor>& inputs) {
    absl::StatusOr<std::vector<Tensor>> results =
        interpret(module.lookupSymbol<mlir::func::FuncOp>(name), inputs, reference::Rounding::kLowOnly);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<Tensor>();
  }

  std::vector<Tensor> gradients(const OpCase& op_case, DType storage, std::vector<Tensor> inputs);

  std::unique_ptr<mlir::MLIRContext> Context = MakeContext();
};

/// A difference quotient along `Direction` of operand `Operand`, and how far it may be from the derivative.
struct Quotient {
  double Value = 0;
  double Tolerance = 0;
  bool CrossesKink = false;
};

class DifferenceQuotient {
 public:
  DifferenceQuotient(const OpCase& op_case, mlir::func::FuncOp forward, std::vector<Tensor> inputs, Tensor cotangent)
      : op_case(op_case), forward_(forward), inputs_(std::move(inputs)), cotangent_(std::move(cotangent)) {}

  /// The error of D(h) is t h^2 + O(h^4) + rounding, so D(2h) - D(h) = 3 t h^2: twice that difference bounds the
  /// truncation also where the next term is as large. Rounding errors of a sum of n terms grow as sqrt(n) with high
  /// probability (Higham and Mary 2019, lambda = 8), relative to what is summed, and are divided by h.
  Quotient along(std::size_t operand, const std::vector<double>& direction) {
    Quotient fine = central(operand, direction, kStep), coarse = central(operand, direction, 2 * kStep);
    fine.Tolerance += 2 * std::abs(coarse.Value - fine.Value);
    fine.CrossesKink |= coarse.CrossesKink;
    return fine;
  }

 private:
  Tensor evaluate(std::size_t operand, const std::vector<double>& direction, double step) {
    std::vector<Tensor> moved = inputs_;
    for (std::size_t i = 0; i < direction.size(); ++i) moved[operand].values[i] += step * direction[i];
    return interpret(forward_, moved, reference::Rounding::kLowOnly)->front();
  }

  Quotient central(std::size_t operand, const std::vector<double>& direction, double step) {
    Tensor low = evaluate(operand, direction, -step), high = evaluate(operand, direction, step);
    Quotient result;
    result.CrossesKink = CrossesKink(op_case, low, high);
    std::size_t terms = 1;
    for (const Tensor& input : inputs_) terms = std::max(terms, input.values.size());
    double moved = 0, still = 0;
    for (std::size_t i = 0; i < low.values.size(); ++i) {
      result.Value += cotangent_.values[i] * (high.values[i] - low.values[i]);
      bool changed = low.values[i] != high.values[i];
      (changed ? moved : still) += std::abs(cotangent_.values[i]) * (double(changed) + std::abs(high.values[i]));
    }
    result.Value /= 2 * step;
    // A result that did not move hides at most half a unit in its last place.
    result.Tolerance = (8 * std::sqrt(double(terms)) * moved + still) * kUnitRoundoff / step;
    return result;
  }

  const OpCase& op_case;
  mlir::func::FuncOp forward_;
  std::vector<Tensor> inputs_;
  Tensor cotangent_;
};

/// Multiples of 1/8 in [-1, 1]: exact in every type.
Tensor MakeCotangent(const TensorSpec& result, std::mt19937& random) {
  Tensor cotangent{{DType::kF32, result.shape}, std::vector<double>(result.num_elements())};
  for (double& value : cotangent.values) value = double(int(random() % 17) - 8) / 8;
  return cotangent;
}

/// All elements of a small operand, else some of each part; then one direction through all of them.
std::vector<std::vector<double>> directions(std::size_t elements, std::mt19937& random) {
  std::vector<std::vector<double>> result;
  std::size_t samples = std::min(elements, kSamples);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::size_t begin = elements * sample / samples, end = elements * (sample + 1) / samples;
    result.emplace_back(elements, 0.0);
    result.back()[begin + random() % (end - begin)] = 1;
  }
  result.emplace_back(elements);
  for (double& value : result.back()) value = random() % 2 ? 0.5 : -0.5;
  return result;
}

TEST_F(GradientCheck, RulesAgreeWithFiniteDifferences) {
  for (const OpCase& op_case : AllOpCases()) {
    if (!IsDifferentiated(*Context, op_case)) continue;
    SCOPED_TRACE(op_case.name);
    auto module = GradientModule(*Context, op_case, DType::kF32);
    auto forward = ForwardModule(*Context, op_case, DType::kF32);
    ASSERT_TRUE(llvm::succeeded(RunAutodiff(*module)));

    std::mt19937 random(17);
    std::vector<Tensor> inputs = MakeInputs(op_case, DType::kF32);
    AvoidKinks(op_case, inputs);
    Tensor cotangent = MakeCotangent(op_case.results.front(), random);
    DifferenceQuotient quotients(op_case, forward->lookupSymbol<mlir::func::FuncOp>("forward"), inputs, cotangent);
    std::vector<Tensor> arguments = inputs;
    arguments.push_back(cotangent);
    std::vector<Tensor> gradients = run(*module, "gradients", arguments);

    std::size_t next = 0, compared = 0, skipped = 0;
    for (std::size_t operand = 0; operand < op_case.operands.size(); ++operand) {
      if (!op_case.operands[operand].differentiable) continue;
      const Tensor& gradient = gradients.at(next++);
      ASSERT_EQ(gradient.spec, op_case.operands[operand].spec);
      for (const std::vector<double>& direction : directions(gradient.values.size(), random)) {
        Quotient expected = quotients.along(operand, direction);
        ++(expected.CrossesKink ? skipped : compared);
        if (expected.CrossesKink) continue;
        double actual = std::inner_product(direction.begin(), direction.end(), gradient.values.begin(), 0.0);
        // The analytic value has roundings of its own, smaller by the step.
        EXPECT_NEAR(actual, expected.Value, expected.Tolerance + 1e-12 * std::abs(actual)) << "operand " << operand;
      }
    }
    EXPECT_GE(compared, skipped) << "too many steps crossed a kink of the activation";
  }
}

/// The table's cases have cotangents of the first result alone.
TEST_F(GradientCheck, RulesOfBatchStatisticsAgreeWithFiniteDifferences) {
  constexpr char kStatistics[] = R"(
    func.func private @loss(%x: tensor<4x3xf32>, %of: tensor<3x3xf32>) -> tensor<f32> {
      %one = mpc.constant {value = dense<1.0> : tensor<3xf32>} : () -> tensor<3xf32>
      %y, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %one, %one
          : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
          -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
      %joined = mpc.concat %mean, %variance, %inv_std : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<9xf32>
      %all = mpc.reshape %joined {shape = [3, 3]} : (tensor<9xf32>) -> tensor<3x3xf32>
      %weighted = mpc.mul %all, %of : tensor<3x3xf32>
      %loss = mpc.reduce_sum %weighted {axes = []} : (tensor<3x3xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    func.func @gradients(%x: tensor<4x3xf32>, %of: tensor<3x3xf32>) -> (tensor<f32>, tensor<4x3xf32>) {
      %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
      %loss, %dx = mpc.value_and_grad @loss(%x, %of) seed(%one) {wrt = array<i64: 0>}
          : (tensor<4x3xf32>, tensor<3x3xf32>, tensor<f32>) -> (tensor<f32>, tensor<4x3xf32>)
      return %loss, %dx : tensor<f32>, tensor<4x3xf32>
    })";
  auto module = ParseModule(*Context, kStatistics);
  ASSERT_TRUE(module);
  ASSERT_TRUE(llvm::succeeded(RunAutodiff(*module)));
  std::mt19937 random(17);
  const Tensor x = MakeCotangent({DType::kF32, {4, 3}}, random);
  const Tensor every = MakeCotangent({DType::kF32, {3, 3}}, random);
  // All statistics, then each alone: a rule treats those that are not there apart.
  for (std::size_t row = 0; row <= 3; ++row) {
    Tensor of = every;
    for (std::size_t i = 0; i < of.values.size(); ++i)
      if (row > 0 && i / 3 != row - 1) of.values[i] = 0;
    const std::vector<double> gradient = run(*module, "gradients", {x, of}).at(1).values;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      auto quotient = [&](double step) {
        Tensor above = x, below = x;
        above.values[i] += step;
        below.values[i] -= step;
        double high = run(*module, "gradients", {above, of}).at(0).values[0];
        double low = run(*module, "gradients", {below, of}).at(0).values[0];
        return (high - low) / (2 * step);
      };
      double fine = quotient(kStep), coarse = quotient(2 * kStep);
      // As in DifferenceQuotient::along; sums are of order 10.
      EXPECT_NEAR(gradient[i], fine, 2 * std::abs(coarse - fine) + 10 * 64 * kUnitRoundoff / kStep) << row << ", " << i;
    }
  }
}

double norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

/// The gradients of the case in `Storage`, at inputs that are exact in f16 or bf16.
std::vector<Tensor> GradientCheck::gradients(const OpCase& op_case, DType storage, std::vector<Tensor> inputs) {
  auto module = GradientModule(*Context, op_case, storage);
  EXPECT_TRUE(llvm::succeeded(RunAutodiff(*module)));
  std::vector<TensorSpec> specs = OperandSpecs(op_case, storage);
  for (std::size_t operand = 0; operand < specs.size(); ++operand) inputs[operand].spec = specs[operand];
  return run(*module, "gradients", inputs);
}

TEST_F(GradientCheck, LowRulesDifferFromWideOnesByTheirRoundings) {
  for (const OpCase& op_case : AllOpCases()) {
    if (!IsDifferentiated(*Context, op_case) || !op_case.low) continue;
    for (DType low : {DType::kF16, DType::kBF16}) {
      SCOPED_TRACE(op_case.name + " in " + std::string(DTypeName(low)));
      std::mt19937 random(17);
      std::vector<Tensor> inputs = MakeInputs(op_case, low);
      Tensor cotangent = MakeCotangent(op_case.results.front(), random);
      inputs.push_back(cotangent);
      std::vector<Tensor> actual = gradients(op_case, low, inputs), expected = gradients(op_case, DType::kF32, inputs);
      ASSERT_EQ(actual.size(), expected.size());
      double unit = low == DType::kF16 ? 0x1p-11 : 0x1p-8, underflow = low == DType::kF16 ? 0x1p-25 : 0x1p-134;
      for (std::size_t index = 0; index < actual.size(); ++index) {
        std::vector<double> error(actual[index].values);
        for (std::size_t i = 0; i < error.size(); ++i) {
          // exp overflows f16 at 11.1, and its derivative reads the result.
          bool overflowed = op_case.op == "exp" && !std::isfinite(error[i]);
          error[i] = overflowed ? 0 : error[i] - expected[index].values[i];
        }
        // At most four roundings in a row change the gradient (y, the cotangent before the activation, a broadcast
        // term, the result). Rules that read y see 1 - y or 1 - y^2, where its rounding weighs up to twice the
        // cotangent. Below the smallest normal number the error of a rounding is absolute.
        double tolerance = unit * (4 * norm(expected[index].values) + 2 * norm(cotangent.values)) +
                           underflow * std::sqrt(double(error.size()));
        EXPECT_LE(norm(error), tolerance) << "gradient " << index;
      }
    }
  }
}

/// A loss %loss of %x and %p, whose types are written X and P.
struct TwiceDifferentiated {
  const char* name;
  const char* x;
  const char* p;
  const char* loss;
};

const TwiceDifferentiated kTwice[] = {
    {"gelu", "3x4xf32", "3x4xf32", "%m = mpc.mul %x, %p : X %y = mpc.gelu %m : X"},
    {"gelu_tanh", "3x4xf32", "3x4xf32", "%m = mpc.mul %x, %p : X %y = mpc.gelu %m {approximate = tanh} : X"},
    {"layer_norm", "3x4xf32", "4xf32", R"(
      %y, %mean, %inverse = mpc.layer_norm %x, %p, %p : (X, P, P) -> (X, tensor<3xf32>, tensor<3xf32>))"},
    {"layer_norm_of_two_axes", "3x2x2xf32", "2x2xf32", R"(
      %y, %mean, %inverse = mpc.layer_norm %x, %p, %p : (X, P, P) -> (X, tensor<3xf32>, tensor<3xf32>))"},
    {"group_norm", "2x4x1x2xf32", "4xf32", R"(
      %y, %mean, %inverse = mpc.group_norm %x, %p, %p {groups = 2}
          : (X, P, P) -> (X, tensor<2x2xf32>, tensor<2x2xf32>))"},
    {"group_norm_channels_last", "2x1x2x4xf32", "4xf32", R"(
      %y, %mean, %inverse = mpc.group_norm %x, %p, %p {groups = 2, data_format = NHWC}
          : (X, P, P) -> (X, tensor<2x2xf32>, tensor<2x2xf32>))"},
    {"batch_norm_train", "2x3x2x2xf32", "3xf32", R"(
      %y, %mean, %variance, %inverse = mpc.batch_norm_train %x, %p, %p : (X, P, P) -> (X, P, P, P))"},
    {"batch_norm_infer", "2x2x2x3xf32", "3xf32", R"(
      %variance = mpc.square %p : P
      %y = mpc.batch_norm_infer %x, %p, %p, %p, %variance {data_format = NHWC} : (X, P, P, P, P) -> X)"},
    {"softmax_cross_entropy", "4x3xf32", "4x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %labels = mpc.constant {value = dense<[0, 2, 1, 1]> : tensor<4xi32>} : () -> tensor<4xi32>
      %y, %sums = mpc.softmax_cross_entropy %m, %labels : (X, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>))"},
    {"softmax_cross_entropy_of_classes", "4x3xf32", "4x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %labels = mpc.constant {value = dense<[0, 1, 1, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
      %y, %sums = mpc.softmax_cross_entropy %m, %labels {classes = 2 : i64, reduction = none}
          : (X, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>))"},
    {"softmax_cross_entropy_of_shares", "4x3xf32", "4x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %labels = mpc.constant {value = dense<0.25> : X} : () -> X
      %y, %sums = mpc.softmax_cross_entropy %m, %labels : (X, X) -> (tensor<f32>, tensor<4xf32>))"},
    {"bce_with_logits", "4x3xf32", "4x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %labels = mpc.constant {value = dense<0.25> : X} : () -> X
      %y = mpc.bce_with_logits %m, %labels : (X, X) -> tensor<f32>)"},
    {"mse", "4x3xf32", "4x3xf32", "%m = mpc.tanh %x : X %y = mpc.mse %m, %p : (X, X) -> tensor<f32>"},
    {"max_pool2d", "1x2x3x3xf32", "1x2x3x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %y, %indices = mpc.max_pool2d %m {kernel_size = [2, 2], strides = [1, 1], pad_mode = same}
          : (X) -> (X, tensor<1x2x3x3xi8>))"},
    {"attention", "1x2x3x2xf32", "1x2x3x2xf32", R"(
      %values = mpc.mul %x, %p : X
      %y, %sums = mpc.attention %x, %p, %values {scale = 0.75 : f32, causal = true}
          : (X, X, X) -> (X, tensor<1x2x3xf32>))"},
    {"resize", "1x2x2x3xf32", "1x2x2x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %wide = mpc.resize %m {size = [4, 5], interpolation = bilinear, coordinates = half_pixel}
          : (X) -> tensor<1x2x4x5xf32>
      %bends = mpc.square %wide : tensor<1x2x4x5xf32>
      %y = mpc.resize %bends {size = [2, 3]} : (tensor<1x2x4x5xf32>) -> X)"},
    {"gather", "4x3xf32", "4x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %rows = mpc.constant {value = dense<[3, 1, 1, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
      %y = mpc.gather %m, %rows : (X, tensor<4xi32>) -> X)"},
    {"prelu", "3x4xf32", "4xf32", R"(
      %m = mpc.add_scalar %x {value = 0.0625} : X
      %y = mpc.prelu %m, %p : (X, P) -> X)"},
    {"prelu_of_one_slope", "3x4xf32", "1xf32", R"(
      %m = mpc.add_scalar %x {value = 0.0625} : X
      %y = mpc.prelu %m, %p : (X, P) -> X)"},
    {"prelu_channels_last", "2x1x2x4xf32", "4xf32", R"(
      %m = mpc.add_scalar %x {value = 0.0625} : X
      %y = mpc.prelu %m, %p {data_format = NHWC} : (X, P) -> X)"},
    {"reduce_max", "3x4xf32", "3x4xf32", R"(
      %m = mpc.mul %x, %p : X
      %r = mpc.reduce_max %m {axes = [1], keep_dims = true} : (X) -> tensor<3x1xf32>
      %y = mpc.mul %m, %r : (X, tensor<3x1xf32>) -> X)"},
    {"reduce_min_of_all", "3x4xf32", "3x4xf32", R"(
      %m = mpc.mul %x, %p : X
      %r = mpc.reduce_min %m {axes = [], keep_dims = true} : (X) -> tensor<1x1xf32>
      %y = mpc.mul %m, %r : (X, tensor<1x1xf32>) -> X)"},
    {"reduce_prod", "3x4xf32", "3x4xf32", R"(
      %m = mpc.mul %x, %p : X
      %r = mpc.reduce_prod %m {axes = [0]} : (X) -> tensor<4xf32>
      %y = mpc.mul %m, %r : (X, tensor<4xf32>) -> X)"},
    {"reduce_prod_around_an_axis", "2x3x3xf32", "2x3x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %r = mpc.reduce_prod %m {axes = [0, 2], keep_dims = true} : (X) -> tensor<1x3x1xf32>
      %y = mpc.mul %m, %r : (X, tensor<1x3x1xf32>) -> X)"},
    {"reduce_prod_thrice", "2x3xf32", "2x3xf32", R"(
      %m = mpc.mul %x, %p : X
      %r = mpc.reduce_prod %m {axes = [], keep_dims = true} : (X) -> tensor<1x1xf32>
      %y = mpc.backward %r wrt(%x) seed(%one) : (tensor<1x1xf32>, X, tensor<f32>) -> X)"},
    {"lstm_cell", "2x8xf32", "2x2xf32", R"(
      %h, %n, %a = mpc.lstm_cell %x, %p : (X, P) -> (P, P, X)
      %states = mpc.concat %h, %n, %h, %n {axis = 1} : (P, P, P, P) -> X
      %y = mpc.mul %states, %a : X)"},
    {"lstm_cell_thrice", "2x8xf32", "2x2xf32", R"(
      %h, %n, %a = mpc.lstm_cell %x, %p : (X, P) -> (P, P, X)
      %y = mpc.backward %h wrt(%x) seed(%one) : (P, X, tensor<f32>) -> X)"},
};

/// `@first(x, p)`: the gradients of the loss. `@second(x, p, u, v)`: those of their products with u and v.
std::string TextOf(const TwiceDifferentiated& of) {
  constexpr char kGradients[] = R"(
      %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
      BODY
      %bent = mpc.sin %y : Y
      %weighted = mpc.mul %bent, %y : Y
      %loss = mpc.reduce_sum %weighted {axes = []} : (Y) -> tensor<f32>
      %dx, %dp = mpc.backward %loss wrt(%x, %p) seed(%one) : (tensor<f32>, X, P, tensor<f32>) -> (X, P))";
  constexpr char kModule[] = R"(
    func.func @first(%x: X, %p: P) -> (X, P) {GRADIENTS
      return %dx, %dp : X, P
    }
    func.func @second(%x: X, %p: P, %u: X, %v: P) -> (X, P) {GRADIENTS
      %along_x = mpc.mul %dx, %u : X
      %along_p = mpc.mul %dp, %v : P
      %by_x = mpc.reduce_sum %along_x {axes = []} : (X) -> tensor<f32>
      %by_p = mpc.reduce_sum %along_p {axes = []} : (P) -> tensor<f32>
      %both = mpc.add %by_x, %by_p : tensor<f32>
      %ddx, %ddp = mpc.backward %both wrt(%x, %p) seed(%one) : (tensor<f32>, X, P, tensor<f32>) -> (X, P)
      return %ddx, %ddp : X, P
    })";
  const std::string body = of.loss;
  const bool scalar = absl::StrContains(body, "-> tensor<f32>") || absl::StrContains(body, "-> (tensor<f32>");
  const char* const y = scalar ? "tensor<f32>" : absl::StrContains(body, "none") ? "tensor<4xf32>" : "X";
  std::string text = absl::StrReplaceAll(kModule, {{"GRADIENTS", kGradients}});
  text = absl::StrReplaceAll(
      text, {{"BODY", body}, {" Y\n", absl::StrCat(" ", y, "\n")}, {"(Y)", absl::StrCat("(", y, ")")}});
  const std::string x = absl::StrCat("tensor<", of.x, ">"), p = absl::StrCat("tensor<", of.p, ">");
  return std::regex_replace(std::regex_replace(text, std::regex("\\bX\\b"), x), std::regex("\\bP\\b"), p);
}

TEST_F(GradientCheck, SecondDerivativesAgreeWithFiniteDifferencesOfGradients) {
  for (const TwiceDifferentiated& of : kTwice) {
    SCOPED_TRACE(of.name);
    auto module = ParseModule(*Context, TextOf(of));
    ASSERT_TRUE(module);
    ASSERT_TRUE(llvm::succeeded(RunAutodiff(*module)));
    mlir::FunctionType type = module->lookupSymbol<mlir::func::FuncOp>("first").getFunctionType();
    std::mt19937 random(17);
    std::vector<Tensor> point, direction;
    for (mlir::Type input : type.getInputs()) {
      const TensorSpec spec = toTensorSpec(mlir::cast<mlir::RankedTensorType>(input));
      point.push_back(MakeCotangent(spec, random));
      direction.push_back(MakeCotangent(spec, random));
    }
    // Distinct elements have one maximum. No p is 0.
    SpreadRanks(point[0].values);
    for (double& x : point[0].values) x *= 8;
    for (double& p : point[1].values) p = std::abs(p) + 0.5;
    std::vector<Tensor> arguments = point;
    arguments.insert(arguments.end(), direction.begin(), direction.end());
    const std::vector<Tensor> second = run(*module, "second", arguments);
    auto moved = [&](double step) {
      std::vector<Tensor> at = point;
      for (std::size_t operand = 0; operand < at.size(); ++operand)
        for (std::size_t i = 0; i < at[operand].values.size(); ++i)
          at[operand].values[i] += step * direction[operand].values[i];
      return run(*module, "first", at);
    };
    const std::vector<Tensor> low = moved(-kStep), high = moved(kStep), lower = moved(-2 * kStep),
                              higher = moved(2 * kStep);
    for (std::size_t operand = 0; operand < 2; ++operand) {
      for (std::size_t i = 0; i < second[operand].values.size(); ++i) {
        const auto at = [&](const std::vector<Tensor>& gradients) { return gradients[operand].values[i]; };
        const double fine = (at(high) - at(low)) / (2 * kStep), coarse = (at(higher) - at(lower)) / (4 * kStep);
        // As in DifferenceQuotient::along. Some 64 numbers of the gradient's size are rounded.
        const double rounding = 64 * (1 + std::abs(at(high))) * kUnitRoundoff / kStep;
        EXPECT_NEAR(second[operand].values[i], fine, 2 * std::abs(coarse - fine) + rounding) << operand << ", " << i;
      }
    }
  }
}

TEST_F(GradientCheck, CoversEveryDifferentiableOperation) {
  std::set<std::string> checked;
  for (const OpCase& op_case : AllOpCases())
    if (IsDifferentiated(*Context, op_case)) checked.insert("mpc." + op_case.op);
  for (mlir::RegisteredOperationName name : Context->getRegisteredOperationsByDialect("mpc")) {
    if (!name.hasInterface<DifferentiableOpInterface>()) continue;
    // Its derivative is a function of the user's; the other's is zero by definition: see autodiff_test.cc.
    if (name.getStringRef() == CustomVjpOp::getOperationName()) continue;
    if (name.getStringRef() == StopGradientOp::getOperationName()) continue;
    EXPECT_TRUE(checked.count(name.getStringRef().str()))
        << name.getStringRef().str() << " has a derivative rule and no differentiable operand in the table";
  }
}

}  // namespace
}  // namespace mpc
