#include "tests/kernels/error_bounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "kernels/axis_lines.h"
#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/window.h"
#include "tests/kernels/activation_error_bounds.h"
#include "tests/kernels/batch_norm_error_bounds.h"
#include "tests/kernels/error_notation.h"
#include "tests/kernels/optimizer_bounds.h"
#include "tests/kernels/sequence_error_bounds.h"
#include "tests/kernels/softmax_error_bounds.h"

namespace mpc::test {
namespace {

const std::set<std::string>& ExactOps() {
  static const auto* const ops = new std::set<std::string>{
      "relu",         "neg",          "stop_gradient", "relu_grad",  "maximum",         "maximum_grad",
      "equal",        "merge_checks", "all_of",        "any_of",     "next_micro_step", "tensor_statistics",
      "select",       "cast",         "reshape",       "argmax",     "transpose",       "random",
      "increment",    "unscale",      "broadcast_to",  "max_pool2d", "all_finite",      "update_loss_scale",
      "check_finite", "all_reduce",   "iota",          "all_gather", "all_reduce_max",  "process_rank"};
  return *ops;
}

// Operations on single elements whose error is a number of roundings of the result itself.
const std::map<std::string, double>& RelativeErrors() {
  static const auto* const errors = new std::map<std::string, double>{
      {"add", kU},
      {"sub", kU},
      {"mul", kU},
      {"div", kU},
      {"sqrt", kU},
      {"scale_loss", kU},
      // The factor, computed in f64, is rounded to f32, and so is the product; f64's own roundings are less than one.
      {"clip_by_norm", 3 * kU},
      {"add_scalar", kU},
      {"mul_scalar", kU},
      {"dropout", kU},
      {"exp", kFunction},
      {"log", kFunction},
      {"tanh", kFunction},
      {"sigmoid", kFunction},
      // (1 - y) is exact above 1/2 and one rounding below; two products.
      {"sigmoid_grad", 4 * kU},
      {"sqrt_grad", 3 * kU},
      {"div_grad", 3 * kU},
      // 2 * dloss / n * (p - t): the difference is one relative rounding of the exact difference.
      {"mse_grad", 5 * kU},
  };
  return *errors;
}

// TermsOf pooling and resizing.
double WindowTerms(const OpCase& op_case) {
  const std::string& op = op_case.op;
  if (op == "max_pool2d_grad" || op == "avg_pool2d" || op == "avg_pool2d_grad") {
    const std::vector<std::int64_t> size = op_case.attributes.GetInts("kernel_size");
    return static_cast<double>(size[0] * size[1]) + 1;  // and the division
  }
  // Along either axis a weight is rounded, its product, and the sum of two.
  if (op == "resize") return 6;
  if (op == "resize_grad") {
    const Shape& dy = op_case.operands[0].spec.shape;
    const ImageAxes axes = AxesOf(op_case.attributes.Get(attribute::kDataFormat));
    // A pixel is read by at most all of its row and its column.
    return static_cast<double>(dy[static_cast<std::size_t>(axes.height)] + dy[static_cast<std::size_t>(axes.width)]) +
           4;
  }
  return 0;
}

// Operations that are sums of products of operands with known coefficients: run on magnitudes, the reference gives the
// sum of the terms' magnitudes. Returns how many terms meet in one result element, 0 for other operations.
double TermsOf(const OpCase& op_case) {
  const auto elements = [](const TensorSpec& spec) { return static_cast<double>(spec.num_elements()); };
  const auto& operands = op_case.operands;
  const std::string& op = op_case.op;
  if (op == "sum_n") return static_cast<double>(operands.size());
  if (op == "reduce_sum" || op == "reduce_mean") return elements(operands[0].spec) / elements(op_case.results[0]);
  if (op == "matmul") {
    return elements(operands[0].spec) / static_cast<double>(op_case.results[0].shape[0]) + 1;  // and the bias
  }
  if (op == "cumsum") {
    return static_cast<double>(AxisLines::Of(op_case.attributes, op_case.results[0].shape).extent);
  }
  // All updates may be added to one row.
  if (op == "scatter_add") return elements(operands[1].spec) + 1;
  if (op == "batch_matmul") {
    const Shape& a = operands[0].spec.shape;
    return static_cast<double>(a[a.size() - (op_case.attributes.GetBool("transpose_a") ? 2 : 1)]);
  }
  if (op == "conv_transpose2d") {
    const Shape& weight = operands[1].spec.shape;
    return static_cast<double>(weight[0] / op_case.attributes.Get(attribute::kGroups) * weight[2] * weight[3] + 1);
  }
  if (op == "conv2d") return elements(operands[1].spec) / static_cast<double>(operands[1].spec.shape[0]) + 1;
  if (op == "conv2d_grad_input") {
    const Shape& weight = operands[1].spec.shape;
    return static_cast<double>(weight[0] / op_case.attributes.Get(attribute::kGroups) * weight[2] * weight[3]);
  }
  if (op == "conv2d_grad_weight") {
    return elements(operands[1].spec) / static_cast<double>(op_case.results[0].shape[0]);
  }
  if (const double terms = WindowTerms(op_case); terms > 0) return terms;
  // Chains of a few products and sums: gradient scaling, decay, velocity, update.
  if (op == "sgd" || op == "momentum") return 8 + ScalingRoundings(op_case);
  if (op == "batch_norm_running_update") return 5 * static_cast<double>(op_case.attributes.Get(attribute::kBatches));
  if (op == "accumulate_gradient") return 2;
  return 0;
}

Tensors Magnitudes(Tensors tensors) {
  for (reference::Tensor& tensor : tensors) {
    for (double& value : tensor.values) value = std::abs(value);
  }
  return tensors;
}

// Neither form of gelu is steeper, which is so near the square root of 2.
constexpr double kGeluSlope = 1.13;

/// What `activation` adds to the error of the sum that it is applied to, where it makes `y` of `sum`.
double ErrorBehind(Activation activation, double error, double sum, double y) {
  if (activation == Activation::kNone) return error;
  const bool tanh_form = activation == Activation::kGeluTanh;
  if (activation == Activation::kGelu || tanh_form) return kGeluSlope * error + GeluOfProductError(tanh_form, sum, y);
  // Others have slopes of at most 1 and add their own error.
  return error + kFunction * std::abs(y);
}

Errors SumOfProductsErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  Attributes attributes = op_case.attributes;
  attributes.Set("activation", std::string("none"));
  Tensors magnitudes = Magnitudes(inputs);
  // p - lr * v becomes p + lr * v on magnitudes.
  if (op_case.op == "sgd" || op_case.op == "momentum") magnitudes[3].values[0] = -magnitudes[3].values[0];
  Tensors sums = exact;
  reference::Find(op_case.op)(attributes, magnitudes, absl::MakeSpan(sums));
  Tensors products = exact;  // before the activation
  const Activation activation = op_case.attributes.Get(attribute::kActivation);
  if (activation != Activation::kNone) reference::Find(op_case.op)(attributes, inputs, absl::MakeSpan(products));
  const double factor = (TermsOf(op_case) + 2) * kU;
  Errors errors;
  for (std::size_t r = 0; r < exact.size(); ++r) {
    ElementErrors error(exact[r].values.size());
    for (std::size_t i = 0; i < error.size(); ++i) {
      const double of_sum = factor * std::abs(sums[r].values[i]) + kUnderflow;
      error[i] = ErrorBehind(activation, of_sum, products[r].values[i], exact[r].values[i]);
    }
    errors.emplace_back(std::move(error));
  }
  return errors;
}

Errors TanhGradErrors(const Tensors& inputs) {
  ElementErrors error(inputs[0].values.size());
  for (std::size_t i = 0; i < error.size(); ++i) {
    const double y = inputs[1].values[i];
    // y * y, 1 - y^2 and the product each round once; the first is not reduced by the subtraction.
    error[i] = 3 * kU * std::abs(inputs[0].values[i]) * (1 + y * y) + kUnderflow;
  }
  return {error};
}

Errors MseErrors(const Tensors& exact, double count) {
  // All terms have one sign, so that the sum's error is relative: difference, square, sum, division.
  ElementErrors error;
  for (double value : exact[0].values) error.push_back((count + 5) * kU * std::abs(value) + kUnderflow);
  return {error};
}

}  // namespace

Errors ArithmeticErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const std::string& op = op_case.op;
  if (ExactOps().count(op) != 0) return Errors(exact.size());
  if (const auto relative = RelativeErrors().find(op); relative != RelativeErrors().end()) {
    // Dropped elements are exactly zero.
    const double underflow = op == "dropout" ? 0 : kUnderflow;
    ElementErrors error;
    for (double value : exact[0].values) error.push_back(relative->second * std::abs(value) + underflow);
    return {error};
  }
  if (TermsOf(op_case) > 0) return SumOfProductsErrors(op_case, inputs, exact);
  if (op == "tanh_grad") return TanhGradErrors(inputs);
  if (op == "mse") {
    return MseErrors(exact, static_cast<double>(inputs[0].values.size() / exact[0].values.size()));
  }
  if (op == "conv2d_statistics") {
    OpCase convolution = op_case;
    convolution.op = "conv2d";
    return Conv2dStatisticsErrors(op_case, *SumOfProductsErrors(convolution, inputs, {exact[0]})[0], exact);
  }
  if (auto errors = BatchNormErrors(op_case, inputs, exact)) return *std::move(errors);
  if (const auto optimizer = OptimizerErrors(op_case, inputs, exact)) return *optimizer;
  if (auto errors = ActivationErrors(op_case, inputs, exact)) return *std::move(errors);
  if (auto errors = SequenceErrors(op_case, inputs, exact)) return *std::move(errors);
  if (auto errors = SoftmaxErrors(op_case, inputs, exact)) return *std::move(errors);
  return Errors(exact.size());  // no bound derived: must be exact
}

double HalfUlp(DType dtype, double magnitude) {
  if (magnitude == 0 || !std::isfinite(magnitude)) return 0;
  const auto half_ulp = [magnitude](int fraction_bits, int min_exponent) {
    return std::ldexp(0.5, std::max(std::ilogb(magnitude), min_exponent) - fraction_bits);
  };
  if (dtype == DType::kF16) return half_ulp(10, -14);
  if (dtype == DType::kBF16) return half_ulp(7, -126);
  return dtype == DType::kF32 ? half_ulp(23, -126) : 0;
}

}  // namespace mpc::test
